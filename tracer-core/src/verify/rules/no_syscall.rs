//! `no-syscall`: between the reserve of a dispatch and its doorbell, its thread made no ioctl on a KFD or DRM device.
//!
//! Fails by an ioctl that the thread entered in between. Open if reserves or ioctls were not watched, if no reserve
//! was seen at all, and, where the policy wants [`Scope::Every`], if the reserve of any dispatch was not.
//!
//! A thread makes one call after the other, and rings outside of them: if any ioctl lies between, its last one before the
//! doorbell does. So one ioctl a thread is all that has to be kept.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Rule, ioctls_watched, reserves_watched};
use crate::fact::{Dispatch, Fact};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::policy::Scope;
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};

pub(super) struct NoSyscall {
    scope: Scope,
    /// By thread: entry and name of its last ioctl.
    last: HashMap<(u32, u32), (u64, Cow<'static, str>)>,
    /// Dispatches whose reserve is known.
    between: u64,
    broken: Offenders,
    unknown: Offenders,
}

impl NoSyscall {
    pub(super) fn new(scope: Scope) -> Self {
        Self {
            scope,
            last: HashMap::new(),
            between: 0,
            broken: Offenders::default(),
            unknown: Offenders::default(),
        }
    }
}

fn offender(what: String, dispatch: &Dispatch) -> Offender {
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

impl Rule for NoSyscall {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Ioctl(ioctl) => {
                let last = self.last.entry((ioctl.pid, ioctl.tid)).or_default();
                if last.0 <= ioctl.enter_ns {
                    *last = (ioctl.enter_ns, ioctl.name.clone());
                }
            }
            Fact::Dispatch(dispatch) => {
                let Some(reserve_ns) = dispatch.reserve_ns else {
                    return self
                        .unknown
                        .add(|| offender("a dispatch whose reserve is not known".to_owned(), dispatch));
                };
                self.between += 1;
                if let Some((enter_ns, name)) = self.last.get(&(dispatch.pid, dispatch.tid))
                    && (reserve_ns..dispatch.time_ns).contains(enter_ns)
                {
                    self.broken.add(|| {
                        let after = enter_ns - reserve_ns;
                        offender(format!("{name} {after} ns after the reserve of a dispatch"), dispatch)
                    });
                }
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let (scope, between) = (self.scope, self.between);
        let mut finding = Finding::default();
        let reserves = reserves_watched(context, &mut finding);
        let ioctls = ioctls_watched(context, &mut finding);
        let known = reserves && ioctls;
        finding.count("dispatches", reserves.then_some(self.between));
        finding.count("dispatches_without_reserve", reserves.then_some(self.unknown.total()));
        finding.count("dispatches_with_ioctl", known.then_some(self.broken.total()));
        finding.blame(Outcome::Fail, self.broken, |n| {
            format!("the threads of {n} dispatches made an ioctl between reserve and doorbell")
        });
        let unknown = self.unknown.total();
        if reserves && unknown > 0 {
            finding.note(
                "not known are reserves that the runtime makes for itself, and those of packets that another thread rang for",
            );
        }
        if reserves {
            match scope {
                Scope::Every => finding.blame(Outcome::Inconclusive, self.unknown, |n| {
                    format!("when {n} dispatches were reserved is not known")
                }),
                Scope::Seen if unknown > 0 => {
                    finding.note(format!("{unknown} dispatches whose reserve is not known: not judged"));
                }
                Scope::Seen => {}
            }
            if between == 0 {
                finding.say(Outcome::Inconclusive, "there is no dispatch whose reserve is known");
            }
        }
        finding.finish("no-syscall", || {
            format!("no thread made a KFD or DRM ioctl between reserve and doorbell of the {between} dispatches whose reserve is known")
        })
    }
}
