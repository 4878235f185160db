//! The recordings of scenarios, reduced to what the claims depend on.

use std::collections::{BTreeMap, BTreeSet};

use super::scenario::Scenario;
use tracer_core::summary::{self, Summary};
use tracer_core::tables::{Fact, Ioctl, RingJob};
use tracer_core::verify::{Context, Device, Judge, Outcome, Policy, RuleVerdict, Rules, Scheduler, Scope, Verdict};

/// Returns a policy with all rules that claims depend on, for GPUs with this scheduler.
fn policy(scheduler: Scheduler) -> Policy {
    Policy {
        name: "claims".to_owned(),
        description: String::new(),
        rules: Rules {
            scheduler: Some(scheduler),
            coverage: true,
            no_ring: true,
            // Reserves that the runtime makes for itself may be unknown: the claims are about the reserves of the program.
            no_syscall: Some(Scope::Seen),
            ring_submission: true,
            ..Rules::default()
        },
        limits: Default::default(),
        warnings: Default::default(),
    }
}

/// Examines the facts of one scenario.
pub struct Observer {
    context: Context,
    /// The rules for GPUs that the MES schedules, and for GPUs that the HWS schedules.
    judges: [Judge; 2],
    summary: Summary,
    gws: Vec<Ioctl>,
    copy_jobs: CopyJobs,
}

/// Jobs of traced processes on rings of copy engines (`sdma*`, `page*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CopyJobs {
    /// Jobs that a client submitted.
    pub(super) clients: u64,
    /// Jobs that the driver created for itself while it served the process.
    pub(super) own: u64,
    /// Jobs whose creator the kernel's events do not name.
    pub(super) unknown: u64,
}

/// The observations of one scenario.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(super) context: Context,
    pub(super) summary: summary::Report,
    pub(super) copy_jobs: CopyJobs,
    mes: Verdict,
    hws: Verdict,
    /// Calls of `ALLOC_QUEUE_GWS` that succeeded.
    gws: Vec<Ioctl>,
}

/// The evidence by which claims are judged.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Scenarios that were recorded.
    pub runs: BTreeMap<Scenario, Observed>,
    /// Scenarios that did not succeed, with the reason.
    pub failed: BTreeMap<Scenario, String>,
    /// A command that is known to submit jobs on compute rings, if one was run.
    pub control: Option<Observed>,
    /// Product name of the GPU, as the runtime reports it.
    pub product: Option<String>,
}

impl Observer {
    /// Creates an observer that has seen no facts, for a trace with the properties in `context`.
    #[must_use]
    pub fn new(context: Context) -> Self {
        Self {
            judges: [Scheduler::Mes, Scheduler::Hws].map(|scheduler| Judge::new(&policy(scheduler), context.clone())),
            summary: Summary::new(context.capabilities),
            gws: Vec::new(),
            copy_jobs: CopyJobs::default(),
            context,
        }
    }

    /// Takes a fact. Dispatches and ioctls must come in the order of their times, as they are in a stored trace.
    pub fn add(&mut self, fact: &Fact) {
        self.judges.iter_mut().for_each(|judge| judge.add(fact));
        self.summary.add(fact);
        match fact {
            Fact::Ioctl(call) if call.name == "ALLOC_QUEUE_GWS" && call.ret == Some(0) => self.gws.push(call.clone()),
            Fact::RingJob(job) => self.copy_jobs.add(job),
            _ => {}
        }
    }

    /// Returns the observations. `damage` lists the parts of the trace that could not be read, one sentence each.
    #[must_use]
    pub fn finish(mut self, damage: Vec<String>) -> Observed {
        let complete = self.context.complete && damage.is_empty();
        self.context.damage.extend(damage);
        let [mes, hws] = self.judges.map(|mut judge| {
            judge.context().damage.clone_from(&self.context.damage);
            judge.finish()
        });
        Observed {
            summary: self.summary.finish(complete),
            mes,
            hws,
            gws: self.gws,
            copy_jobs: self.copy_jobs,
            context: self.context,
        }
    }
}

impl CopyJobs {
    fn add(&mut self, job: &RingJob) {
        if job.traced != Some(true) || !["sdma", "page"].contains(&job.class.as_str()) {
            return;
        }
        match (&job.reason, job.client_id) {
            (Some(_), _) => self.own += 1,
            (None, Some(_)) => self.clients += 1,
            (None, None) => self.unknown += 1,
        }
    }
}

impl Observed {
    /// Returns the verdict of a rule that does not depend on the scheduler.
    pub(super) fn rule(&self, name: &str) -> &RuleVerdict {
        find(&self.mes, name)
    }

    /// Returns the verdict of the rule that this scheduler schedules the GPUs in use.
    pub(super) fn scheduler(&self, scheduler: Scheduler) -> &RuleVerdict {
        let verdict = match scheduler {
            Scheduler::Mes => &self.mes,
            Scheduler::Hws | Scheduler::Nohws => &self.hws,
        };
        find(verdict, "scheduler")
    }

    /// Returns why the recording is not evidence: the rules about the recording itself that did not pass.
    pub(super) fn unsound(&self) -> Vec<&RuleVerdict> {
        let own = |rule: &&RuleVerdict| ["sound-capture", "command"].contains(&rule.rule.as_str());
        let rules = self.mes.rules.iter().filter(own);
        rules.filter(|rule| rule.outcome != Outcome::Pass).collect()
    }

    /// Returns the GPUs on which compute queues were created; all GPUs of the machine if these are unknown.
    pub(super) fn gpus(&self) -> Vec<&Device> {
        let used: BTreeSet<u32> = self.summary.queues.iter().filter_map(|queue| queue.gpu_id).collect();
        let in_use = |device: &&Device| used.is_empty() || used.contains(&device.gpu_id);
        self.context.devices.iter().filter(in_use).collect()
    }

    /// Returns the number of successful calls of an ioctl; `None` if ioctls were not watched.
    pub(super) fn ioctls(&self, name: &str) -> Option<u64> {
        self.summary.ioctls.total?;
        let calls = self.summary.ioctls.by_name.get(name);
        Some(calls.map_or(0, |calls| calls.count - calls.errors))
    }

    /// Returns the number of calls by traced processes of driver functions whose name fits; `None` if functions were not watched.
    pub(super) fn driver_calls(&self, fits: impl Fn(&str) -> bool) -> Option<u64> {
        let calls = &self.summary.driver_calls;
        calls.total?;
        let fitting = calls.by_function.iter().filter(|(name, _)| fits(name));
        Some(fitting.map(|(_, function)| function.traced).sum())
    }

    /// Returns the queues for which the driver was asked to allocate global wave sync, by their number in the trace.
    pub(super) fn queues_with_gws(&self) -> BTreeSet<u32> {
        let queue_of = |call: &Ioctl| {
            let id = u32::from_le_bytes(*call.arg_in.as_ref()?.first_chunk()?);
            let queue = self.summary.queues.iter().find(|queue| {
                let lived = queue.created_ns..=queue.destroyed_ns.unwrap_or(u64::MAX);
                queue.pid == call.pid && queue.queue_id == Some(id) && lived.contains(&call.enter_ns)
            })?;
            Some(queue.queue)
        };
        self.gws.iter().filter_map(queue_of).collect()
    }
}

/// Returns the verdict of a rule. [`policy`] must have the rule.
fn find<'a>(verdict: &'a Verdict, rule: &str) -> &'a RuleVerdict {
    let found = verdict.rules.iter().find(|found| found.rule == rule);
    found.unwrap_or_else(|| panic!("the policy has a rule {rule}"))
}
