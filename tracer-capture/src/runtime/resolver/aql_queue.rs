//! Finds `AqlQueue`'s four doorbell functions: by name, else by the shape of its vtables.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, Mnemonic};

use super::code::MAX_LENGTH;
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

/// The input and the result of a step.
pub(super) type Search = (String, Result<AqlQueue, Absence>);

impl AqlQueue {
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
const PLAIN: [&str; 5] = [
    STORE_RELAXED,
    STORE_RELEASE,
    ADD_WRITE_INDEX,
    STORE_WRITE_INDEX_RELAXED,
    STORE_WRITE_INDEX_RELEASE,
];
/// The parameters differ between releases.
const EXECUTE_PM4_PREFIX: &str = "_ZN4rocr3AMD8AqlQueue10ExecutePM4E";
/// What messages call functions whose names differ between releases.
const EXECUTE_PM4: &str = "AqlQueue::ExecutePM4";
const SIGNAL_STORE_RELAXED: &str = "the _ZThn thunk of StoreRelaxed";
const SIGNAL_STORE_RELEASE: &str = "the _ZThn thunk of StoreRelease";
const THUNKS: [(&str, &str); 2] = [
    (SIGNAL_STORE_RELAXED, STORE_RELAXED),
    (SIGNAL_STORE_RELEASE, STORE_RELEASE),
];

/// Searches by mangled names, in the library itself or in its separate debug file. `place` names the source.
pub(super) fn by_names<'a>(place: &str, symbols: impl Iterator<Item = (&'a str, u64)>) -> Search {
    let mut names = Names::default();
    let mut count = 0;
    for (name, vaddr) in symbols {
        count += 1;
        if let Some((function, offset)) = function_of(name) {
            let found = names.0.entry(function).or_default();
            // Two addresses are as bad as any larger number.
            if found.len() < 2 && !found.contains(&(vaddr, offset)) {
                found.push((vaddr, offset));
            }
        }
    }
    (format!("{place}, {count} functions"), names.queue())
}

/// Returns the function of `AqlQueue` that a symbol names, and the offset of the queue from the address in rdi.
fn function_of(symbol: &str) -> Option<(&'static str, i32)> {
    // A non-virtual thunk is named after its adjustment: _ZThn<bytes>_<name without _Z> (Itanium C++ ABI 5.1.4.2).
    if let Some((bytes, method)) = symbol.strip_prefix("_ZThn").and_then(|rest| rest.split_once('_')) {
        let mut thunks = THUNKS.into_iter();
        let (thunk, _) = thunks.find(|(_, of)| of.strip_prefix("_Z") == Some(method))?;
        return Some((thunk, -i32::from(bytes.parse::<u16>().ok()?)));
    }
    // A part that the compiler has split off has a suffix.
    if symbol.starts_with(EXECUTE_PM4_PREFIX) && !symbol.contains('.') {
        return Some((EXECUTE_PM4, 0));
    }
    let function = PLAIN.into_iter().find(|&name| name == symbol)?;
    Some((function, 0))
}

/// The places of each function of `AqlQueue`: its address, and the offset of the queue from the address in rdi.
#[derive(Default)]
struct Names(BTreeMap<&'static str, Vec<(u64, i32)>>);

impl Names {
    fn queue(&self) -> Result<AqlQueue, Absence> {
        if !self.0.contains_key(STORE_RELAXED) {
            return Err(Absence::NotNamed);
        }
        let vaddr = |function| self.get(function).map(|(vaddr, _)| vaddr);
        let (signal_store_relaxed, offset_to_top) = self.get(SIGNAL_STORE_RELAXED)?;
        Ok(AqlQueue {
            store_relaxed: vaddr(STORE_RELAXED)?,
            store_release: vaddr(STORE_RELEASE)?,
            signal_store_relaxed,
            signal_store_release: vaddr(SIGNAL_STORE_RELEASE)?,
            add_write_index: vaddr(ADD_WRITE_INDEX).ok(),
            store_write_index_relaxed: vaddr(STORE_WRITE_INDEX_RELAXED).ok(),
            store_write_index_release: vaddr(STORE_WRITE_INDEX_RELEASE).ok(),
            execute_pm4: vaddr(EXECUTE_PM4).ok(),
            offset_to_top,
        })
    }

    /// Returns the place of a function that must have exactly one.
    fn get(&self, function: &'static str) -> Result<(u64, i32), Absence> {
        match self.0.get(function).map_or(&[][..], Vec::as_slice) {
            [] => Err(Absence::SymbolMissing(function)),
            [one] => Ok(*one),
            [_, ..] => Err(Absence::SymbolAmbiguous(function)),
        }
    }
}

/// Returns the store functions in the signal parts of queue classes, except those that ring. They belong to the queues that a tool
/// puts in front of an `AqlQueue` (`InterceptQueue`).
pub(super) fn proxy_stores(
    functions: &Functions<'_>,
    classes: &[QueueClass],
    ringing: &[DoorbellFunction],
) -> BTreeSet<u64> {
    classes
        .iter()
        .flat_map(|class| [class.signal_store_relaxed, class.signal_store_release])
        .filter(|&vaddr| functions.code(vaddr).is_some())
        .filter(|&vaddr| ringing.iter().all(|function| function.vaddr != vaddr))
        .collect()
}

/// Searches a stripped library by the shape of its vtables and by the code of the virtual functions.
pub(super) fn by_vtable_shape(functions: &Functions<'_>, classes: &[QueueClass]) -> Search {
    let looked_at = match classes.len() {
        1 => "vtables, 1 pair of a queue and a signal".to_owned(),
        n => format!("vtables, {n} pairs of a queue and a signal"),
    };
    let mut found: Vec<(u64, AqlQueue)> = Vec::new();
    let mut silent = None;
    for class in classes {
        let Some(queue) = as_aql_queue(functions, class) else {
            continue;
        };
        let body = functions.body(queue.store_relaxed, MAX_LENGTH);
        let rings = body.is_some_and(|body| matches!(aql_doorbell(&effects(&body)), AqlShape::Rings(_)));
        if !rings {
            silent = Some(queue.store_relaxed);
        } else if found.iter().all(|(_, known)| *known != queue) {
            found.push((class.vaddr, queue));
        }
    }
    let found = match (found.as_slice(), silent) {
        ([(_, queue)], _) => Ok(*queue),
        ([(first, _), (second, _), ..], _) => Err(Absence::SeveralQueueClasses(*first, *second)),
        ([], Some(store_relaxed)) => Err(Absence::NoDoorbellStore(store_relaxed)),
        ([], None) => Err(Absence::NoQueueClass),
    };
    (looked_at, found)
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
fn as_aql_queue(functions: &Functions<'_>, class: &QueueClass) -> Option<AqlQueue> {
    let has = |vaddr: u64, longest: usize, wanted: fn(&Instruction) -> bool| {
        let body = functions.body(vaddr, longest);
        body.is_some_and(|body| body.instructions.iter().any(wanted))
    };
    let is_add = |i: &Instruction| i.mnemonic() == Mnemonic::Xadd && i.has_lock_prefix();
    let adds = |slot: &Option<u64>| slot.is_some_and(|vaddr| has(vaddr, MAX_ADD_WRITE_INDEX, is_add));
    let adding: Vec<bool> = class.slots.iter().map(adds).collect();
    let mut windows = adding.windows(ADD_WRITE_INDEX_VARIANTS);
    let first_add = windows.position(|window| window.iter().all(|&adds| adds))?;
    let slot = |at: Option<usize>| *class.slots.get(at?)?;
    let execute_pm4 = slot(first_add.checked_add(EXECUTE_PM4_AFTER_ADD))?;
    if functions.code(execute_pm4)?.bytes.len() < MIN_EXECUTE_PM4
        || !has(execute_pm4, MAX_EXECUTE_PM4, |i| i.mnemonic() == Mnemonic::Sfence)
    {
        return None;
    }
    let [.., Some(store_relaxed), Some(store_release)] = class.slots.as_slice() else {
        return None;
    };
    let stores = first_add.checked_sub(STORES_BEFORE_ADD);
    Some(AqlQueue {
        store_relaxed: *store_relaxed,
        store_release: *store_release,
        signal_store_relaxed: class.signal_store_relaxed,
        signal_store_release: class.signal_store_release,
        add_write_index: slot(Some(first_add)),
        store_write_index_relaxed: slot(stores),
        store_write_index_release: slot(stores.map(|first| first + 1)),
        execute_pm4: Some(execute_pm4),
        offset_to_top: class.offset_to_top,
    })
}
