//! The rules, one file each. The documentation of each file says when the rule fails and when it is inconclusive.

mod command;
mod coverage;
mod dispatches;
mod doorbell_share;
mod ioctl_p99;
mod no_ring;
mod no_syscall;
mod profile;
mod queue_depth;
mod queues_per_gpu;
mod reserve_to_doorbell;
mod ring_submission;
mod scheduler;
mod sound_capture;

use super::context::Context;
use super::finding::{Finding, Offenders};
use super::policy::Policy;
use super::verdict::{Offender, Outcome};
use crate::losses;
use crate::profile::Profile;
use crate::tables::{Dispatch, DispatchRun, DoorbellRun, Fact, PacketKind};
use crate::tally::{Tally, more};
use crate::words::Count;
use doorbell_share::DoorbellShare;
use no_ring::NoRing;
use reserve_to_doorbell::ReserveToDoorbell;
use ring_submission::RingSubmission;

/// A rule that examines facts one by one.
pub(super) trait Rule {
    /// Takes a fact.
    fn add(&mut self, _fact: &Fact) {}
    /// Adds what the rule found to `finding`. Returns the sentence of the verdict if that is nothing.
    fn finish(self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String;
}

/// A rule with its name.
pub(super) type NamedRule = (&'static str, Box<dyn Rule>);

/// Counts that several rules use.
#[derive(Default)]
pub(super) struct Counts {
    tally: Tally,
    /// Jobs on compute rings that submit kernels of traced processes.
    compute_jobs: u64,
    /// Indexes of unread packets.
    unread: u64,
    /// Ioctls of /dev/kfd.
    kfd_ioctls: u64,
    /// Rows of queues.
    queues: u64,
    /// Whether events were lost that can hide ioctls or queues.
    ioctls_lost: bool,
}

impl Counts {
    /// Counts a fact.
    pub(super) fn add(&mut self, fact: &Fact) {
        self.tally.add(fact);
        match fact {
            Fact::RingJob(job) if job.class == "comp" && job.traced == Some(true) && job.reason.is_none() => {
                self.compute_jobs += 1;
            }
            Fact::Packet(packet) if packet.kind == PacketKind::Unread => more(&mut self.unread, packet.count),
            Fact::Ioctl(ioctl) if ioctl.device == "kfd" => self.kfd_ioctls += 1,
            Fact::Queue(_) => self.queues += 1,
            Fact::Loss(loss) => self.ioctls_lost |= losses::hide_ioctls(&loss.source),
            _ => {}
        }
    }
}

/// Returns the rules of a policy, in the order in which verdicts show them.
pub(super) fn of(policy: &Policy, context: &Context) -> Vec<NamedRule> {
    let (rules, limits) = (&policy.rules, &policy.limits);
    let ioctls = Some(&limits.max_ioctl_p99_ns).filter(|ioctls| !ioctls.is_empty());
    let times = Some(limits.max_reserve_to_doorbell_ns).filter(|times| *times != Default::default());
    let most_queues = policy.warnings.queues_per_gpu;
    let jobs_too = rules.ring_submission;
    let all = [
        rule("sound-capture", Some(sound_capture::SoundCapture::default())),
        rule("dispatches", Some(dispatches::Dispatches { jobs_too })),
        rule("command", rules.command.then_some(command::Command)),
        rule("scheduler", rules.scheduler.map(scheduler::InUse::new)),
        rule("coverage", rules.coverage.then(coverage::Coverage::default)),
        rule("no-ring", rules.no_ring.then(|| NoRing::new(context.command_began_ns))),
        rule("no-syscall", rules.no_syscall.map(no_syscall::NoSyscall::new)),
        rule("ring-submission", rules.ring_submission.then(RingSubmission::default)),
        rule("doorbell-share", limits.min_doorbell_share.map(DoorbellShare)),
        rule("queue-depth", limits.max_queue_depth.map(queue_depth::QueueDepth::new)),
        rule("ioctl-p99", ioctls.map(ioctl_p99::IoctlP99::new)),
        rule("reserve-to-doorbell", times.map(ReserveToDoorbell::new)),
        rule("queues-per-gpu", most_queues.map(queues_per_gpu::QueuesPerGpu::new)),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the rule that compares a trace with a profile of the same run.
pub(super) fn same_as(profile: Profile) -> NamedRule {
    ("profile", Box::new(profile::SameAsProfile::new(profile)))
}

/// Returns a rule with its name, if the policy has the rule.
fn rule<R: Rule + 'static>(name: &'static str, wanted: Option<R>) -> Option<NamedRule> {
    wanted.map(|rule| (name, Box::new(rule) as Box<dyn Rule>))
}

/// Returns a dispatch as an offender.
fn of_dispatch(dispatch: &Dispatch, what: String) -> Offender {
    Offender {
        what,
        queue: Some(dispatch.queue),
        index: Some(dispatch.index),
        pid: Some(dispatch.pid),
        tid: Some(dispatch.tid),
        time_ns: Some(dispatch.time_ns),
        ..Offender::default()
    }
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

/// Returns a run of doorbells as an offender.
fn of_doorbells(run: &DoorbellRun, what: &str) -> Offender {
    Offender {
        what: what.to_owned(),
        queue: run.queue,
        index: run.first_index,
        count: Some(run.count),
        pid: Some(run.pid),
        time_ns: Some(run.begin_ns),
        ..Offender::default()
    }
}

/// Records that aggregated rows, if there are any, lack what a rule needs.
fn lack_rows(finding: &mut Finding, aggregated: Offenders, noun: &'static str, sentence: impl FnOnce(Count) -> String) {
    if aggregated.total() > 0 {
        finding.missing(
            "a row for each",
            "record again on a faster disk, with fewer programs at work beside it, or with a larger `--row-memory`",
        );
        finding.blame(Outcome::Inconclusive, aggregated, noun, sentence);
    }
}

/// Notes that the times of a simulated device are times of the simulator.
fn note_simulated_times(context: &Context, finding: &mut Finding) {
    if context.simulated.is_some() {
        finding.note("the GPU is simulated: these are not the times of a real GPU");
    }
}

/// Returns whether doorbells and their packets were watched; records what is missing if not.
fn packets_watched(context: &Context, finding: &mut Finding) -> bool {
    let known = context.capabilities.doorbells && context.capabilities.packets;
    if context.imported {
        return finding.require(
            known,
            "the text that was imported has no doorbells",
            "doorbell probes",
            "run `sudo tracer verify -- COMMAND` where the program runs",
        );
    }
    if context.libraries.is_empty() {
        // A process that uses the KFD without a runtime shows its GPUs, but rings its doorbells itself.
        let program = if context.devices.is_empty() {
            "a program that uses the GPU"
        } else {
            "a program that submits through an HSA runtime; this one uses the KFD itself, and no function rings its doorbells"
        };
        return finding.require(
            known,
            "doorbells were not watched: tracer found no HSA runtime in the traced processes",
            "doorbell probes",
            &format!("run `sudo tracer verify -- COMMAND` with {program}"),
        );
    }
    let libraries = context.libraries.join(", ");
    finding.require(
        known,
        format!("doorbells were not watched in every library of {libraries}"),
        "doorbell probes",
        "read the warnings of `tracer report TRACE`, and report this version of the library",
    )
}

/// Returns whether advances of write indexes were watched; records what is missing if not.
fn reserves_watched(context: &Context, finding: &mut Finding) -> bool {
    finding.require(
        context.capabilities.reserves,
        "reserves of packets were not watched",
        "reserve probes",
        "record with `sudo tracer record --detail full -- COMMAND`",
    )
}

/// Returns whether ioctls were watched; records what is missing if not.
fn ioctls_watched(context: &Context, finding: &mut Finding) -> bool {
    if context.imported {
        return finding.require(
            context.capabilities.ioctls,
            "the text that was imported has no ioctls",
            "system call events",
            "run `sudo tracer verify -- COMMAND` where the program runs",
        );
    }
    finding.require(
        context.capabilities.ioctls,
        "ioctls were not watched",
        "system call events",
        "record on a kernel with CONFIG_FTRACE_SYSCALLS by `sudo tracer record --detail full -- COMMAND`",
    )
}

/// Returns whether rings of the kernel driver were watched; records what is missing if not.
fn rings_watched(context: &Context, finding: &mut Finding) -> bool {
    if context.imported {
        return finding.require(
            context.capabilities.kernel_rings,
            "the text that was imported has no events of the DRM scheduler",
            "gpu_scheduler events",
            "record them, too: `trace-cmd record -e gpu_scheduler COMMAND`, then `trace-cmd report`",
        );
    }
    finding.require(
        context.capabilities.kernel_rings,
        "rings of the kernel driver were not watched: the kernel had no `gpu_scheduler` events",
        "gpu_scheduler events",
        "load the driver (`sudo modprobe amdgpu`), check `sudo ls /sys/kernel/tracing/events/gpu_scheduler`, and run \
         `sudo tracer verify -- COMMAND` again",
    )
}
