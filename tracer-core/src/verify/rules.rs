//! The rules, one file each. The documentation of each file says when the rule fails and when it is inconclusive.

mod command;
mod coverage;
mod dispatches;
mod doorbell_share;
mod ioctl_p99;
mod no_ring;
mod no_syscall;
mod queue_depth;
mod queues_per_gpu;
mod reserve_to_doorbell;
mod ring_submission;
mod scheduler;
mod sound_capture;

use super::context::Context;
use super::finding::{Finding, Offenders};
use super::policy::Policy;
use super::verdict::{Offender, Outcome, RuleVerdict};
use crate::tables::{DispatchRun, Fact};

/// A rule that examines facts one by one.
pub(super) trait Rule {
    /// Takes a fact.
    fn add(&mut self, fact: &Fact);
    /// Returns the verdict of the rule.
    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict;
}

/// Returns the rules of a policy, in the order in which verdicts show them.
pub(super) fn of(policy: &Policy, context: &Context) -> Vec<Box<dyn Rule>> {
    let (rules, limits) = (&policy.rules, &policy.limits);
    let mut all: Vec<Box<dyn Rule>> = vec![
        Box::new(sound_capture::SoundCapture::default()),
        Box::new(dispatches::Dispatches::new(rules.ring_submission)),
    ];
    if rules.command {
        all.push(Box::new(command::Command));
    }
    if let Some(wanted) = rules.scheduler {
        all.push(Box::new(scheduler::InUse::new(wanted)));
    }
    if rules.coverage {
        all.push(Box::new(coverage::Coverage::default()));
    }
    if rules.no_ring {
        all.push(Box::new(no_ring::NoRing::new(context.command_began_ns)));
    }
    if let Some(scope) = rules.no_syscall {
        all.push(Box::new(no_syscall::NoSyscall::new(scope)));
    }
    if rules.ring_submission {
        all.push(Box::new(ring_submission::RingSubmission::default()));
    }
    if let Some(least) = limits.min_doorbell_share {
        all.push(Box::new(doorbell_share::DoorbellShare::new(least)));
    }
    if let Some(most) = limits.max_queue_depth {
        all.push(Box::new(queue_depth::QueueDepth::new(most)));
    }
    if !limits.max_ioctl_p99_ns.is_empty() {
        all.push(Box::new(ioctl_p99::IoctlP99::new(&limits.max_ioctl_p99_ns)));
    }
    if limits.max_reserve_to_doorbell_ns != Default::default() {
        let most = limits.max_reserve_to_doorbell_ns;
        all.push(Box::new(reserve_to_doorbell::ReserveToDoorbell::new(most)));
    }
    if let Some(most) = policy.warnings.queues_per_gpu {
        all.push(Box::new(queues_per_gpu::QueuesPerGpu::new(most)));
    }
    all
}

/// Returns a run of dispatches as an offender.
fn of_run(run: &DispatchRun, what: String) -> Offender {
    Offender {
        what,
        queue: Some(run.queue),
        index: Some(run.first_index),
        count: Some(run.count),
        pid: Some(run.pid),
        time_ns: Some(run.begin_ns),
        ..Offender::default()
    }
}

/// Records that aggregated rows lack what a rule needs.
fn lack_rows(finding: &mut Finding, sentence: String, aggregated: Offenders) {
    finding.missing(
        "a row for each",
        "record again on a faster disk, with fewer programs at work beside it, or with a larger `--row-memory`",
    );
    finding.blame(Outcome::Inconclusive, aggregated, |_| sentence);
}

/// Returns whether doorbells and their packets were watched; records what is missing if not.
fn packets_watched(context: &Context, finding: &mut Finding) -> bool {
    let known = context.capabilities.doorbells && context.capabilities.packets;
    if known {
        return true;
    }
    if context.libraries.is_empty() {
        finding.lack(
            "doorbells were not watched: no traced process loaded an HSA runtime",
            "doorbell probes",
            "run `sudo tracer verify -- COMMAND` with a program that uses the GPU",
        );
    } else {
        finding.lack(
            format!(
                "doorbells were not watched in every library of {}",
                context.libraries.join(", ")
            ),
            "doorbell probes",
            "read the warnings of `tracer report TRACE`, and report this version of the library",
        );
    }
    false
}

/// Returns whether advances of write indexes were watched; records what is missing if not.
fn reserves_watched(context: &Context, finding: &mut Finding) -> bool {
    if !context.capabilities.reserves {
        finding.lack(
            "reserves of packets were not watched",
            "reserve probes",
            "record with `sudo tracer record --detail full -- COMMAND`",
        );
    }
    context.capabilities.reserves
}

/// Returns whether ioctls were watched; records what is missing if not.
fn ioctls_watched(context: &Context, finding: &mut Finding) -> bool {
    if !context.capabilities.ioctls {
        finding.lack(
            "ioctls were not watched",
            "system call events",
            "record on a kernel with CONFIG_FTRACE_SYSCALLS by `sudo tracer record --detail full -- COMMAND`",
        );
    }
    context.capabilities.ioctls
}

/// Returns whether rings of the kernel driver were watched; records what is missing if not.
fn rings_watched(context: &Context, finding: &mut Finding) -> bool {
    if !context.capabilities.kernel_rings {
        finding.lack(
            "rings of the kernel driver were not watched: the kernel had no `gpu_scheduler` events",
            "gpu_scheduler events",
            "load the driver (`sudo modprobe amdgpu`), check `sudo ls /sys/kernel/tracing/events/gpu_scheduler`, and run \
             `sudo tracer verify -- COMMAND` again",
        );
    }
    context.capabilities.kernel_rings
}
