//! Tests of kernel names over loads, unloads and reused addresses.

use super::{PID, Trace, by, dispatch, doorbell};
use crate::code_object::{CodeObject, CodeObjectOrigin, KernelResources, KernelSymbol, KernelsUnread};
use crate::event::{self, CodeObjectChange, Event};
use crate::model::LINGER_NS;
use crate::tables::Fact;

/// Returns a code object with one kernel, the kernel of packets with index 0, at address 64.
fn object(id: u64, name: &str) -> CodeObject {
    CodeObject {
        id,
        origin: CodeObjectOrigin::Loaded,
        base: 32,
        uri: "file:///k.co".to_owned(),
        target: None,
        version: Some(5),
        kernels: Ok(vec![KernelSymbol {
            offset: 32,
            symbol: name.into(),
            name: name.into(),
            resources: KernelResources::default(),
        }]),
    }
}

impl Trace {
    fn code_objects(&mut self, time_ns: u64, change: CodeObjectChange<'_>) {
        let origin = by(time_ns, 1);
        self.apply(&Event::CodeObject(event::CodeObject { origin, change }));
    }

    fn load(&mut self, time_ns: u64, id: u64, name: &str) {
        self.code_objects(time_ns, CodeObjectChange::Loaded(&object(id, name)));
    }

    fn unload(&mut self, time_ns: u64, id: u64) {
        self.code_objects(time_ns, CodeObjectChange::Unloaded { id });
    }

    /// Applies a dispatch of the kernel at address 64. Returns the name that it got.
    fn name(&mut self, time_ns: u64, at: u64) -> Option<String> {
        let mut packet = dispatch(at);
        packet.bytes[0x20..0x28].copy_from_slice(&64_u64.to_le_bytes());
        let walk = doorbell(time_ns, at, at..at + 1, at, at + 1);
        self.packets(walk, &[packet]);
        self.apply(&Event::Doorbell(walk));
        let name = self.facts.iter().rev().find_map(|fact| match fact {
            Fact::Dispatch(dispatch) if dispatch.index == at => Some(dispatch.kernel.as_deref().map(str::to_owned)),
            _ => None,
        });
        name.expect("it was given")
    }

    fn ends(&self) -> Vec<(u32, Option<u64>)> {
        let end = |fact: &Fact| match fact {
            Fact::CodeObject(object) => Some((object.code_object, object.unloaded_ns)),
            _ => None,
        };
        self.facts.iter().filter_map(end).collect()
    }
}

#[test]
fn a_name_is_that_of_the_time() {
    let mut trace = Trace::created();
    assert_eq!(trace.name(90, 0), None);
    trace.load(100, 1, "a");
    assert_eq!(trace.name(110, 1).as_deref(), Some("a"));
    trace.unload(200, 1);
    assert_eq!(trace.name(210, 2), None);
    trace.load(300, 2, "b");
    assert_eq!(trace.name(310, 3).as_deref(), Some("b"));
    // These events come from another source, and late.
    assert_eq!(trace.name(150, 4).as_deref(), Some("a"));
    assert_eq!(trace.name(99, 5), None);
    assert_eq!(trace.ends(), [(0, Some(200))]);
    trace.model.finish(1000, &mut |fact| trace.facts.push(fact));
    assert_eq!(trace.ends(), [(0, Some(200)), (1, None)]);
    let kernels = trace
        .facts
        .iter()
        .filter(|fact| matches!(fact, Fact::Kernel(kernel) if kernel.kernel_object == 64));
    assert_eq!(kernels.count(), 2);
}

#[test]
fn what_was_missed_names_nothing() {
    let mut trace = Trace::created();
    trace.load(100, 1, "a");
    trace.code_objects(200, CodeObjectChange::Unread);
    assert_eq!(trace.name(210, 0), None);
    assert_eq!(trace.name(190, 1).as_deref(), Some("a"));
    trace.load(300, 2, "a");
    assert_eq!(trace.name(310, 2).as_deref(), Some("a"));
    assert_eq!(trace.ends(), [(0, None)]);
    assert!(
        trace
            .facts
            .iter()
            .any(|fact| matches!(fact, Fact::Loss(loss) if loss.source == "code-object-list"))
    );
}

#[test]
fn the_end_of_a_process_ends_its_code_objects() {
    let mut trace = Trace::created();
    trace.load(100, 1, "a");
    trace.apply(&Event::Exit(by(500, 1)));
    assert_eq!(trace.ends(), [(0, Some(500))]);
    // The doorbell of a thread that had not exited yet.
    assert_eq!(trace.name(501, 0).as_deref(), Some("a"));
    // Another process has the same id. Nothing of the old process is left.
    trace.load(500 + LINGER_NS, 7, "b");
    assert_eq!(trace.model.annotations.code_objects.name(PID, 64, 100), None);
    trace.apply(&Event::Exec(by(600 + LINGER_NS, 1), b"other"));
    assert_eq!(trace.name(700 + LINGER_NS, 1), None);
}

#[test]
fn a_code_object_that_was_not_read_is_there_all_the_same() {
    let mut trace = Trace::created();
    let mut unread = object(1, "a");
    unread.kernels = Err(KernelsUnread::Malformed);
    trace.code_objects(100, CodeObjectChange::Loaded(&unread));
    assert_eq!(trace.name(110, 0), None);
    trace.unload(200, 1);
    let Some(Fact::CodeObject(object)) = trace.facts.last() else {
        panic!("{:?}", trace.facts)
    };
    assert_eq!((object.kernels, object.unread), (None, Some(KernelsUnread::Malformed)));
}
