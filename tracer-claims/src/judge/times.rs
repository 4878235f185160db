//! Claims about times. The times are measured and shown; on a simulated GPU they decide nothing.

use std::ops::RangeInclusive;

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::{READ_WARNINGS, SYSCALL_EVENTS};
use tracer_core::tally::Stats;

/// The longest time of a store that is "about 100 to 150 ns".
const STORE_NS: u64 = 150;
/// The times of an ioctl that are "about 1 us".
const IOCTL_NS: RangeInclusive<u64> = 500..=2000;

const REAL_GPU: (&str, &str) = ("a real GPU", "run it on a machine with a GPU");

/// Judges claim C9.
pub(super) fn doorbell_and_ioctl(run: &Observed, checks: &mut Checks) {
    store(run, checks);
    ioctl(run, checks);
}

fn store(run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "a doorbell store takes about 100 to 150 ns";
    const STORE_ALONE: (&str, &str) = (
        "the time of the store alone",
        "time it without probes: `hsa-dispatch burst` prints submit_ns, from reserve to doorbell",
    );
    let Some(Stats { min, p50, .. }) = run.summary.doorbells.reserve_to_doorbell_ns else {
        let sentence = "no time from reserve to doorbell was measured";
        checks.lack(WHAT, sentence, ("reserve probes", READ_WARNINGS));
        return;
    };
    let measured =
        format!("measured here: reserve, packet, store and probes took {min} ns at the least, {p50} ns in the median");
    let check = if run.context.simulated.is_some() {
        let sentence = format!("{measured}; on a simulated GPU the store goes to memory");
        checks.lack(WHAT, sentence, REAL_GPU)
    } else if min <= STORE_NS {
        let sentence = format!("{measured}: the store takes less than that");
        checks.say(WHAT, Standing::Holds, sentence)
    } else {
        let sentence = format!("{measured}: an upper bound above {STORE_NS} ns says nothing about the store alone");
        checks.lack(WHAT, sentence, STORE_ALONE)
    };
    check.count("min_ns", Some(min)).count("p50_ns", Some(p50));
}

fn ioctl(run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "an ioctl takes about 1 us";
    const NO_PROBES: (&str, &str) = ("the time without probes", "compare with `strace -T` or `perf trace`");
    let calls = &run.summary.ioctls.by_name;
    let timed = calls.iter().filter_map(|(name, calls)| Some((calls.ns?.p50, name)));
    let shortest = run.summary.ioctls.total.and_then(|_| timed.min());
    let Some((p50, name)) = shortest else {
        checks.lack(WHAT, "no ioctl was timed", SYSCALL_EVENTS);
        return;
    };
    let measured = format!("measured here: the kind with the shortest median is {name} with {p50} ns, probes included");
    let check = if run.context.simulated.is_some() {
        let sentence = format!("{measured}; a program in user space answers it");
        checks.lack(WHAT, sentence, REAL_GPU)
    } else if IOCTL_NS.contains(&p50) {
        checks.say(WHAT, Standing::Holds, measured)
    } else if p50 < *IOCTL_NS.start() {
        checks.say(WHAT, Standing::Contradicted, format!("{measured}, which is less"))
    } else {
        let sentence = format!("{measured}: the share of the probes is unknown");
        checks.lack(WHAT, sentence, NO_PROBES)
    };
    check.count("shortest_p50_ns", Some(p50));
    checks.note("no ioctl submits a kernel: these ioctls have other purposes");
}

/// The times that agree with C10, for one call. No source says how much the time varied.
const QUEUE_CREATE_NS: RangeInclusive<u64> = 5_500_000..=22_000_000;

/// Judges claim C10.
pub(super) fn of_an_mi308x(evidence: &Evidence, checks: &mut Checks) {
    const WHAT: &str = "hsa_queue_create costs about 11 ms";
    let product = evidence.product.as_deref().unwrap_or("unknown");
    let summary = evidence.runs.get(&Scenario::Streams).map(|run| &run.summary);
    let made = summary.and_then(|summary| {
        let calls = summary.api_calls.by_function.get("hsa_queue_create")?;
        Some((calls.count, calls.ns?))
    });
    let create = summary.and_then(|summary| {
        let calls = summary.ioctls.by_name.get("CREATE_QUEUE")?;
        Some((calls.count, calls.ns?))
    });
    let (verdict, mut sentence) = match made {
        _ if !product.contains("MI308X") || evidence.simulated().is_some() => {
            (Standing::NotTested, format!("the GPU here is {product}"))
        }
        None => (Standing::NotTested, "tracer saw no call of it".to_owned()),
        Some((_, ns)) if QUEUE_CREATE_NS.contains(&ns.p50) => (Standing::Holds, "so it is here".to_owned()),
        Some(_) => (Standing::Contradicted, "not so here".to_owned()),
    };
    let times = |(count, Stats { p50, max, .. }): (u64, Stats)| {
        format!("{p50} ns in the median and {max} ns at the most, of {count}")
    };
    if let Some(times) = made.map(times) {
        sentence += &format!("; measured here: {times}, probes included");
    }
    if let Some(times) = create.map(times) {
        sentence += &format!("; CREATE_QUEUE took {times}");
    }
    let check = checks.say(WHAT, verdict, sentence);
    for (name, times) in [("hsa_queue_create_p50_ns", made), ("create_queue_p50_ns", create)] {
        if let Some((_, ns)) = times {
            check.count(name, Some(ns.p50));
        }
    }
    checks.say(
        "the first hipLaunchKernel costs 748 us, and 99 % of HIP's time is hipMemcpy",
        Standing::NotTested,
        "these numbers are of one program that is not available here: record it with `--api hip`, and `tracer report` shows its numbers",
    );
}
