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
use super::site::{Argument, probe_point};
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
pub(super) fn rung(functions: &Functions<'_>, queue: &AqlQueue, step: ResolverStep) -> Result<Rung, Absence> {
    let mut entries: Vec<Entry> = Vec::new();
    for (role, function, adjustment) in queue.entries() {
        if entries.iter().any(|known| known.function == function) {
            continue;
        }
        let body = functions.body(function, MAX_LENGTH).filter(|body| body.complete);
        let body = body.ok_or(Absence::NotAFunction(role, function))?;
        entries.push(Entry {
            role,
            function,
            adjustment,
            effects: effects(&body),
            body,
        });
    }
    let (mut examined, mut missed) = (Vec::new(), Vec::new());
    let mut ringing: Vec<(&Entry, AqlDoorbell)> = Vec::new();
    for entry in &entries {
        let (role, vaddr) = (entry.role, entry.function);
        let shape = aql_doorbell(&entry.effects);
        let rings = matches!(shape, AqlShape::Rings(_));
        let hands_over = hands_over(entry, &entries);
        if rings || hands_over {
            examined.push(DoorbellFunction {
                role,
                vaddr,
                adjustment: entry.adjustment,
                rings,
            });
        }
        match shape {
            AqlShape::Rings(doorbell) => ringing.push((entry, doorbell)),
            _ if role == DoorbellRole::Main => return Err(Absence::NoDoorbellStore(vaddr)),
            AqlShape::NoStore if hands_over => {}
            AqlShape::NoStore => missed.push(Absence::NeitherStoresNorForwards(role, vaddr)),
            AqlShape::Unclear => missed.push(Absence::UnknownDoorbellStore(role, vaddr)),
        }
    }
    check_signal_offsets(&ringing)?;
    check_counted_once(&ringing)?;
    let sites: Result<_, _> = ringing
        .iter()
        .map(|(entry, doorbell)| site(functions.image, step, entry, doorbell))
        .collect();
    Ok(Rung {
        sites: sites?,
        functions: examined,
        missed,
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

/// Checks that all functions find the same signal, whichever part of the object they get. The first function is `StoreRelaxed`.
fn check_signal_offsets(ringing: &[(&Entry, AqlDoorbell)]) -> Result<(), Absence> {
    let main = ringing.first().map_or(0, |(_, main)| main.signal_offset);
    for (entry, doorbell) in ringing {
        let (found, expected) = (doorbell.signal_offset, main.saturating_add(entry.adjustment));
        if found != expected {
            return Err(Absence::SignalOffsetMismatch {
                role: entry.role,
                function: entry.function,
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
            return Err(Absence::CountsTwice {
                role: entry.role,
                function: entry.function,
                callee: other.function,
            });
        }
    }
    Ok(())
}

fn site(image: &Image<'_>, step: ResolverStep, entry: &Entry, doorbell: &AqlDoorbell) -> Result<DoorbellSite, Absence> {
    let probe = probe_point(image, &entry.body, &NEEDED, &doorbell.stores);
    let signal_offset = i16::try_from(doorbell.signal_offset).ok();
    Ok(DoorbellSite {
        probe: probe.ok_or(Absence::NoProbePoint(entry.role, entry.function))?,
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
