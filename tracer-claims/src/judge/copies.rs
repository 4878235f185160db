//! Claims about copies, and about the share of operations that use a doorbell.

use super::super::checks::Checks;
use super::super::evidence::{Evidence, Observed};
use super::super::report::Standing;
use super::super::scenario::Scenario;
use super::{number, recorded};

/// The shares that are about 90 %.
const ABOUT_90: std::ops::RangeInclusive<f64> = 85.0..=95.0;

/// The path on which copies were submitted.
enum Way {
    /// By doorbells of SDMA queues.
    Sdma(u64),
    /// By doorbells of compute queues: the runtime copied by kernels.
    Kernels(u64),
    /// By jobs on rings of the driver.
    Jobs(u64),
}

/// Returns the path of all copies that a scenario requested; `None` if it is unknown.
fn way(scenario: Scenario, run: &Observed) -> Option<Way> {
    let asked = scenario.asked();
    let sdma = run.summary.copies.by_path.doorbell?;
    let kernels = run
        .summary
        .dispatches
        .by_path
        .doorbell?
        .saturating_sub(asked.dispatches);
    if sdma >= asked.copies {
        Some(Way::Sdma(sdma))
    } else if kernels >= asked.copies {
        Some(Way::Kernels(kernels))
    } else if sdma == 0 && run.summary.ring_jobs.total.is_some() && run.copy_jobs.clients >= asked.copies {
        Some(Way::Jobs(run.copy_jobs.clients))
    } else {
        None
    }
}

impl Way {
    fn sentence(&self, asked: u64) -> String {
        match self {
            Self::Sdma(n) => {
                format!("the {asked} copies are among {n} submissions by doorbells of the process's own SDMA queues")
            }
            Self::Kernels(n) => {
                format!("the {asked} copies are among {n} kernels of the runtime, launched by doorbells")
            }
            Self::Jobs(n) => format!("the {asked} copies are among {n} jobs of the process on sdma* rings"),
        }
    }

    fn doorbells(&self) -> bool {
        !matches!(self, Self::Jobs(_))
    }
}

/// Adds a check that says that the path of the copies is unknown.
fn untold(what: &str, scenario: Scenario, run: &Observed, checks: &mut Checks) {
    let sentence = format!(
        "of {} copies, {} submissions by SDMA doorbells were seen",
        scenario.asked().copies,
        number(run.summary.copies.by_path.doorbell)
    );
    checks.lack(
        what,
        sentence,
        "SDMA doorbell probes",
        "read the warnings of `tracer report TRACE`, and report this version of the library",
    );
}

/// Judges claim C3.
pub(super) fn by_ring(evidence: &Evidence, checks: &mut Checks) {
    const WHAT: &str = "copies are jobs on sdma* rings of the driver";
    let scenario = Scenario::Copies;
    let Some(run) = recorded(evidence, scenario, checks) else {
        return;
    };
    let asked = scenario.asked().copies;
    match way(scenario, run) {
        None => untold(WHAT, scenario, run, checks),
        Some(way) => {
            let standing = if way.doorbells() {
                Standing::Contradicted
            } else {
                Standing::Holds
            };
            checks
                .say(WHAT, standing, way.sentence(asked))
                .count("asked", Some(asked))
                .count("sdma_doorbells", run.summary.copies.by_path.doorbell);
        }
    }
    match run.summary.ring_jobs.total {
        Some(_) => {
            let jobs = run.copy_jobs;
            checks.note(format!(
                "jobs of the process on sdma* and page* rings: {} submitted by it, {} the driver's own, {} of which the \
                 kernel does not tell",
                jobs.clients, jobs.own, jobs.untold
            ));
        }
        None => checks.note("jobs on sdma* rings were not watched, and are not needed: every copy is accounted for"),
    }
    checks.note(
        "hipMemcpy itself is not called: for copies of this size it calls the same function of the runtime (rocblit.cpp)",
    );
}

/// Judges claim C8.
pub(super) fn share(evidence: &Evidence, checks: &mut Checks) {
    const PREMISE: &str = "copies do not use the doorbell";
    const SHARE: &str = "about 90 % of operations use the doorbell";
    let (kernels, others) = (1000_u64, 10 + 10 + 2);
    checks.say(
        "1000 + 10 + 10 + 2 operations give 97.8 %",
        Standing::Holds,
        format!(
            "1000 of {} is {:.2} %, and 100 of 110 is {:.1} %: the arithmetic is right",
            kernels + others,
            percent(kernels, kernels + others),
            percent(100, 110)
        ),
    );
    let scenario = Scenario::Inference;
    let Some(run) = recorded(evidence, scenario, checks) else {
        return;
    };
    let asked = scenario.asked();
    let dispatches = run.summary.dispatches.by_path.doorbell;
    let (Some(way), Some(dispatches)) = (way(scenario, run), dispatches.filter(|&n| n >= asked.dispatches)) else {
        return untold(PREMISE, scenario, run, checks);
    };
    let standing = if way.doorbells() {
        Standing::Contradicted
    } else {
        Standing::Holds
    };
    checks.say(PREMISE, standing, way.sentence(asked.copies));
    let by_doorbell = asked.dispatches + if way.doorbells() { asked.copies } else { 0 };
    let all = asked.dispatches + asked.copies;
    let share = percent(by_doorbell, all);
    let standing = if ABOUT_90.contains(&share) {
        Standing::Holds
    } else {
        Standing::Contradicted
    };
    checks
        .say(
            SHARE,
            standing,
            format!("of {all} kernels and copies, {by_doorbell} were submitted by doorbells: {share:.1} %"),
        )
        .count("operations", Some(all))
        .count("by_doorbell", Some(by_doorbell));
    if let (Some(ioctls), Some(copies)) = (run.summary.ioctls.total, run.summary.copies.by_path.doorbell) {
        let submissions = dispatches + copies;
        checks.note(format!(
            "counted otherwise: with the runtime's own, {submissions} submissions by doorbells and {ioctls} ioctls of the \
             whole process, {:.1} % of both",
            percent(submissions, submissions + ioctls)
        ));
    }
}

fn percent(part: u64, all: u64) -> f64 {
    part as f64 * 100.0 / all.max(1) as f64
}
