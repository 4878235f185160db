//! Finds `AqlQueue`'s four doorbell functions: by name, else by the shape of its vtables.

use std::collections::BTreeSet;

use iced_x86::Mnemonic;

use super::code::{Body, MAX_LENGTH};
use super::elf::Image;
use super::error::Absence;
use super::flow::effects;
use super::functions::Functions;
use super::pattern::{AqlShape, aql_doorbell};
use super::vtables::QueueClass;
use super::{DoorbellFunction, DoorbellRole};

/// The functions that lead to a doorbell of an AQL queue. Some only pass the call on to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AqlQueue {
    pub(super) store_relaxed: u64,
    pub(super) store_release: u64,
    pub(super) signal_store_relaxed: u64,
    pub(super) signal_store_release: u64,
    /// `AddWriteIndexAcqRel`, which reserves packets for the runtime's own dispatches.
    pub(super) add_write_index: Option<u64>,
    pub(super) store_write_index_relaxed: Option<u64>,
    pub(super) store_write_index_release: Option<u64>,
    pub(super) execute_pm4: Option<u64>,
    /// Offset of the queue from its signal sub-object: negative. The thunks get the signal sub-object in rdi, the other functions
    /// the queue.
    pub(super) offset_to_top: i32,
}

/// The input and the result of a step; `Ok(None)` if the step does not apply to the library.
pub(super) struct Search {
    pub(super) looked_at: String,
    pub(super) found: Result<Option<AqlQueue>, Absence>,
}

impl AqlQueue {
    /// Returns whether two steps found the same doorbell functions.
    pub(super) fn agrees_with(&self, other: &Self) -> bool {
        self.entries() == other.entries()
    }

    /// Keeps only those non-ringing functions that another step found, too: each step is one sign, so each kept function has two.
    pub(super) fn keep_agreed(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.add_write_index, other.add_write_index),
            (&mut self.store_write_index_relaxed, other.store_write_index_relaxed),
            (&mut self.store_write_index_release, other.store_write_index_release),
            (&mut self.execute_pm4, other.execute_pm4),
        ] {
            *mine = mine.filter(|vaddr| theirs == Some(*vaddr));
        }
    }

    /// Returns each function with its role and the offset of the queue from the address in rdi; `StoreRelaxed` comes first.
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
const STORE_WRITE_INDEX_RELAXED: &str = "_ZN4rocr3AMD8AqlQueue22StoreWriteIndexRelaxedEm";
const STORE_WRITE_INDEX_RELEASE: &str = "_ZN4rocr3AMD8AqlQueue22StoreWriteIndexReleaseEm";
/// The parameters differ between releases.
const EXECUTE_PM4_PREFIX: &str = "_ZN4rocr3AMD8AqlQueue10ExecutePM4E";

/// Searches by mangled names, in the library itself or in its separate debug file. `place` names the source.
pub(super) fn by_names<'a>(place: &str, symbols: impl Iterator<Item = (&'a str, u64)>) -> Search {
    let mut names = Names::new();
    let mut count = 0;
    for (name, vaddr) in symbols {
        names.add(name, vaddr);
        count += 1;
    }
    Search {
        looked_at: format!("{place}, {count} functions"),
        found: names.queue(),
    }
}

/// The symbols of `AqlQueue`.
struct Names {
    relaxed: Unique,
    release: Unique,
    add_write_index: Unique,
    store_write_index_relaxed: Unique,
    store_write_index_release: Unique,
    execute_pm4: Unique,
    signal_relaxed: Unique,
    signal_release: Unique,
}

impl Names {
    fn new() -> Self {
        Self {
            relaxed: Unique::new(STORE_RELAXED),
            release: Unique::new(STORE_RELEASE),
            add_write_index: Unique::new(ADD_WRITE_INDEX),
            store_write_index_relaxed: Unique::new(STORE_WRITE_INDEX_RELAXED),
            store_write_index_release: Unique::new(STORE_WRITE_INDEX_RELEASE),
            execute_pm4: Unique::new("AqlQueue::ExecutePM4"),
            signal_relaxed: Unique::new("the _ZThn thunk of StoreRelaxed"),
            signal_release: Unique::new("the _ZThn thunk of StoreRelease"),
        }
    }

    fn add(&mut self, name: &str, vaddr: u64) {
        // A non-virtual thunk is named after its adjustment: _ZThn<bytes>_<name without _Z> (Itanium C++ ABI 5.1.4.2).
        let thunk = name.strip_prefix("_ZThn").and_then(|rest| rest.split_once('_'));
        match thunk.map(|(bytes, method)| (bytes.parse::<u16>(), method)) {
            None if name == STORE_RELAXED => self.relaxed.add((vaddr, 0)),
            None if name == STORE_RELEASE => self.release.add((vaddr, 0)),
            None if name == ADD_WRITE_INDEX => self.add_write_index.add((vaddr, 0)),
            None if name == STORE_WRITE_INDEX_RELAXED => self.store_write_index_relaxed.add((vaddr, 0)),
            None if name == STORE_WRITE_INDEX_RELEASE => self.store_write_index_release.add((vaddr, 0)),
            // A part that the compiler has split off has a suffix.
            None if name.starts_with(EXECUTE_PM4_PREFIX) && !name.contains('.') => self.execute_pm4.add((vaddr, 0)),
            Some((Ok(bytes), method)) if STORE_RELAXED.strip_prefix("_Z") == Some(method) => {
                self.signal_relaxed.add((vaddr, -i32::from(bytes)));
            }
            Some((Ok(bytes), method)) if STORE_RELEASE.strip_prefix("_Z") == Some(method) => {
                self.signal_release.add((vaddr, -i32::from(bytes)));
            }
            _ => {}
        }
    }

    fn queue(&self) -> Result<Option<AqlQueue>, Absence> {
        if self.relaxed.found.is_empty() {
            return Ok(None);
        }
        let (signal_store_relaxed, offset_to_top) = self.signal_relaxed.get()?;
        Ok(Some(AqlQueue {
            store_relaxed: self.relaxed.get()?.0,
            store_release: self.release.get()?.0,
            signal_store_relaxed,
            signal_store_release: self.signal_release.get()?.0,
            add_write_index: self.add_write_index.vaddr(),
            store_write_index_relaxed: self.store_write_index_relaxed.vaddr(),
            store_write_index_release: self.store_write_index_release.vaddr(),
            execute_pm4: self.execute_pm4.vaddr(),
            offset_to_top,
        }))
    }
}

/// A symbol that must have exactly one address.
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
        // Two addresses are as bad as any larger number.
        if self.found.len() < 2 && !self.found.contains(&at) {
            self.found.push(at);
        }
    }

    /// Returns the address of an optional symbol.
    fn vaddr(&self) -> Option<u64> {
        self.get().ok().map(|(vaddr, _)| vaddr)
    }

    fn get(&self) -> Result<(u64, i32), Absence> {
        match self.found.as_slice() {
            [] => Err(Absence::SymbolMissing(self.name)),
            [one] => Ok(*one),
            [_, ..] => Err(Absence::SymbolAmbiguous(self.name)),
        }
    }
}

/// Returns the store functions in the signal parts of queue classes, except those that ring. They belong to the queues that a tool
/// puts in front of an `AqlQueue` (`InterceptQueue`).
pub(super) fn proxy_stores(
    image: &Image<'_>,
    functions: &Functions,
    classes: &[QueueClass],
    ringing: &[DoorbellFunction],
) -> BTreeSet<u64> {
    classes
        .iter()
        .flat_map(|class| [class.signal_store_relaxed, class.signal_store_release])
        .filter(|&vaddr| functions.code(image, vaddr).is_some())
        .filter(|&vaddr| ringing.iter().all(|function| function.vaddr != vaddr))
        .collect()
}

/// Searches a stripped library by the shape of its vtables and by the code of the virtual functions.
pub(super) fn by_vtable_shape(image: &Image<'_>, functions: &Functions, classes: &[QueueClass]) -> Search {
    let looked_at = match classes.len() {
        1 => "vtables, 1 pair of a queue and a signal".to_owned(),
        n => format!("vtables, {n} pairs of a queue and a signal"),
    };
    let mut found: Vec<(u64, AqlQueue)> = Vec::new();
    let mut silent = None;
    for class in classes {
        let Some(queue) = as_aql_queue(image, functions, class) else {
            continue;
        };
        if !rings_doorbell(image, functions, queue.store_relaxed) {
            silent = Some(queue.store_relaxed);
        } else if found.iter().all(|(_, known)| *known != queue) {
            found.push((class.vaddr, queue));
        }
    }
    let found = match (found.as_slice(), silent) {
        ([(_, queue)], _) => Ok(Some(*queue)),
        ([(first, _), (second, _), ..], _) => Err(Absence::SeveralQueueClasses(*first, *second)),
        ([], Some(store_relaxed)) => Err(Absence::NoDoorbellStore(store_relaxed)),
        ([], None) => Err(Absence::NoQueueClass),
    };
    Search { looked_at, found }
}

/// `core::Queue` declares `AddWriteIndex{AcqRel,Acquire,Relaxed,Release}`, `{Set,Get}CUMasking`, `ExecutePM4` in this order
/// (ROCR-Runtime `core/inc/queue.h`, 5.2 to 7.2): `ExecutePM4` follows the first of them by this number of slots.
const EXECUTE_PM4_AFTER_ADD: usize = 6;
/// `StoreWriteIndex{Relaxed,Release}` and the four variants of `CasWriteIndex` precede `AddWriteIndexAcqRel`.
const STORES_BEFORE_ADD: usize = 6;
const ADD_WRITE_INDEX_VARIANTS: usize = 4;
/// `AqlQueue::ExecutePM4` builds a packet (1144 to 1739 bytes in the builds measured). That of `InterceptQueue` forwards and that
/// of `AieAqlQueue` asserts (under 40 bytes).
const MIN_EXECUTE_PM4: usize = 512;
/// Limits in bytes. A longer function is not one of these, and is not decoded.
pub(super) const MAX_EXECUTE_PM4: usize = 16 << 10;
const MAX_ADD_WRITE_INDEX: usize = 512;

/// Interprets a queue class as `AqlQueue`, if its index functions and its `ExecutePM4` are those of a hardware queue.
fn as_aql_queue(image: &Image<'_>, functions: &Functions, class: &QueueClass) -> Option<AqlQueue> {
    let code = |slot: &Option<u64>, longest: usize| {
        let code = functions.code(image, (*slot)?)?;
        (code.bytes.len() <= longest).then_some(code)
    };
    let adds = |slot: &Option<u64>| {
        let body = code(slot, MAX_ADD_WRITE_INDEX).map(|code| Body::decode(code.vaddr, code.bytes));
        body.is_some_and(|body| has_locked_add(&body))
    };
    let adding: Vec<bool> = class.slots.iter().map(adds).collect();
    let mut windows = adding.windows(ADD_WRITE_INDEX_VARIANTS);
    let first_add = windows.position(|window| window.iter().all(|&adds| adds))?;
    let execute_pm4 = class.slots.get(first_add.checked_add(EXECUTE_PM4_AFTER_ADD)?)?;
    let code = code(execute_pm4, MAX_EXECUTE_PM4)?;
    let fences = Body::decode(code.vaddr, code.bytes)
        .instructions()
        .iter()
        .any(|i| i.mnemonic() == Mnemonic::Sfence);
    let [.., Some(store_relaxed), Some(store_release)] = class.slots.as_slice() else {
        return None;
    };
    let before_add = |which: usize| {
        let slot = first_add.checked_sub(STORES_BEFORE_ADD)? + which;
        class.slots.get(slot).copied().flatten()
    };
    (fences && code.bytes.len() >= MIN_EXECUTE_PM4).then_some(AqlQueue {
        store_relaxed: *store_relaxed,
        store_release: *store_release,
        signal_store_relaxed: class.signal_store_relaxed,
        signal_store_release: class.signal_store_release,
        add_write_index: class.slots.get(first_add).copied().flatten(),
        store_write_index_relaxed: before_add(0),
        store_write_index_release: before_add(1),
        execute_pm4: *execute_pm4,
        offset_to_top: class.offset_to_top,
    })
}

fn has_locked_add(body: &Body) -> bool {
    body.instructions()
        .iter()
        .any(|i| i.mnemonic() == Mnemonic::Xadd && i.has_lock_prefix())
}

fn rings_doorbell(image: &Image<'_>, functions: &Functions, function: u64) -> bool {
    let code = functions.code(image, function);
    let code = code.filter(|code| code.bytes.len() <= MAX_LENGTH);
    code.is_some_and(|code| {
        let effects = effects(&Body::decode(code.vaddr, code.bytes));
        matches!(aql_doorbell(&effects), AqlShape::Rings(_))
    })
}
