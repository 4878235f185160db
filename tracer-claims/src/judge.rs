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

/// Judges a claim.
#[must_use]
pub fn judge(claim: &Claim, evidence: &Evidence) -> ClaimVerdict {
    let mut checks = Checks::default();
    match claim.id {
        "C1" => launches::by_doorbell(evidence, &mut checks),
        "C2" => launches::by_ring(evidence, &mut checks),
        "C3" => copies::by_ring(evidence, &mut checks),
        "C4" => queues::by_mes(evidence, &mut checks),
        "C5" => launches::without_ioctl(evidence, &mut checks),
        "C6" => queues::cooperative(evidence, &mut checks),
        "C7" => launches::failed(evidence, &mut checks),
        "C8" => copies::share(evidence, &mut checks),
        "C9" => times::doorbell_and_ioctl(evidence, &mut checks),
        "C10" => times::of_an_mi308x(evidence, &mut checks),
        "C11" => machine::streams(evidence, &mut checks),
        "C12" => machine::mes_of_mi300x(evidence, &mut checks),
        _ => {}
    }
    let verdict = checks.verdict();
    let simulated = evidence.simulated().filter(|_| claim.scenario.is_some());
    let expected = claim.sources_verdict.filter(|_| verdict.decided());
    ClaimVerdict {
        id: claim.id.to_owned(),
        claim: claim.text.to_owned(),
        sources: claim.sources.to_owned(),
        sources_verdict: claim.sources_verdict,
        scenario: claim.scenario.map(|scenario| scenario.workload().join(" ")),
        checked: claim.checked.to_owned(),
        verdict,
        as_sources_say: expected.map(|expected| verdict == expected),
        checks: checks.checks,
        notes: checks.notes,
        simulated: simulated.map(|sign| format!("{sign}: {}", claim.simulated)),
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
            "the scenario",
            "fix what it reports, and run it again",
        );
        return None;
    }
    let Some(run) = evidence.runs.get(&scenario) else {
        checks.say(WHAT, Standing::NotTested, format!("the scenario {name} was not run"));
        return None;
    };
    let unsound = run.unsound();
    for rule in &unsound {
        checks.rule(WHAT, rule, Standing::Holds, Standing::Inconclusive);
    }
    unsound.is_empty().then_some(run)
}

/// Returns whether the GPUs in use have the scheduler that a claim is about; adds a check if they do not, or if that is unknown.
fn scheduled(scheduler: Scheduler, run: &Observed, checks: &mut Checks) -> bool {
    let rule = match scheduler {
        Scheduler::Mes => run.bypass("scheduler"),
        Scheduler::Hws | Scheduler::Nohws => run.jobs("scheduler"),
    };
    let what = match scheduler {
        Scheduler::Mes => "a GPU that the MES schedules",
        Scheduler::Hws | Scheduler::Nohws => "a GPU that the HWS schedules",
    };
    match rule.outcome {
        Outcome::Pass | Outcome::Warn => {
            checks.notes.extend(rule.notes.iter().cloned());
            return true;
        }
        Outcome::Fail => {
            let here: Vec<String> = rule.offenders.iter().map(|offender| offender.what.clone()).collect();
            checks.say(
                what,
                Standing::NotTested,
                format!("not present: {}; run it on such a GPU", here.join(", ")),
            );
        }
        Outcome::Inconclusive => {
            checks.rule(what, rule, Standing::Holds, Standing::NotTested);
        }
    }
    false
}

/// Checks that the traced process submitted no job on a compute or graphics ring.
///
/// An event that never fired proves nothing: if there was a control command, which does submit such jobs, tracer must have seen
/// its jobs.
fn no_ring(what: &str, evidence: &Evidence, run: &Observed, checks: &mut Checks) {
    let rule = run.bypass("no-ring");
    let watched = run.context.capabilities.kernel_rings;
    if !watched {
        checks.lack(
            what,
            "rings of the kernel driver were not watched: the kernel had no `gpu_scheduler` events",
            "gpu_scheduler events",
            "load the driver (`sudo modprobe amdgpu`), check `sudo ls /sys/kernel/tracing/events/gpu_scheduler`, and run \
             `sudo tracer verify --claims` again",
        );
        return;
    }
    let control = evidence.control.as_ref().map(control_jobs);
    if rule.outcome == Outcome::Pass && control.is_some_and(|jobs| jobs.unwrap_or(0) == 0) {
        checks.lack(
            what,
            "tracer saw no job of the control command either, so this proves nothing",
            "jobs of the control command",
            "name a command that submits jobs on compute rings with --control",
        );
        return;
    }
    let check = checks.rule(what, rule, Standing::Holds, Standing::Contradicted);
    match control.flatten() {
        Some(jobs) => {
            check.count("control_jobs", Some(jobs));
            check.evidence += &format!("; of the control command, {jobs} such jobs were seen");
        }
        None => checks
            .note("no control command ran: only the attached events show that tracer would see such jobs (--control)"),
    }
    checks.notes.extend(rule.notes.iter().cloned());
}

/// Returns the number of jobs on compute and graphics rings that the control command submitted; `None` if rings were not watched.
fn control_jobs(control: &Observed) -> Option<u64> {
    count(control.bypass("no-ring"), "jobs_of_traced_processes")
}

impl Observed {
    /// Returns the number of jobs on compute and graphics rings that traced processes submitted; `None` if rings were not
    /// watched.
    #[must_use]
    pub fn ring_jobs(&self) -> Option<u64> {
        control_jobs(self)
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
