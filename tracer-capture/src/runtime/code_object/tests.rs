//! Tests with lists in the memory of the test process, which is read like another process's memory.

use std::{
    collections::BTreeMap,
    ffi::CString,
    io,
    time::{Duration, Instant},
};

use tracer_core::words::Named;
use tracer_core::{
    code_object::{CodeObjectOrigin, KernelsUnread},
    event::{CodeObjectChange, Event, Origin},
};

use crate::{
    confined::{Examine, Parsers, Readers},
    examination::discoveries::discoveries,
};

use super::{
    list::{Entry, Memory, differences, read},
    lists::Lists,
};

/// Memory that contains only some words.
struct Words(BTreeMap<u64, u64>);

impl Memory for Words {
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()> {
        for (at, byte) in to.iter_mut().enumerate() {
            let address = address + at as u64;
            let word = self.0.get(&(address & !7)).ok_or(io::ErrorKind::NotFound)?;
            *byte = word.to_le_bytes()[(address & 7) as usize];
        }
        Ok(())
    }
}

fn words(list: &[(u64, [u64; 5])]) -> Words {
    let mut words = BTreeMap::from([(0x108, list.first().map_or(0, |(node, _)| *node))]);
    for (node, fields) in list {
        words.extend((0..).zip(fields).map(|(at, field)| (node + 8 * at, *field)));
    }
    Words(words)
}

#[test]
fn a_list_is_read_to_its_end() {
    let mut memory = words(&[(0x200, [0x1000, 0x900, 0, 0x300, 0]), (0x300, [0x2000, 0, 0, 0, 0x200])]);
    for at in 0..32 {
        memory.0.insert(0x900 + 8 * at, u64::from_le_bytes(*b"file:///"));
    }
    memory.0.extend((0..32).map(|at| (0xa00 + 8 * at, 0)));
    let entries = read(&memory, 0x100).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(
        (entries[0].node, entries[0].base, entries[0].uri.len()),
        (0x200, 0x1000, 256)
    );
    assert_eq!(
        (entries[1].node, entries[1].base, entries[1].uri.len()),
        (0x300, 0x2000, 0)
    );
    assert_eq!(read(&words(&[]), 0x100).unwrap(), []);
}

#[test]
fn a_list_without_end_or_with_a_hole_is_an_error() {
    let circle = words(&[(0x200, [0, 0, 0, 0x300, 0]), (0x300, [0, 0, 0, 0x200, 0])]);
    assert!(read(&circle, 0x100).is_err());
    let hole = words(&[(0x200, [0, 0, 0, 0x8000, 0])]);
    assert!(read(&hole, 0x100).is_err());
    let mut endless = words(&[(0x200, [0, 0x1000, 0, 0, 0])]);
    endless.0.extend((0..0x1000).map(|at| (0x1000 + 8 * at, u64::MAX)));
    assert!(read(&endless, 0x100).is_err());
}

#[test]
fn objects_that_came_and_went_are_distinguished() {
    let entry = |node: u64, base: u64| Entry {
        node,
        base,
        uri: Vec::new(),
    };
    let of = |old: &[(u64, u64)], new: &[(u64, u64)]| {
        let list = |entries: &[(u64, u64)]| {
            entries
                .iter()
                .map(|&(node, base)| entry(node, base))
                .collect::<Vec<_>>()
        };
        differences(&list(old), &list(new))
    };
    assert_eq!(of(&[], &[(1, 1)]), (vec![], vec![true]));
    assert_eq!(
        of(&[(1, 1), (2, 2), (3, 3)], &[(1, 1), (3, 3)]),
        (vec![true, false, true], vec![false, false])
    );
    assert_eq!(of(&[(1, 1)], &[(1, 1), (2, 2)]), (vec![true], vec![false, true]));
    // At the same address, with another base.
    assert_eq!(of(&[(1, 1)], &[(1, 9)]), (vec![false], vec![true]));
    // After an added entry: this one was removed and added again.
    assert_eq!(
        of(&[(1, 1), (2, 2)], &[(2, 2), (5, 5), (1, 1)]),
        (vec![false, true], vec![false, true, true])
    );
}

/// A `struct link_map` or `struct r_debug` in the memory of this process.
#[repr(C)]
struct Node([usize; 5]);

#[test]
fn changes_come_out_as_they_were_made() {
    let path = std::env::current_exe().unwrap();
    let uris = [
        format!("file://{}", path.display()),
        "file:///nowhere/k.co".to_owned(),
        "floppy://a".to_owned(),
    ]
    .map(|uri| CString::new(uri).unwrap());
    let node = |uri: &CString, base: usize| Box::new(Node([base, uri.as_ptr() as usize, 0, 0, 0]));
    let mut nodes = [node(&uris[0], 0x1000), node(&uris[1], 0x2000), node(&uris[2], 0x3000)];
    let address = |node: &Node| std::ptr::from_ref(node) as usize;
    nodes[0].0[3] = address(&nodes[1]);
    nodes[1].0[3] = address(&nodes[2]);
    let debug = Node([7, address(&nodes[0]), 0, 0, 0]);
    let debug_address = address(std::hint::black_box(&debug)) as u64;
    let (finder, changes) = discoveries();
    let lists = Lists::new(finder);
    // SAFETY: the child process makes only plain calls; the other threads of this test program only wait.
    let readers = unsafe { Readers::start() }.unwrap();
    let parsers = Parsers::new(&readers);
    let deadline = Instant::now() + Duration::from_secs(60);
    let examine = Examine::new(&readers, &parsers, std::process::id(), deadline).unwrap();
    let origin = |time_ns| Origin {
        time_ns,
        pid: std::process::id(),
        tid: 1,
    };
    let taken = |what: &mut Vec<(u64, String)>| {
        changes.take(&mut |event: &Event<'_>| {
            let Event::CodeObject(event) = event else {
                panic!("another event")
            };
            let text = match event.change {
                CodeObjectChange::Loaded(object) => {
                    let unread = object.kernels.as_ref().err().map(|reason| reason.name());
                    format!("{} {:#x} {:?} {unread:?}", object.id, object.base, object.origin)
                }
                CodeObjectChange::Unloaded { id } => format!("{id} unloaded"),
                CodeObjectChange::Unread => "unread".to_owned(),
            };
            what.push((event.origin.time_ns, text));
        });
        std::mem::take(what)
    };
    let mut what = Vec::new();
    lists.attached(&examine, origin(10), 1, debug_address);
    let found = CodeObjectOrigin::Found;
    // The test program is not a code object. It was built before this process started, or in the same second.
    let first = taken(&mut what);
    let reason = [KernelsUnread::Malformed, KernelsUnread::Changed]
        .map(|reason| format!("0 0x1000 {found:?} {:?}", Some(reason.name())));
    assert!(reason.contains(&first[0].1), "{first:?}");
    assert_eq!(first[1].1, format!("1 0x2000 {found:?} {:?}", Some("unreadable")));
    assert_eq!(first[2].1, format!("2 0x3000 {found:?} {:?}", Some("unknown-source")));
    // Remove the middle entry.
    nodes[0].0[3] = address(&nodes[2]);
    std::hint::black_box(&nodes);
    lists.changed(&examine, origin(20), 1, debug_address);
    assert_eq!(taken(&mut what), [(20, "1 unloaded".to_owned())]);
    lists.changed(&examine, origin(30), 1, debug_address);
    assert_eq!(taken(&mut what), []);
    // Add it again, at the end.
    nodes[1].0[3] = 0;
    nodes[2].0[3] = address(&nodes[1]);
    std::hint::black_box(&nodes);
    lists.changed(&examine, origin(40), 1, debug_address);
    assert_eq!(
        taken(&mut what),
        [(40, format!("3 0x2000 Loaded {:?}", Some("unreadable")))]
    );
    // The list can't be read. From then on its entries are found, not loaded.
    nodes[0].0[3] = 8;
    std::hint::black_box(&nodes);
    lists.changed(&examine, origin(50), 1, debug_address);
    assert_eq!(taken(&mut what), [(50, "unread".to_owned())]);
    nodes[0].0[3] = 0;
    std::hint::black_box(&nodes);
    lists.changed(&examine, origin(60), 1, debug_address);
    assert_eq!(
        taken(&mut what),
        [(60, format!("4 0x1000 Found {:?}", Some("malformed")))]
    );
    // Another program at the same process id.
    lists.changed(&examine, origin(70), 2, debug_address);
    assert_eq!(
        taken(&mut what),
        [(70, format!("5 0x1000 Loaded {:?}", Some("malformed")))]
    );
}
