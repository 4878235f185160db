//! The ladder to `AqlQueue`'s four doorbell functions: by name, else by the shape of its vtables.

use iced_x86::Mnemonic;

use super::code::Body;
use super::elf::Image;
use super::error::Absence;
use super::flow::effects;
use super::functions::Functions;
use super::pattern::{AqlShape, aql_doorbell};
use super::vtables::{QueueClass, queue_classes};
use super::{DoorbellRole, ResolverStep};

/// The functions through which a doorbell of an AQL queue is rung; some only hand over to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AqlQueue {
    pub(super) step: ResolverStep,
    pub(super) store_relaxed: u64,
    pub(super) store_release: u64,
    pub(super) signal_store_relaxed: u64,
    pub(super) signal_store_release: u64,
    /// `AddWriteIndexAcqRel`, by which the runtime reserves for its own dispatches.
    pub(super) add_write_index: Option<u64>,
    /// From the signal sub-object to the queue: negative. The thunks get the former in rdi, the others the latter.
    pub(super) offset_to_top: i32,
}

impl AqlQueue {
    /// Each function with its role and the offset of the queue in what it gets in rdi; `StoreRelaxed` first.
    pub(super) fn entries(&self) -> [(DoorbellRole, u64, i32); 4] {
        [
            (DoorbellRole::Main, self.store_relaxed, 0),
            (
                DoorbellRole::SignalThunkRelaxed,
                self.signal_store_relaxed,
                self.offset_to_top,
            ),
            (
                DoorbellRole::SignalThunkRelease,
                self.signal_store_release,
                self.offset_to_top,
            ),
            (DoorbellRole::ReleaseMain, self.store_release, 0),
        ]
    }
}

const STORE_RELAXED: &str = "_ZN4rocr3AMD8AqlQueue12StoreRelaxedEl";
const STORE_RELEASE: &str = "_ZN4rocr3AMD8AqlQueue12StoreReleaseEl";
const ADD_WRITE_INDEX: &str = "_ZN4rocr3AMD8AqlQueue19AddWriteIndexAcqRelEm";

/// By the names in `.symtab`, of the library itself or of its separate debug file. `None` without such names.
pub(super) fn by_symtab(symbols: &Image<'_>) -> Result<Option<AqlQueue>, Absence> {
    let (mut relaxed, mut release) = (Unique::new(STORE_RELAXED), Unique::new(STORE_RELEASE));
    let mut add_write_index = Unique::new("AqlQueue::AddWriteIndexAcqRel");
    let mut signal_relaxed = Unique::new("the _ZThn thunk of StoreRelaxed");
    let mut signal_release = Unique::new("the _ZThn thunk of StoreRelease");
    for symbol in symbols.symtab_functions() {
        // A non-virtual thunk is named after its adjustment: _ZThn<bytes>_<name without _Z> (Itanium C++ ABI 5.1.4.2).
        let thunk = symbol.name.strip_prefix("_ZThn").and_then(|rest| rest.split_once('_'));
        match thunk.map(|(bytes, method)| (bytes.parse::<u16>(), method)) {
            None if symbol.name == STORE_RELAXED => relaxed.add((symbol.vaddr, 0)),
            None if symbol.name == STORE_RELEASE => release.add((symbol.vaddr, 0)),
            None if symbol.name == ADD_WRITE_INDEX => add_write_index.add((symbol.vaddr, 0)),
            Some((Ok(bytes), method)) if STORE_RELAXED.strip_prefix("_Z") == Some(method) => {
                signal_relaxed.add((symbol.vaddr, -i32::from(bytes)));
            }
            Some((Ok(bytes), method)) if STORE_RELEASE.strip_prefix("_Z") == Some(method) => {
                signal_release.add((symbol.vaddr, -i32::from(bytes)));
            }
            _ => {}
        }
    }
    if relaxed.found.is_empty() {
        return Ok(None);
    }
    let (signal_store_relaxed, offset_to_top) = signal_relaxed.get()?;
    Ok(Some(AqlQueue {
        step: ResolverStep::Symtab,
        store_relaxed: relaxed.get()?.0,
        store_release: release.get()?.0,
        signal_store_relaxed,
        signal_store_release: signal_release.get()?.0,
        add_write_index: add_write_index.get().ok().map(|(vaddr, _)| vaddr),
        offset_to_top,
    }))
}

/// A symbol that must lead to one address.
struct Unique {
    name: &'static str,
    found: Vec<(u64, i32)>,
}

impl Unique {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            found: Vec::new(),
        }
    }

    fn add(&mut self, at: (u64, i32)) {
        if !self.found.contains(&at) {
            self.found.push(at);
        }
    }

    fn get(&self) -> Result<(u64, i32), Absence> {
        match self.found.as_slice() {
            [] => Err(Absence::SymbolMissing(self.name)),
            [one] => Ok(*one),
            [_, ..] => Err(Absence::SymbolAmbiguous(self.name)),
        }
    }
}

/// By vtable shape and by what the virtual functions do, for a stripped library.
pub(super) fn by_vtable_shape(image: &Image<'_>, functions: &Functions) -> Result<Option<AqlQueue>, Absence> {
    let mut found: Vec<(u64, AqlQueue)> = Vec::new();
    let mut silent = None;
    for class in queue_classes(image, functions) {
        let Some(queue) = as_aql_queue(image, functions, &class) else {
            continue;
        };
        if !rings_doorbell(image, functions, queue.store_relaxed) {
            silent = Some(queue.store_relaxed);
        } else if found.iter().all(|(_, known)| *known != queue) {
            found.push((class.vaddr, queue));
        }
    }
    match (found.as_slice(), silent) {
        ([(_, queue)], _) => Ok(Some(*queue)),
        ([(first, _), (second, _), ..], _) => Err(Absence::SeveralQueueClasses(*first, *second)),
        ([], Some(store_relaxed)) => Err(Absence::NoDoorbellStore(store_relaxed)),
        ([], None) => Err(Absence::NoQueueClass),
    }
}

/// `core::Queue` declares `AddWriteIndex{AcqRel,Acquire,Relaxed,Release}`, `{Set,Get}CUMasking`, `ExecutePM4` in this
/// order (ROCR-Runtime `core/inc/queue.h`, 5.2 to 7.2): `ExecutePM4` stands this far behind the first of them.
const EXECUTE_PM4_AFTER_ADD: usize = 6;
const ADD_WRITE_INDEX_VARIANTS: usize = 4;
/// `AqlQueue::ExecutePM4` builds a packet (1144 to 1739 bytes in the builds measured); `InterceptQueue`'s forwards and
/// `AieAqlQueue`'s asserts (under 40 bytes).
const MIN_EXECUTE_PM4: usize = 512;

/// Interprets a queue class as `AqlQueue`, if its index functions and its `ExecutePM4` are those of a hardware queue.
fn as_aql_queue(image: &Image<'_>, functions: &Functions, class: &QueueClass) -> Option<AqlQueue> {
    let body = |slot: &Option<u64>| {
        functions
            .code(image, (*slot)?)
            .map(|code| Body::decode(code.vaddr, code.bytes))
    };
    let adds = |slots: &[Option<u64>]| {
        slots
            .iter()
            .all(|slot| body(slot).is_some_and(|body| has_locked_add(&body)))
    };
    let first_add = class.slots.windows(ADD_WRITE_INDEX_VARIANTS).position(adds)?;
    let execute_pm4 = (*class.slots.get(first_add.checked_add(EXECUTE_PM4_AFTER_ADD)?)?)?;
    let code = functions.code(image, execute_pm4)?;
    let fences = Body::decode(code.vaddr, code.bytes)
        .instructions()
        .iter()
        .any(|i| i.mnemonic() == Mnemonic::Sfence);
    let [.., Some(store_relaxed), Some(store_release)] = class.slots.as_slice() else {
        return None;
    };
    (fences && code.bytes.len() >= MIN_EXECUTE_PM4).then_some(AqlQueue {
        step: ResolverStep::VtableShape,
        store_relaxed: *store_relaxed,
        store_release: *store_release,
        signal_store_relaxed: class.signal_store_relaxed,
        signal_store_release: class.signal_store_release,
        add_write_index: class.slots.get(first_add).copied().flatten(),
        offset_to_top: class.offset_to_top,
    })
}

fn has_locked_add(body: &Body) -> bool {
    body.instructions()
        .iter()
        .any(|i| i.mnemonic() == Mnemonic::Xadd && i.has_lock_prefix())
}

fn rings_doorbell(image: &Image<'_>, functions: &Functions, function: u64) -> bool {
    functions.code(image, function).is_some_and(|code| {
        let effects = effects(&Body::decode(code.vaddr, code.bytes));
        matches!(aql_doorbell(&effects), AqlShape::Rings(_))
    })
}
