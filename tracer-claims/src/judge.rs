//! Derives the verdict on a claim from evidence.

mod copies;
mod launches;
mod machine;
mod queues;
mod times;

use super::catalog::Claim;
use super::checks::Checks;
use super::evidence::{Evidence, Observed};
use super::report::{ClaimVerdict, Standing};
use super::scenario::Scenario;
use tracer_core::verify::{Outcome, RuleVerdict, Scheduler};
use tracer_core::words::Named;

/// What to do about calls of a library that were not seen.
const READ_WARNINGS: &str = "read the warnings of `tracer report TRACE`, and report this version of the library";

/// The source of ioctls, and how to get it.
const SYSCALL_EVENTS: (&str, &str) = ("system call events", "run it on a kernel with CONFIG_FTRACE_SYSCALLS");

/// Judges a claim.
#[must_use]
pub fn judge(claim: &Claim, evidence: &Evidence) -> ClaimVerdict {
    let mut checks = Checks::default();
    check(claim, evidence, &mut checks);
    let verdict = checks.verdict();
    let expected = claim.sources_verdict.filter(|_| verdict.decided());
    let simulated = evidence.simulated();
    ClaimVerdict {
        id: claim.id.to_owned(),
        claim: claim.text.to_owned(),
        sources: claim.sources.to_owned(),
        sources_verdict: claim.sources_verdict,
        scenario: Some(claim.scenario.workload().join(" ")),
        checked: claim.checked.to_owned(),
        verdict,
        as_sources_say: expected.map(|expected| verdict == expected),
        checks: checks.checks,
        notes: checks.notes,
        simulated: simulated.map(|sign| format!("{sign}: {}", claim.simulated)),
    }
}

/// Adds the checks of a claim.
fn check(claim: &Claim, evidence: &Evidence, checks: &mut Checks) {
    match (claim.id, evidence.failed.get(&claim.scenario)) {
        ("C8", _) => copies::arithmetic(checks),
        ("C10", _) => return times::of_an_mi308x(evidence, checks),
        ("C11", Some(reason)) => return machine::without_hip(reason, checks),
        _ => {}
    }
    let Some(run) = recorded(evidence, claim.scenario, checks) else {
        return;
    };
    let asked = claim.scenario.asked();
    match claim.id {
        "C1" => launches::by_doorbell(asked, evidence, run, checks),
        "C2" => launches::by_ring(asked, run, checks),
        "C3" => copies::by_ring(asked, run, checks),
        "C4" => queues::by_mes(asked, evidence, run, checks),
        "C5" => launches::without_ioctl(asked, run, checks),
        "C6" => queues::cooperative(asked, run, checks),
        "C7" => launches::failed(asked, evidence, run, checks),
        "C8" => copies::share(asked, run, checks),
        "C9" => times::doorbell_and_ioctl(run, checks),
        "C11" => machine::streams(run, checks),
        "C12" => machine::mes_of_mi300x(evidence, run, checks),
        _ => {}
    }
}

impl Evidence {
    /// Returns the evidence that GPUs were simulated.
    #[must_use]
    pub fn simulated(&self) -> Option<&str> {
        self.runs.values().find_map(|run| run.context.simulated.as_deref())
    }
}

/// Returns the recording of a scenario, if it is evidence; otherwise adds checks that say why it is not.
fn recorded<'e>(evidence: &'e Evidence, scenario: Scenario, checks: &mut Checks) -> Option<&'e Observed> {
    const WHAT: &str = "the scenario runs and is recorded";
    let name = scenario.name();
    if let Some(reason) = evidence.failed.get(&scenario) {
        checks.lack(
            WHAT,
            format!("the scenario {name} did not succeed: {reason}"),
            ("the scenario", "fix what it reports, and run it again"),
        );
        return None;
    }
    let Some(run) = evidence.runs.get(&scenario) else {
        checks.say(WHAT, Standing::NotTested, format!("the scenario {name} was not run"));
        return None;
    };
    let unsound = run.unsound();
    for rule in &unsound {
        let check = checks.rule(WHAT, rule);
        // A bad recording says nothing about the claim.
        check.verdict = check.verdict.min(Standing::Inconclusive);
    }
    unsound.is_empty().then_some(run)
}

/// Returns whether the GPUs in use have the scheduler that a claim is about; adds a check if they do not, or if that is unknown.
fn scheduled(scheduler: Scheduler, run: &Observed, checks: &mut Checks) -> bool {
    let what = format!("a GPU that the {} schedules", scheduler.name().to_uppercase());
    let rule = run.scheduler(scheduler);
    match rule.outcome {
        Outcome::Pass | Outcome::Warn => {
            checks.notes.extend_from_slice(&rule.notes);
            return true;
        }
        Outcome::Fail => {
            let here: Vec<&str> = rule.offenders.iter().map(|offender| offender.what.as_str()).collect();
            let sentence = format!("not present: {}; run it on such a GPU", here.join(", "));
            checks.say(&what, Standing::NotTested, sentence);
        }
        Outcome::Inconclusive => {
            checks.rule(&what, rule);
        }
    }
    false
}

/// Checks that the traced process submitted no job on a compute or graphics ring.
///
/// An event that never fired proves nothing: if there was a control command, which does submit such jobs, tracer must have seen
/// its jobs.
fn no_ring(what: &str, evidence: &Evidence, run: &Observed, checks: &mut Checks) {
    const RING_EVENTS: (&str, &str) = (
        "gpu_scheduler events",
        "load the driver (`sudo modprobe amdgpu`), check `sudo ls /sys/kernel/tracing/events/gpu_scheduler`, and run \
         `sudo tracer verify --claims` again",
    );
    const CONTROL_JOBS: (&str, &str) = (
        "jobs of the control command",
        "name a command that submits jobs on compute rings with --control",
    );
    let rule = run.rule("no-ring");
    if !run.context.capabilities.kernel_rings {
        let sentence = "rings of the kernel driver were not watched: the kernel had no `gpu_scheduler` events";
        checks.lack(what, sentence, RING_EVENTS);
        return;
    }
    let control = evidence.control.as_ref().map(Observed::ring_jobs);
    if rule.outcome == Outcome::Pass && control.is_some_and(|jobs| jobs.unwrap_or(0) == 0) {
        let sentence = "tracer saw no job of the control command either, so this proves nothing";
        checks.lack(what, sentence, CONTROL_JOBS);
        return;
    }
    let check = checks.rule(what, rule);
    match control.flatten() {
        Some(jobs) => {
            check.count("control_jobs", Some(jobs));
            check.evidence += &format!("; of the control command, {jobs} such jobs were seen");
        }
        None => checks
            .note("no control command ran: only the attached events show that tracer would see such jobs (--control)"),
    }
    checks.notes.extend_from_slice(&rule.notes);
}

impl Observed {
    /// Returns the number of jobs on compute and graphics rings that traced processes submitted; `None` if rings were not
    /// watched.
    #[must_use]
    pub fn ring_jobs(&self) -> Option<u64> {
        count(self.rule("no-ring"), "jobs_of_traced_processes")
    }
}

/// Returns a count of a rule; `None` if tracer did not watch what is counted.
fn count(rule: &RuleVerdict, name: &str) -> Option<u64> {
    rule.counts.get(name).copied().flatten()
}

/// Returns a number in words, as it may be unknown.
fn number(count: Option<u64>) -> String {
    count.map_or_else(|| "an unknown number of".to_owned(), |count| count.to_string())
}
