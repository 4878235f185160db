//! Claims about kernel launches.

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::{count, no_ring, number, recorded, scheduled};
use tracer_core::verify::{Outcome, Scheduler};

const BY_DOORBELL: &str = "every kernel is launched by a doorbell";
const NO_JOB: &str = "no launch is a job on a ring of the driver";

/// Judges claim C1.
pub(super) fn by_doorbell(evidence: &Evidence, checks: &mut Checks) {
    let Some(run) = recorded(evidence, Scenario::Launches, checks) else {
        return;
    };
    if scheduled(Scheduler::Mes, run, checks) {
        doorbells(Scenario::Launches, run, checks);
        no_ring(NO_JOB, evidence, run, checks);
        checks.note("device-side enqueue is not part of this");
    }
}

/// Checks that doorbells published all packets, and that at least as many were dispatches as the scenario requested.
pub(super) fn doorbells(scenario: Scenario, run: &Observed, checks: &mut Checks) {
    let asked = scenario.asked().dispatches;
    let seen = run.summary.dispatches.by_path.doorbell;
    let rule = run.bypass("coverage");
    if rule.outcome == Outcome::Pass && seen < Some(asked) {
        let sentence = format!("of {asked} kernels, {} dispatches were seen", number(seen));
        checks.say(BY_DOORBELL, Standing::Inconclusive, sentence);
        return;
    }
    let check = checks.rule(BY_DOORBELL, rule, Standing::Holds, Standing::Contradicted);
    check.count("asked", Some(asked)).count("dispatches", seen);
    if check.verdict == Standing::Holds {
        check.evidence = format!(
            "{} dispatches, {asked} of them the program's, and {}",
            number(seen),
            rule.sentence
        );
    }
}

/// Judges claim C2.
pub(super) fn by_ring(evidence: &Evidence, checks: &mut Checks) {
    let Some(run) = recorded(evidence, Scenario::Launches, checks) else {
        return;
    };
    if !scheduled(Scheduler::Hws, run, checks) {
        return;
    }
    let (asked, doorbell) = (
        Scenario::Launches.asked().dispatches,
        run.summary.dispatches.by_path.doorbell,
    );
    let rule = run.jobs("ring-submission");
    let jobs = count(rule, "compute_jobs");
    let check = checks.rule(
        "kernels are jobs on comp_* rings",
        rule,
        Standing::Holds,
        Standing::Contradicted,
    );
    check
        .count("asked", Some(asked))
        .count("dispatches_by_doorbell", doorbell);
    if check.verdict == Standing::Contradicted {
        check.evidence = format!(
            "of {asked} kernels and the runtime's own, {} went by doorbells",
            number(doorbell)
        );
        check.evidence += &match jobs {
            Some(jobs) => format!(", and {jobs} as jobs on compute rings"),
            None => "; rings of the driver were not watched".to_owned(),
        };
    }
}

/// Judges claim C5.
pub(super) fn without_ioctl(evidence: &Evidence, checks: &mut Checks) {
    const WHAT: &str = "no ioctl between reserve and doorbell";
    let Some(run) = recorded(evidence, Scenario::Launches, checks) else {
        return;
    };
    let rule = run.bypass("no-syscall");
    let (asked, known) = (Scenario::Launches.asked().dispatches, count(rule, "dispatches"));
    if rule.outcome == Outcome::Pass && known < Some(asked) {
        let sentence = format!("of {asked} launches, the reserve of {} is known", number(known));
        checks.lack(
            WHAT,
            sentence,
            "reserves of all launches",
            "read the warnings of `tracer report TRACE`, and report this version of the library",
        );
        return;
    }
    let check = checks.rule(WHAT, rule, Standing::Holds, Standing::Contradicted);
    check.count("asked", Some(asked));
    if let Some(ioctls) = run.summary.ioctls.total {
        let check = check.count("ioctls", Some(ioctls));
        check.evidence += &format!("; the whole process made {ioctls} ioctls");
    }
    checks.notes.extend(rule.notes.iter().cloned());
}

/// Judges claim C7.
pub(super) fn failed(evidence: &Evidence, checks: &mut Checks) {
    let Some(run) = recorded(evidence, Scenario::Failures, checks) else {
        return;
    };
    let asked = Scenario::Failures.asked().dispatches;
    let dispatches = run.summary.dispatches.by_path.doorbell;
    let what = "launches that must fail were submitted";
    let sentence = format!(
        "{} dispatches, of which the GPU refuses one, and {} other packets, of which it refuses one, went by doorbells",
        number(dispatches),
        number(run.summary.packets.total)
    );
    let seen = dispatches >= Some(asked);
    let verdict = if seen { Standing::Holds } else { Standing::Inconclusive };
    checks.say(what, verdict, sentence).count("dispatches", dispatches);
    no_ring("none became a job on a ring of the driver", evidence, run, checks);
}
