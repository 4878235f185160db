//! Claims about copies, and about the share of operations that use a doorbell.

use super::super::checks::Checks;
use super::super::evidence::Observed;
use super::super::report::Standing;
use super::super::scenario::Asked;
use super::{READ_WARNINGS, number};

/// The shares that are about 90 %.
const ABOUT_90: std::ops::RangeInclusive<f64> = 85.0..=95.0;

/// The path on which copies were submitted.
struct Way {
    /// Whether they were submitted by doorbells. Otherwise they were jobs on rings of the driver.
    doorbells: bool,
    /// What the copies are among, in a sentence.
    sentence: String,
}

impl Way {
    /// Returns what this says about a claim that copies do not use doorbells.
    fn standing(&self) -> Standing {
        Standing::holds_if(!self.doorbells, Standing::Contradicted)
    }
}

/// Returns the path of all copies that a scenario requested; `None` if it is unknown.
fn way(asked: Asked, run: &Observed) -> Option<Way> {
    let copies = asked.copies;
    let sdma = run.summary.copies.by_path.doorbell?;
    let dispatches = run.summary.dispatches.by_path.doorbell?;
    let kernels = dispatches.saturating_sub(asked.dispatches);
    let jobs = run.copy_jobs.clients;
    let (doorbells, among) = if sdma >= copies {
        (
            true,
            format!("{sdma} submissions by doorbells of the process's own SDMA queues"),
        )
    } else if kernels >= copies {
        (true, format!("{kernels} kernels of the runtime, launched by doorbells"))
    } else if sdma == 0 && run.summary.ring_jobs.total.is_some() && jobs >= copies {
        (false, format!("{jobs} jobs of the process on sdma* rings"))
    } else {
        return None;
    };
    let sentence = format!("the {copies} copies are among {among}");
    Some(Way { doorbells, sentence })
}

/// Adds a check that says that the path of the copies is unknown.
fn unknown(what: &str, asked: Asked, run: &Observed, checks: &mut Checks) {
    let (copies, seen) = (asked.copies, number(run.summary.copies.by_path.doorbell));
    let sentence = format!("of {copies} copies, {seen} submissions by SDMA doorbells were seen");
    checks.lack(what, sentence, ("SDMA doorbell probes", READ_WARNINGS));
}

/// Judges claim C3.
pub(super) fn by_ring(asked: Asked, run: &Observed, checks: &mut Checks) {
    const WHAT: &str = "copies are jobs on sdma* rings of the driver";
    match way(asked, run) {
        None => unknown(WHAT, asked, run, checks),
        Some(way) => {
            checks
                .say(WHAT, way.standing(), way.sentence)
                .count("asked", Some(asked.copies))
                .count("sdma_doorbells", run.summary.copies.by_path.doorbell);
        }
    }
    match run.summary.ring_jobs.total {
        Some(_) => {
            let jobs = run.copy_jobs;
            checks.note(format!(
                "jobs of the process on sdma* and page* rings: {} submitted by it, {} the driver's own, {} of which the \
                 kernel does not tell",
                jobs.clients, jobs.own, jobs.unknown
            ));
        }
        None => checks.note("jobs on sdma* rings were not watched, and are not needed: every copy is accounted for"),
    }
    checks.note(
        "hipMemcpy itself is not called: for copies of this size it calls the same function of the runtime (rocblit.cpp)",
    );
}

/// Checks the part of claim C8 that needs no recording.
pub(super) fn arithmetic(checks: &mut Checks) {
    let (kernels, all) = (1000, 1000 + 10 + 10 + 2);
    let sentence = format!(
        "{kernels} of {all} is {:.2} %, and 100 of 110 is {:.1} %: the arithmetic is right",
        percent(kernels, all),
        percent(100, 110)
    );
    checks.say("1000 + 10 + 10 + 2 operations give 97.8 %", Standing::Holds, sentence);
}

/// Judges claim C8.
pub(super) fn share(asked: Asked, run: &Observed, checks: &mut Checks) {
    const PREMISE: &str = "copies do not use the doorbell";
    const SHARE: &str = "about 90 % of operations use the doorbell";
    let dispatches = run.summary.dispatches.by_path.doorbell;
    let (Some(way), Some(dispatches)) = (way(asked, run), dispatches.filter(|&n| n >= asked.dispatches)) else {
        return unknown(PREMISE, asked, run, checks);
    };
    let by_doorbell = asked.dispatches + if way.doorbells { asked.copies } else { 0 };
    checks.say(PREMISE, way.standing(), way.sentence);
    let all = asked.dispatches + asked.copies;
    let share = percent(by_doorbell, all);
    let standing = Standing::holds_if(ABOUT_90.contains(&share), Standing::Contradicted);
    let sentence = format!("of {all} kernels and copies, {by_doorbell} were submitted by doorbells: {share:.1} %");
    checks
        .say(SHARE, standing, sentence)
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
