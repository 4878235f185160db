//! Facts in the arguments of driver functions: doorbell, type and process of a queue. The kernel's BTF says where they are.

use std::collections::BTreeMap;

use tracer_common::driver_plan::{DriverPlan, FACTS, FactPlan, MAX_HOPS, fact};

use crate::kernel::btf::Btf;

/// A read from a structure: its name, and the path to the member.
type Hop = (&'static str, &'static [&'static str]);

const PROCESS: [Hop; 2] = [("kfd_process", &["lead_thread"]), ("task_struct", &["tgid"])];
const PASID: Hop = ("kfd_process", &["pasid"]);
const OF_QUEUE: Hop = ("queue", &["process"]);
const OF_MANAGER: Hop = ("process_queue_manager", &["process"]);
const OF_QPD: Hop = ("qcm_process_device", &["pqm"]);

/// The ways to facts. The first hop's structure is the one that a parameter points to.
///
/// The process of `mes_add_queue_input` is its address space: the driver passes the PASID there.
const WAYS: [(usize, &[Hop]); 16] = [
    (fact::DOORBELL, &[("queue", &["properties", "doorbell_off"])]),
    (fact::DOORBELL, &[("mes_add_queue_input", &["doorbell_offset"])]),
    (fact::DOORBELL, &[("mes_remove_queue_input", &["doorbell_offset"])]),
    (fact::TYPE, &[("queue", &["properties", "type"])]),
    (fact::TYPE, &[("queue_properties", &["type"])]),
    (fact::TYPE, &[("mes_add_queue_input", &["queue_type"])]),
    (fact::QUEUE_ID, &[("queue", &["properties", "queue_id"])]),
    (fact::PROCESS, &PROCESS),
    (fact::PROCESS, &[OF_QUEUE, PROCESS[0], PROCESS[1]]),
    (fact::PROCESS, &[OF_MANAGER, PROCESS[0], PROCESS[1]]),
    (fact::PROCESS, &[OF_QPD, OF_MANAGER, PROCESS[0], PROCESS[1]]),
    (fact::PASID, &[PASID]),
    (fact::PASID, &[OF_QUEUE, PASID]),
    (fact::PASID, &[OF_MANAGER, PASID]),
    (fact::PASID, &[OF_QPD, OF_MANAGER, PASID]),
    (fact::PASID, &[("mes_add_queue_input", &["process_id"])]),
];

/// The plan of a function, and the names of the queue types in its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The plan for the program.
    pub plan: DriverPlan,
    /// Queue types; empty if the kernel's type of it is a plain number.
    pub types: Vec<(u32, String)>,
}

/// Returns the plans of functions, by name, as far as the BTF shows their parameters.
#[must_use]
pub fn plans(btf: &Btf, functions: &[&str]) -> BTreeMap<String, Plan> {
    let parameters = btf.parameters(functions).into_iter();
    let plans = parameters.filter_map(|(name, parameters)| {
        let plan = plan(btf, &name, &parameters)?;
        Some((name, plan))
    });
    plans.collect()
}

/// Returns the plan of a function; `None` if its arguments lead to no fact.
fn plan(btf: &Btf, function: &str, parameters: &[Option<String>]) -> Option<Plan> {
    let mut found = Plan::default();
    // The driver chooses the doorbell in these.
    found.plan.at_return = u32::from(function.starts_with("create_queue_"));
    for number in 0..FACTS {
        let way = parameters.iter().enumerate().find_map(|(argument, structure)| {
            let ways = WAYS.iter().filter(|(fact, _)| *fact == number);
            let starts = |hops: &&[Hop]| hops.first().map(|(name, _)| *name) == structure.as_deref();
            let mut ways = ways.map(|(_, hops)| *hops).filter(starts);
            ways.find_map(|hops| follow(btf, argument, hops))
        });
        let Some((way, types)) = way else { continue };
        found.plan.facts[number] = way;
        if number == fact::TYPE {
            found.types = types;
        }
    }
    (found.plan.facts != [FactPlan::default(); FACTS]).then_some(found)
}

/// Returns a way with its offsets, and the names of the values at its end.
fn follow(btf: &Btf, argument: usize, hops: &[Hop]) -> Option<(FactPlan, Vec<(u32, String)>)> {
    let mut way = FactPlan {
        argument: u8::try_from(argument).ok()?,
        hops: u8::try_from(hops.len())
            .ok()
            .filter(|&hops| usize::from(hops) <= MAX_HOPS)?,
        ..FactPlan::default()
    };
    let mut values = Vec::new();
    for (number, (structure, path)) in hops.iter().enumerate() {
        let field = btf.field(structure, path)?;
        let is_last = number + 1 == hops.len();
        let readable = if is_last {
            matches!(field.bytes, 2 | 4 | 8)
        } else {
            field.bytes == 8
        };
        *way.offsets.get_mut(number)? = readable.then_some(field.offset)?;
        way.bytes = field.bytes as u8;
        values = field.enumerators;
    }
    Some((way, values))
}

/// Returns the name of a queue type, from the kernel's name of the value; a number without a name stays a number.
#[must_use]
pub fn type_name(types: &[(u32, String)], value: u64) -> String {
    let known = types.iter().find(|(number, _)| u64::from(*number) == value);
    known.map_or_else(
        || value.to_string(),
        |(_, name)| {
            let short = name.strip_prefix("KFD_QUEUE_TYPE_").unwrap_or(name);
            short.to_ascii_lowercase().replace('_', "-")
        },
    )
}

#[cfg(test)]
mod tests;
