//! `no-syscall`: between the reserve of a dispatch and its doorbell, its thread made no ioctl on a KFD or DRM device.
//!
//! Where the reserve is known, the rule fails if the thread entered an ioctl in between. Where the reserve is unknown (another
//! thread made it, or no probe saw it), the rule still holds if no thread of the process entered an ioctl after the last time at
//! which the index was seen unreserved; else the rule is inconclusive under [`Scope::Every`]. It is also inconclusive if ioctls
//! were not watched, or if nothing is known of any dispatch. In processes that tracer attached to, dispatches that were reserved
//! before the attach are not judged, and a note counts them. The rule is inconclusive under every scope if dispatches were
//! aggregated: aggregated dispatches have neither threads nor reserves.
//!
//! A thread makes one system call after the other, and rings doorbells outside of system calls: if any ioctl is in between, the
//! last ioctl of the thread before the doorbell is. So the rule keeps only one ioctl per thread and one per process.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Counts, Rule, ioctls_watched, lack_rows, of_dispatch, of_run, reserves_watched};
use crate::tables::{Dispatch, Fact};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::policy::Scope;
use crate::verify::verdict::Outcome;

#[derive(Default)]
pub(super) struct NoSyscall {
    /// Whether every dispatch must be decided ([`Scope::Every`]).
    every: bool,
    /// By thread: entry time and name of its last ioctl.
    last: HashMap<(u32, u32), (u64, Cow<'static, str>)>,
    /// By process: entry time of its last ioctl.
    last_of_all: HashMap<u32, u64>,
    /// Dispatches whose reserve is known.
    known: u64,
    /// Dispatches whose reserve is unknown, but during which no thread of the process can have made an ioctl.
    bounded: u64,
    broken: Offenders,
    unknown: Offenders,
    /// Dispatches whose index was never seen free: in processes that tracer attached to, they were reserved before the attach.
    never_free: Offenders,
    /// Dispatches that are recorded only as runs.
    aggregated: Offenders,
}

impl NoSyscall {
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            every: scope == Scope::Every,
            ..Self::default()
        }
    }

    fn dispatch(&mut self, dispatch: &Dispatch) {
        if let Some(reserve_ns) = dispatch.reserve_ns {
            self.known += 1;
            if let Some((enter_ns, name)) = self.last.get(&(dispatch.pid, dispatch.tid))
                && (reserve_ns..dispatch.time_ns).contains(enter_ns)
            {
                self.broken.add(|| {
                    let after = enter_ns - reserve_ns;
                    of_dispatch(dispatch, format!("{name} {after} ns after the reserve of a dispatch"))
                });
            }
            return;
        }
        let last = self.last_of_all.get(&dispatch.pid);
        match dispatch.unreserved_ns {
            Some(free_ns) if last.is_none_or(|&enter_ns| enter_ns <= free_ns) => self.bounded += 1,
            free_ns => {
                let undecided = if free_ns.is_some() {
                    &mut self.unknown
                } else {
                    &mut self.never_free
                };
                undecided.add(|| of_dispatch(dispatch, "a dispatch with unknown reserve".to_owned()));
            }
        }
    }
}

impl Rule for NoSyscall {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Ioctl(ioctl) => {
                let last = self.last.entry((ioctl.pid, ioctl.tid)).or_default();
                if last.0 <= ioctl.enter_ns {
                    *last = (ioctl.enter_ns, ioctl.name.clone());
                }
                let of_all = self.last_of_all.entry(ioctl.pid).or_default();
                *of_all = ioctl.enter_ns.max(*of_all);
            }
            Fact::Dispatch(dispatch) => self.dispatch(dispatch),
            Fact::DispatchRun(run) => self
                .aggregated
                .add_many(run.count, || of_run(run, "aggregated dispatches".to_owned())),
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let (known, bounded) = (self.known, self.bounded);
        let mut undecided = self.unknown;
        let attached = context.command_began_ns.is_none();
        let before = if attached { self.never_free.total() } else { 0 };
        if !attached {
            undecided.extend(self.never_free);
        }
        let unknown = undecided.total();
        let ioctls = ioctls_watched(context, finding);
        if unknown > 0 || known + bounded == 0 {
            reserves_watched(context, finding);
        }
        finding.count("dispatches", ioctls.then_some(known + bounded));
        finding.count(
            "dispatches_with_reserve",
            context.capabilities.reserves.then_some(known),
        );
        finding.count("dispatches_undecided", ioctls.then_some(unknown));
        finding.count("dispatches_with_ioctl", ioctls.then_some(self.broken.total()));
        let aggregated = self.aggregated.total();
        finding.count("dispatches_aggregated", Some(aggregated));
        lack_rows(finding, self.aggregated, "dispatch", |n| {
            format!("aggregated, with unknown times of reserves: {n}")
        });
        finding.blame(Outcome::Fail, self.broken, "dispatch", |n| {
            format!("the threads of {n} made an ioctl between reserve and doorbell")
        });
        if self.every {
            finding.blame(Outcome::Inconclusive, undecided, "dispatch", |n| {
                format!("unknown reserves of {n}: an ioctl may lie between reserve and doorbell")
            });
        } else {
            finding.mention(unknown, "dispatch", |n| format!("not judged: {n} with unknown reserve"));
        }
        finding.mention(before, "dispatch", |n| {
            format!("not judged: {n} reserved before the first sample of the queue")
        });
        finding.mention(bounded, "dispatch", |n| {
            format!("of {n} the reserve is unknown, but the process made no ioctl in the time in question")
        });
        if known + bounded == 0 && aggregated == 0 {
            finding.say(Outcome::Inconclusive, "no dispatch has a known reserve");
        }
        format!(
            "no thread made a KFD or DRM ioctl between reserve and doorbell of {} dispatches",
            known + bounded
        )
    }
}
