//! The recordings of scenarios, reduced to what the claims depend on.

use std::collections::{BTreeMap, BTreeSet};

use super::scenario::Scenario;
use tracer_core::summary::{self, Summary};
use tracer_core::tables::{Fact, Ioctl, RingJob};
use tracer_core::verify::{Context, Device, Judge, Outcome, Policy, RuleVerdict, Rules, Scheduler, Scope, Verdict};

/// Returns the policy that kernels meet if they bypass the driver under the MES.
fn bypass() -> Policy {
    Policy {
        name: "bypass".to_owned(),
        description: String::new(),
        rules: Rules {
            scheduler: Some(Scheduler::Mes),
            coverage: true,
            no_ring: true,
            // Reserves that the runtime makes for itself may be unknown: the claims are about the reserves of the program.
            no_syscall: Some(Scope::Seen),
            ..Rules::default()
        },
        limits: Default::default(),
        warnings: Default::default(),
    }
}

/// Returns the policy that kernels meet if they are submitted as jobs under the HWS.
fn jobs() -> Policy {
    Policy {
        name: "jobs".to_owned(),
        rules: Rules {
            scheduler: Some(Scheduler::Hws),
            ring_submission: true,
            ..Rules::default()
        },
        ..bypass()
    }
}

/// Examines the facts of one scenario.
pub struct Observer {
    context: Context,
    bypass: Judge,
    jobs: Judge,
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
    pub(super) untold: u64,
}

/// The observations of one scenario.
#[derive(Clone, Debug)]
pub struct Observed {
    pub(super) context: Context,
    pub(super) summary: summary::Report,
    pub(super) copy_jobs: CopyJobs,
    bypass: Verdict,
    jobs: Verdict,
    /// Calls of `ALLOC_QUEUE_GWS`.
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
            bypass: Judge::new(&bypass(), context.clone()),
            jobs: Judge::new(&jobs(), context.clone()),
            summary: Summary::new(context.capabilities),
            gws: Vec::new(),
            copy_jobs: CopyJobs::default(),
            context,
        }
    }

    /// Takes a fact. Dispatches and ioctls must come in the order of their times, as they are in a stored trace.
    pub fn add(&mut self, fact: &Fact) {
        self.bypass.add(fact);
        self.jobs.add(fact);
        self.summary.add(fact);
        match fact {
            Fact::Ioctl(ioctl) if ioctl.name == "ALLOC_QUEUE_GWS" => self.gws.push(ioctl.clone()),
            Fact::RingJob(job) => self.copy_jobs.add(job),
            _ => {}
        }
    }

    /// Returns the observations. `damage` lists the parts of the trace that could not be read, one sentence each.
    #[must_use]
    pub fn finish(mut self, damage: Vec<String>) -> Observed {
        for judge in [&mut self.bypass, &mut self.jobs] {
            judge.context().damage.extend(damage.iter().cloned());
        }
        let complete = self.context.complete && damage.is_empty();
        self.context.damage.extend(damage);
        Observed {
            summary: self.summary.finish(complete),
            bypass: self.bypass.finish(),
            jobs: self.jobs.finish(),
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
            (None, None) => self.untold += 1,
        }
    }
}

impl Observed {
    /// Returns the verdict of a rule in the policy for kernels that bypass the driver under the MES.
    pub(super) fn bypass(&self, rule: &str) -> &RuleVerdict {
        find(&self.bypass, rule)
    }

    /// Returns the verdict of a rule in the policy for kernels that are submitted as jobs under the HWS.
    pub(super) fn jobs(&self, rule: &str) -> &RuleVerdict {
        find(&self.jobs, rule)
    }

    /// Returns why the recording is not evidence: the rules about the recording itself that did not pass.
    pub(super) fn unsound(&self) -> Vec<&RuleVerdict> {
        let rules = self.bypass.rules.iter();
        rules
            .filter(|rule| ["sound-capture", "command"].contains(&rule.rule.as_str()))
            .filter(|rule| rule.outcome != Outcome::Pass)
            .collect()
    }

    /// Returns the GPUs on which compute queues were created; all GPUs of the machine if these are unknown.
    pub(super) fn gpus(&self) -> Vec<&Device> {
        let used: BTreeSet<u32> = self.summary.queues.iter().filter_map(|queue| queue.gpu_id).collect();
        let devices = self.context.devices.iter();
        devices
            .filter(|device| used.is_empty() || used.contains(&device.gpu_id))
            .collect()
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
        let of = |call: &Ioctl| {
            let id = u32::from_le_bytes(call.arg_in.as_ref()?.get(..4)?.try_into().ok()?);
            let lived = |queue: &&tracer_core::tables::Queue| {
                let from = queue.created_ns;
                (from..=queue.destroyed_ns.unwrap_or(u64::MAX)).contains(&call.enter_ns)
            };
            let mut queues = self.summary.queues.iter();
            let queue = queues.find(|queue| queue.pid == call.pid && queue.queue_id == Some(id) && lived(queue));
            Some(queue?.queue)
        };
        self.gws
            .iter()
            .filter(|call| call.ret == Some(0))
            .filter_map(of)
            .collect()
    }
}

/// Returns the verdict of a rule. The policy of `verdict` must have the rule.
fn find<'a>(verdict: &'a Verdict, rule: &str) -> &'a RuleVerdict {
    let found = verdict.rules.iter().find(|found| found.rule == rule);
    found.unwrap_or_else(|| panic!("the policy {} has a rule {rule}", verdict.policy))
}
