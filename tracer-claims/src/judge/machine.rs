//! Claims about the properties of a machine or a library.

use std::collections::{BTreeMap, BTreeSet};

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use tracer_core::verify::{Device, Scheduler};
use tracer_core::words::Named;

/// `gfx_target_version` of MI250X and MI300X, and the other products that have the same.
const CLAIMED: [(u32, &str); 2] = [
    (90_010, "MI250X, MI250, MI210"),
    (90_402, "MI300X, MI300A, MI308X, MI325X"),
];
/// The first `gfx_target_version` with MES.
const FIRST_MES: u32 = 110_000;

const OWN_QUEUES: &str = "each stream has a queue of its own";

/// Judges claim C11 where the scenario failed: many machines have no HIP.
pub(super) fn without_hip(reason: &str, checks: &mut Checks) {
    let sentence = format!("the dispatcher can't use HIP here: {reason}");
    checks.say(OWN_QUEUES, Standing::NotTested, sentence);
}

/// Judges claim C11.
pub(super) fn streams(run: &Observed, checks: &mut Checks) {
    const CALLS: (&str, &str) = (
        "calls of HIP",
        "read what `sudo tracer record --api hip` reports on libamdhip64.so",
    );
    let compute = run.summary.queues.iter().filter(|queue| queue.is_aql());
    let compute: BTreeSet<u32> = compute.map(|queue| queue.queue).collect();
    let mut streams_of: BTreeMap<u32, BTreeSet<(u32, u64)>> = BTreeMap::new();
    for of in &run.summary.streams {
        // No claim is about the default stream.
        if of.stream != 0 && compute.contains(&of.queue) {
            streams_of.entry(of.queue).or_default().insert((of.pid, of.stream));
        }
    }
    let streams: BTreeSet<_> = streams_of.values().flatten().collect();
    let (streams, queues) = (streams.len() as u64, streams_of.len() as u64);
    let shared = streams_of.values().filter(|streams| streams.len() > 1).count() as u64;
    let check = if streams < 2 || !run.context.capabilities.api {
        checks.lack(OWN_QUEUES, format!("kernels of {streams} streams were seen"), CALLS)
    } else {
        let which = match shared {
            0 => "and no queue had two streams".to_owned(),
            _ => format!("{shared} of which had several"),
        };
        let sentence = format!("kernels of {streams} streams were published on {queues} queues, {which}");
        let verdict = Standing::holds_if(shared == 0, Standing::Contradicted);
        checks.say(OWN_QUEUES, verdict, sentence)
    };
    check.count("streams", Some(streams)).count("queues", Some(queues));
}

/// Judges claim C12.
pub(super) fn mes_of_mi300x(evidence: &Evidence, run: &Observed, checks: &mut Checks) {
    let gpus = run.gpus();
    let mut present = false;
    for gpu in &gpus {
        if let Some((_, products)) = CLAIMED.iter().find(|(version, _)| *version == gpu.gfx_target_version) {
            present = true;
            one(gpu, products, evidence, checks);
        }
    }
    if !present {
        let names: Vec<&str> = gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        let sentence = format!("not present: {}; run it on a gfx942 or gfx90a", names.join(", "));
        checks.say("an MI300X or MI250X", Standing::NotTested, sentence);
    }
}

fn one(gpu: &Device, products: &str, evidence: &Evidence, checks: &mut Checks) {
    const REAL_GPU: (&str, &str) = ("a real GPU", "run it on a machine with an MI300X or MI250X");
    const SCHEDULER: (&str, &str) = (
        "what schedules its queues",
        "check that /sys/devices/virtual/kfd/kfd/topology is readable, and run `sudo tracer doctor`",
    );
    let what = format!("the MES schedules {} ({products})", gpu.name);
    let scheduler = gpu.scheduler.filter(|_| !gpu.evidence.is_empty());
    let product = evidence.product.as_deref().unwrap_or("product unknown");
    let name = scheduler.map_or("unknown", |it| it.name());
    let said = format!("{product}: scheduler {name} ({})", gpu.evidence.join("; "));
    let by_calls = |words: &String| words.contains("_mes") || words.contains("mes_");
    match scheduler {
        _ if evidence.simulated().is_some() => {
            let sentence = format!("{said}; the GPU is simulated, so this proves nothing about a real one");
            checks.lack(&what, sentence, REAL_GPU)
        }
        // The claim is not supported by its own evidence.
        Some(Scheduler::Mes) if !gpu.evidence.iter().any(by_calls) => {
            let sentence = format!("{said}; below {FIRST_MES}, only calls of the driver's functions would show that");
            checks.say(&what, Standing::Inconclusive, sentence)
        }
        Some(Scheduler::Mes) => checks.say(&what, Standing::Holds, said),
        Some(Scheduler::Hws | Scheduler::Nohws) => checks.say(&what, Standing::Contradicted, said),
        None => checks.lack(&what, said, SCHEDULER),
    };
}
