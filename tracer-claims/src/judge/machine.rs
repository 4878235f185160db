//! Claims about the properties of a machine or a library.

use std::collections::{BTreeMap, BTreeSet};

use super::super::checks::Checks;
use super::super::evidence::Evidence;
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::recorded;
use tracer_core::verify::{Device, Scheduler};
use tracer_core::words::Named;

/// `gfx_target_version` of MI250X and MI300X, and the other products that have the same.
const CLAIMED: [(u32, &str); 2] = [
    (90_010, "MI250X, MI250, MI210"),
    (90_402, "MI300X, MI300A, MI308X, MI325X"),
];
/// The first `gfx_target_version` with MES.
const FIRST_MES: u32 = 110_000;

/// Judges claim C11.
pub(super) fn streams(evidence: &Evidence, checks: &mut Checks) {
    const WHAT: &str = "each stream has a queue of its own";
    if let Some(reason) = evidence.failed.get(&Scenario::Streams) {
        checks.say(
            WHAT,
            Standing::NotTested,
            format!("the dispatcher can't use HIP here: {reason}"),
        );
        return;
    }
    let Some(run) = recorded(evidence, Scenario::Streams, checks) else {
        return;
    };
    let compute: BTreeSet<u32> = run
        .summary
        .queues
        .iter()
        .filter(|queue| queue.is_aql())
        .map(|queue| queue.queue)
        .collect();
    // No claim is about the default stream.
    let used = run
        .summary
        .streams
        .iter()
        .filter(|of| of.stream != 0 && compute.contains(&of.queue));
    let mut streams_of: BTreeMap<u32, BTreeSet<(u32, u64)>> = BTreeMap::new();
    for of in used {
        streams_of.entry(of.queue).or_default().insert((of.pid, of.stream));
    }
    let streams: BTreeSet<_> = streams_of.values().flatten().collect();
    let (streams, queues) = (streams.len() as u64, streams_of.len() as u64);
    let shared = streams_of.values().filter(|streams| streams.len() > 1).count() as u64;
    let check = if streams < 2 || !run.context.capabilities.api {
        checks.lack(
            WHAT,
            format!("kernels of {streams} streams were seen"),
            "calls of HIP",
            "read what `sudo tracer record --api hip` reports on libamdhip64.so",
        )
    } else if shared > 0 {
        let sentence =
            format!("kernels of {streams} streams were published on {queues} queues, {shared} of which had several");
        checks.say(WHAT, Standing::Contradicted, sentence)
    } else {
        let sentence =
            format!("kernels of {streams} streams were published on {queues} queues, and no queue had two streams");
        checks.say(WHAT, Standing::Holds, sentence)
    };
    check.count("streams", Some(streams)).count("queues", Some(queues));
}

/// Judges claim C12.
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
            format!("not present: {}; run it on a gfx942 or gfx90a", names.join(", ")),
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
        scheduler.map_or("unknown", |it| it.name()),
        gpu.evidence.join("; ")
    );
    if evidence.simulated().is_some() {
        checks.lack(
            &what,
            format!("{said}; the GPU is simulated, so this proves nothing about a real one"),
            "a real GPU",
            "run it on a machine with an MI300X or MI250X",
        );
        return;
    }
    match scheduler {
        // The claim is not supported by its own evidence.
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
                "check that /sys/devices/virtual/kfd/kfd/topology is readable, and run `sudo tracer doctor`",
            );
        }
    }
}
