//! Claims about kernel launches.

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Asked;
use super::{READ_WARNINGS, count, no_ring, number, scheduled};
use tracer_core::verify::{Outcome, Scheduler};

const BY_DOORBELL: &str = "every kernel is launched by a doorbell";

/// Judges claim C1.
pub(super) fn by_doorbell(asked: Asked, evidence: &Evidence, run: &Observed, checks: &mut Checks) {
    if scheduled(Scheduler::Mes, run, checks) {
        doorbells(asked.dispatches, run, checks);
        no_ring("no launch is a job on a ring of the driver", evidence, run, checks);
        checks.note("device-side enqueue is not part of this");
    }
}

/// Checks that doorbells published all packets, and that at least as many were dispatches as the scenario requested.
pub(super) fn doorbells(asked: u64, run: &Observed, checks: &mut Checks) {
    let seen = run.summary.dispatches.by_path.doorbell;
    let rule = run.rule("coverage");
    if rule.outcome == Outcome::Pass && seen < Some(asked) {
        let sentence = format!("of {asked} kernels, {} dispatches were seen", number(seen));
        checks.say(BY_DOORBELL, Standing::Inconclusive, sentence);
        return;
    }
    let check = checks.rule(BY_DOORBELL, rule);
    check.count("asked", Some(asked)).count("dispatches", seen);
    if check.verdict == Standing::Holds {
        let (seen, rule) = (number(seen), &rule.sentence);
        check.evidence = format!("{seen} dispatches, {asked} of them the program's, and {rule}");
    }
}

/// Judges claim C2.
pub(super) fn by_ring(asked: Asked, run: &Observed, checks: &mut Checks) {
    if !scheduled(Scheduler::Hws, run, checks) {
        return;
    }
    let (asked, doorbell) = (asked.dispatches, run.summary.dispatches.by_path.doorbell);
    let rule = run.rule("ring-submission");
    let check = checks.rule("kernels are jobs on comp_* rings", rule);
    check
        .count("asked", Some(asked))
        .count("dispatches_by_doorbell", doorbell);
    if check.verdict == Standing::Contradicted {
        let doorbell = number(doorbell);
        check.evidence = format!("of {asked} kernels and the runtime's own, {doorbell} went by doorbells");
        check.evidence += &match count(rule, "compute_jobs") {
            Some(jobs) => format!(", and {jobs} as jobs on compute rings"),
            None => "; rings of the driver were not watched".to_owned(),
        };
    }
}

/// Judges claim C5.
pub(super) fn without_ioctl(asked: Asked, run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "no ioctl between reserve and doorbell";
    let rule = run.rule("no-syscall");
    let (asked, known) = (asked.dispatches, count(rule, "dispatches"));
    if rule.outcome == Outcome::Pass && known < Some(asked) {
        let sentence = format!("of {asked} launches, the reserve of {} is known", number(known));
        checks.lack(WHAT, sentence, ("reserves of all launches", READ_WARNINGS));
        return;
    }
    let check = checks.rule(WHAT, rule);
    check.count("asked", Some(asked));
    if let Some(ioctls) = run.summary.ioctls.total {
        let check = check.count("ioctls", Some(ioctls));
        check.evidence += &format!("; the whole process made {ioctls} ioctls");
    }
    checks.notes.extend_from_slice(&rule.notes);
}

/// Judges claim C7.
pub(super) fn failed(asked: Asked, evidence: &Evidence, run: &Observed, checks: &mut Checks) {
    let dispatches = run.summary.dispatches.by_path.doorbell;
    let sentence = format!(
        "{} dispatches, of which the GPU refuses one, and {} other packets, of which it refuses one, went by doorbells",
        number(dispatches),
        number(run.summary.packets.total)
    );
    let verdict = Standing::holds_if(dispatches >= Some(asked.dispatches), Standing::Inconclusive);
    let check = checks.say("launches that must fail were submitted", verdict, sentence);
    check.count("dispatches", dispatches);
    no_ring("none became a job on a ring of the driver", evidence, run, checks);
}
