//! Determines the fewest probes that see each doorbell exactly once, from `AqlQueue`'s four doorbell functions.
//!
//! A function is probed if and only if it contains the store itself. Usually this is only `StoreRelaxed`, to which the other
//! functions pass the call on. In 7.2.4 the compiler inlined its body into two of them, which then never reach it.

use super::aql_queue::AqlQueue;
use super::code::{Body, MAX_LENGTH};
use super::elf::Image;
use super::error::Absence;
use super::flow::{Effects, effects};
use super::functions::Functions;
use super::pattern::{AqlDoorbell, AqlShape, aql_doorbell};
use super::site::{Argument, choose, locate};
use super::step::{Confidence, ResolverStep};
use super::thunk;
use super::value::Value;
use super::{DoorbellFunction, DoorbellRole, DoorbellSite};

/// The object and the value, which the eBPF program reads at the site.
const NEEDED: [Argument; 2] = [Argument::Rdi, Argument::Rsi];

/// A doorbell function and its effects.
struct Entry {
    role: DoorbellRole,
    function: u64,
    /// Offset of the queue from the address that the function gets in rdi.
    adjustment: i32,
    body: Body,
    effects: Effects,
}

/// The result of a step of the ladder.
pub(super) struct Rung {
    /// The places for probes.
    pub(super) sites: Vec<DoorbellSite>,
    /// All functions that were examined.
    pub(super) functions: Vec<DoorbellFunction>,
    /// The doorbells that the probes miss.
    pub(super) missed: Vec<Absence>,
}

impl Rung {
    /// Describes each function and its effect.
    pub(super) fn words(&self) -> String {
        let words = self.functions.iter().map(|function| {
            let fate = if function.rings {
                "stores to the doorbell"
            } else {
                "hands over"
            };
            format!("{} at {:#x} {fate}", function.role, function.vaddr)
        });
        words.collect::<Vec<_>>().join("; ")
    }
}

/// Returns the probe sites of a queue class, and what they miss.
pub(super) fn rung(
    image: &Image<'_>,
    functions: &Functions,
    queue: &AqlQueue,
    step: ResolverStep,
) -> Result<Rung, Absence> {
    let mut entries: Vec<Entry> = Vec::new();
    for (role, function, adjustment) in queue.entries() {
        if entries.iter().all(|known| known.function != function) {
            entries.push(read(image, functions, role, function, adjustment)?);
        }
    }
    let mut missed = Vec::new();
    let mut ringing: Vec<(&Entry, AqlDoorbell)> = Vec::new();
    for entry in &entries {
        match aql_doorbell(&entry.effects) {
            AqlShape::Rings(doorbell) => ringing.push((entry, doorbell)),
            _ if entry.role == DoorbellRole::Main => return Err(Absence::NoDoorbellStore(entry.function)),
            AqlShape::NoStore if hands_over(entry, &entries) => {}
            AqlShape::NoStore => {
                missed.push(entry.absence(|role, function| Absence::NeitherStoresNorForwards { role, function }));
            }
            AqlShape::Unclear => {
                missed.push(entry.absence(|role, function| Absence::UnknownDoorbellStore { role, function }));
            }
        }
    }
    check_signal_offsets(&ringing)?;
    check_counted_once(&ringing)?;
    let sites: Result<_, _> = ringing
        .iter()
        .map(|(entry, doorbell)| site(image, step, entry, doorbell))
        .collect();
    let rings = |entry: &Entry| ringing.iter().any(|(ringing, _)| ringing.function == entry.function);
    let functions = entries
        .iter()
        .filter(|entry| rings(entry) || hands_over(entry, &entries));
    Ok(Rung {
        sites: sites?,
        functions: functions
            .map(|entry| DoorbellFunction {
                role: entry.role,
                vaddr: entry.function,
                adjustment: entry.adjustment,
                rings: rings(entry),
            })
            .collect(),
        missed,
    })
}

impl Entry {
    fn absence(&self, make: impl Fn(DoorbellRole, u64) -> Absence) -> Absence {
        make(self.role, self.function)
    }
}

fn read(
    image: &Image<'_>,
    functions: &Functions,
    role: DoorbellRole,
    function: u64,
    adjustment: i32,
) -> Result<Entry, Absence> {
    let code = functions
        .code(image, function)
        .filter(|code| code.bytes.len() <= MAX_LENGTH);
    let body = code
        .map(|code| Body::decode(code.vaddr, code.bytes))
        .filter(Body::is_complete);
    let body = body.ok_or(Absence::NotAFunction { role, function })?;
    Ok(Entry {
        role,
        function,
        adjustment,
        effects: effects(&body),
        body,
    })
}

/// Returns whether a function without a store passes its call on: to another entry, or to a slot of the queue's vtable.
fn hands_over(entry: &Entry, entries: &[Entry]) -> bool {
    let to_entry = entries
        .iter()
        .any(|other| entry.effects.callees.contains(&other.function));
    let mut indirect = entry.effects.indirect.iter();
    to_entry || indirect.any(|target| matches!(target, Value::FieldOf(vtable, _) if *vtable == entry.adjustment))
}

/// Checks that all functions find the same signal, whichever part of the object they get.
fn check_signal_offsets(ringing: &[(&Entry, AqlDoorbell)]) -> Result<(), Absence> {
    let Some((_, main)) = ringing.first() else {
        return Ok(());
    };
    for (entry, doorbell) in ringing {
        let (expected, found) = (
            main.signal_offset.saturating_add(entry.adjustment),
            doorbell.signal_offset,
        );
        if found != expected {
            let (role, function) = (entry.role, entry.function);
            return Err(Absence::SignalOffsetMismatch {
                role,
                function,
                found,
                expected,
            });
        }
    }
    Ok(())
}

/// Checks that no ringing function calls another one: its doorbells would count twice.
fn check_counted_once(ringing: &[(&Entry, AqlDoorbell)]) -> Result<(), Absence> {
    for (entry, _) in ringing {
        let callees = &entry.effects.callees;
        if let Some((other, _)) = ringing.iter().find(|(other, _)| callees.contains(&other.function)) {
            let callee = other.function;
            return Err(entry.absence(|role, function| Absence::CountsTwice { role, function, callee }));
        }
    }
    Ok(())
}

fn site(image: &Image<'_>, step: ResolverStep, entry: &Entry, doorbell: &AqlDoorbell) -> Result<DoorbellSite, Absence> {
    let probe = choose(&entry.body, &NEEDED, &doorbell.stores).and_then(|site| locate(image, entry.function, site));
    let signal_offset = i16::try_from(doorbell.signal_offset).ok();
    let no_probe_point = || entry.absence(|role, function| Absence::NoProbePoint { role, function });
    Ok(DoorbellSite {
        probe: probe.ok_or_else(no_probe_point)?,
        role: entry.role,
        signal_offset: signal_offset.ok_or(Absence::NoDoorbellStore(entry.function))?,
        value_register: Argument::Rsi,
        step,
        confidence: Confidence::Medium,
        doorbell_stores: doorbell.stores.clone(),
        thunk_bypass: doorbell.thunk_bypass,
        thunk_flags: doorbell
            .thunk_bypass
            .then(|| thunk::flags(&entry.body, &doorbell.stores))
            .flatten(),
    })
}
