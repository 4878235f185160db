//! Claims about times. The times are measured and shown; on a simulated GPU they decide nothing.

use std::ops::RangeInclusive;

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::recorded;

/// The longest time of a store that is "about 100 to 150 ns".
const STORE_NS: u64 = 150;
/// The times of an ioctl that are "about 1 us".
const IOCTL_NS: RangeInclusive<u64> = 500..=2000;

const REAL: &str = "run it on a machine with a GPU";

/// Judges claim C9.
pub(super) fn doorbell_and_ioctl(evidence: &Evidence, checks: &mut Checks) {
    let Some(run) = recorded(evidence, Scenario::Launches, checks) else {
        return;
    };
    store(run, checks);
    ioctl(run, checks);
}

fn store(run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "a doorbell store takes about 100 to 150 ns";
    let Some(ns) = run.summary.doorbells.reserve_to_doorbell_ns else {
        checks.lack(
            WHAT,
            "no time from reserve to doorbell was measured",
            "reserve probes",
            "read the warnings of `tracer report TRACE`, and report this version of the library",
        );
        return;
    };
    let measured = format!(
        "measured here: reserve, packet, store and probes took {} ns at the least, {} ns in the median",
        ns.min, ns.p50
    );
    let simulated = run.context.simulated.is_some();
    let check = if simulated {
        let sentence = format!("{measured}; on a simulated GPU the store goes to memory");
        checks.lack(WHAT, sentence, "a real GPU", REAL)
    } else if ns.min <= STORE_NS {
        checks.say(
            WHAT,
            Standing::Holds,
            format!("{measured}: the store takes less than that"),
        )
    } else {
        checks.lack(
            WHAT,
            format!("{measured}: an upper bound above {STORE_NS} ns says nothing about the store alone"),
            "the time of the store alone",
            "time it without probes: `hsa-dispatch burst` prints submit_ns, from reserve to doorbell",
        )
    };
    check.count("min_ns", Some(ns.min)).count("p50_ns", Some(ns.p50));
}

fn ioctl(run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "an ioctl takes about 1 us";
    let calls = &run.summary.ioctls.by_name;
    let timed = calls.iter().filter_map(|(name, calls)| Some((calls.ns?.p50, name)));
    let shortest = run.summary.ioctls.total.and_then(|_| timed.min());
    let Some((p50, name)) = shortest else {
        checks.lack(
            WHAT,
            "no ioctl was timed",
            "system call events",
            "run it on a kernel with CONFIG_FTRACE_SYSCALLS",
        );
        return;
    };
    let measured = format!("measured here: the kind with the shortest median is {name} with {p50} ns, probes included");
    let check = if run.context.simulated.is_some() {
        let sentence = format!("{measured}; a program in user space answers it");
        checks.lack(WHAT, sentence, "a real GPU", REAL)
    } else if IOCTL_NS.contains(&p50) {
        checks.say(WHAT, Standing::Holds, measured)
    } else if p50 < *IOCTL_NS.start() {
        checks.say(WHAT, Standing::Contradicted, format!("{measured}, which is less"))
    } else {
        let sentence = format!("{measured}: the share of the probes is unknown");
        checks.lack(
            WHAT,
            sentence,
            "the time without probes",
            "compare with `strace -T` or `perf trace`",
        )
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
    let run = evidence.runs.get(&Scenario::Streams);
    let calls = run.and_then(|run| run.summary.api_calls.by_function.get("hsa_queue_create"));
    let create = run.and_then(|run| {
        let calls = run.summary.ioctls.by_name.get("CREATE_QUEUE")?;
        Some((calls.count, calls.ns?))
    });
    let made = calls.and_then(|calls| Some((calls.count, calls.ns?)));
    let (verdict, mut sentence) = match made {
        _ if !product.contains("MI308X") || evidence.simulated().is_some() => {
            (Standing::NotTested, format!("the GPU here is {product}"))
        }
        None => (Standing::NotTested, "tracer saw no call of it".to_owned()),
        Some((_, ns)) if QUEUE_CREATE_NS.contains(&ns.p50) => (Standing::Holds, "so it is here".to_owned()),
        Some(_) => (Standing::Contradicted, "not so here".to_owned()),
    };
    if let Some((count, ns)) = made {
        sentence += &format!(
            "; measured here: {} ns in the median and {} ns at the most, of {count}, probes included",
            ns.p50, ns.max
        );
    }
    if let Some((count, ns)) = create {
        sentence += &format!(
            "; CREATE_QUEUE took {} ns in the median and {} ns at the most, of {count}",
            ns.p50, ns.max
        );
    }
    let check = checks.say(WHAT, verdict, sentence);
    if let Some((_, ns)) = made {
        check.count("hsa_queue_create_p50_ns", Some(ns.p50));
    }
    if let Some((_, ns)) = create {
        check.count("create_queue_p50_ns", Some(ns.p50));
    }
    checks.say(
        "the first hipLaunchKernel costs 748 us, and 99 % of HIP's time is hipMemcpy",
        Standing::NotTested,
        "these numbers are of one program that is not available here: record it with `--api hip`, and `tracer report` shows its numbers",
    );
}
