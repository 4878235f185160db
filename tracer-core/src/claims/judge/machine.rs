//! Claims about what a machine or a library is like.

use super::super::checks::Checks;
use super::super::evidence::Evidence;
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::recorded;
use crate::verify::{Device, Scheduler};

/// `gfx_target_version` of MI250X and MI300X, and what else has the same.
const CLAIMED: [(u32, &str); 2] = [
    (90_010, "MI250X, MI250, MI210"),
    (90_402, "MI300X, MI300A, MI308X, MI325X"),
];
/// The first `gfx_target_version` with MES.
const FIRST_MES: u32 = 110_000;

/// C11.
pub(super) fn streams(checks: &mut Checks) {
    checks.say(
        "each stream has a queue of its own",
        Standing::NotTested,
        "the dispatcher uses HSA alone: a program with HIP streams is needed, of which `tracer report` shows the queues",
    );
}

/// C12.
pub(super) fn mes_of_mi300x(evidence: &Evidence, checks: &mut Checks) {
    let Some(run) = recorded(evidence, Scenario::Launches, checks) else {
        return;
    };
    let gpus = run.gpus();
    let claimed: Vec<(&Device, &str)> = gpus
        .iter()
        .filter_map(|gpu| {
            let (_, products) = CLAIMED.iter().find(|(version, _)| *version == gpu.gfx_target_version)?;
            Some((*gpu, *products))
        })
        .collect();
    if claimed.is_empty() {
        let names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        checks.say(
            "an MI300X or MI250X",
            Standing::NotTested,
            format!("not here: {}; run it on a gfx942 or gfx90a", names.join(", ")),
        );
        return;
    }
    for (gpu, products) in claimed {
        one(gpu, products, evidence, checks);
    }
}

fn one(gpu: &Device, products: &str, evidence: &Evidence, checks: &mut Checks) {
    let what = format!("the MES schedules {} ({products})", gpu.name);
    let scheduler = gpu.scheduler.filter(|_| !gpu.evidence.is_empty());
    let product = evidence.product.as_deref().unwrap_or("product unknown");
    let said = format!(
        "{product}: scheduler {} ({})",
        scheduler.map_or("unknown", Scheduler::name),
        gpu.evidence.join("; ")
    );
    if evidence.simulated().is_some() {
        checks.lack(
            &what,
            format!("{said}; the GPU is simulated, so this says nothing of a real one"),
            "a real GPU",
            "run it on a machine with an MI300X or MI250X",
        );
        return;
    }
    match scheduler {
        // A claim that its own evidence does not carry.
        Some(Scheduler::Mes)
            if !gpu
                .evidence
                .iter()
                .any(|words| words.contains("_mes") || words.contains("mes_")) =>
        {
            let sentence = format!("{said}; below {FIRST_MES}, only calls of the driver's functions would show that");
            checks.say(&what, Standing::Inconclusive, sentence);
        }
        Some(Scheduler::Mes) => {
            checks.say(&what, Standing::Holds, said);
        }
        Some(Scheduler::Hws | Scheduler::Nohws) => {
            checks.say(&what, Standing::Contradicted, said);
        }
        None => {
            checks.lack(
                &what,
                said,
                "what schedules its queues",
                "see that /sys/devices/virtual/kfd/kfd/topology is readable, and what `sudo tracer doctor` says",
            );
        }
    }
}
