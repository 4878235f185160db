//! `profile`: a profiler of the same run has the same dispatches as the trace. Fails if one has a dispatch that the other has not.
//! Inconclusive if the profile and the trace have no process in common, if the profile does not name its kernels, and if only the
//! profile has dispatches, but the trace does not have everything. Judged only if the user gives a profile.
//!
//! Packets on queues that the HSA runtime created for itself are not expected in a profile: a profiler sees what programs submit.

use std::collections::{BTreeMap, BTreeSet};

use super::{Counts, Rule, lack_rows, packets_watched};
use crate::profile::{Profile, Shape};
use crate::tables::Fact;
use crate::tally::{more, total};
use crate::verify::context::Context;
use crate::verify::finding::{Finding, Offenders};
use crate::verify::verdict::{Offender, Outcome};
use crate::words::count;

pub(super) struct SameAsProfile {
    profile: Profile,
    /// Dispatches of the profile's processes, by queue.
    traced: BTreeMap<(u32, Shape), u64>,
    /// Queues that the HSA runtime created for itself.
    internal: BTreeSet<u32>,
    aggregated: Offenders,
}

impl SameAsProfile {
    pub(super) fn new(profile: Profile) -> Self {
        Self {
            profile,
            traced: BTreeMap::new(),
            internal: BTreeSet::new(),
            aggregated: Offenders::default(),
        }
    }

    fn offender(&self, shape: &Shape, number: u64, place: &str) -> Offender {
        let name = self.profile.kernels.get(&(shape.pid, shape.kernel_object));
        let name = name.map_or_else(|| format!("{:#x}", shape.kernel_object), Clone::clone);
        let ([gx, gy, gz], [wx, wy, wz]) = (shape.grid, shape.workgroup);
        Offender {
            what: format!("kernel {name}, grid {gx}x{gy}x{gz}, workgroup {wx}x{wy}x{wz}: in the {place} only"),
            count: Some(number),
            pid: Some(shape.pid),
            ..Offender::default()
        }
    }
}

impl Rule for SameAsProfile {
    fn add(&mut self, fact: &Fact) {
        match fact {
            Fact::Dispatch(dispatch) if self.profile.processes.contains(&dispatch.pid) => {
                let shape = Shape {
                    pid: dispatch.pid,
                    kernel_object: dispatch.kernel_object,
                    grid: dispatch.grid,
                    workgroup: dispatch.workgroup,
                };
                more(self.traced.entry((dispatch.queue, shape)).or_default(), 1);
                if let (Some(name), None) = (
                    &dispatch.kernel,
                    self.profile.kernels.get(&(shape.pid, shape.kernel_object)),
                ) {
                    let key = (shape.pid, shape.kernel_object);
                    self.profile.kernels.insert(key, name.to_string());
                }
            }
            Fact::DispatchRun(run) if self.profile.processes.contains(&run.pid) => {
                self.aggregated
                    .add_many(run.count, || super::of_run(run, "aggregated dispatches".to_owned()));
            }
            Fact::Queue(queue) if queue.internal == Some(true) => {
                self.internal.insert(queue.queue);
            }
            _ => {}
        }
    }

    fn finish(mut self: Box<Self>, context: &Context, counts: &Counts, finding: &mut Finding) -> String {
        packets_watched(context, finding);
        let aggregated = std::mem::take(&mut self.aggregated);
        lack_rows(finding, aggregated, "dispatch", |number| {
            format!("{number} without a row each, so their kernels are unknown")
        });
        // Own dispatches of programs, and those of the runtime.
        let mut traced: BTreeMap<Shape, (u64, u64)> = BTreeMap::new();
        for (&(queue, shape), &number) in &self.traced {
            let (own, internal) = traced.entry(shape).or_default();
            more(if self.internal.contains(&queue) { internal } else { own }, number);
        }
        let profiled = total(self.profile.dispatches.values().copied());
        if traced.is_empty() && profiled == 0 {
            finding.lack(
                "neither the profile nor the trace has a dispatch of a process that was profiled",
                "dispatches of one run",
                "record and profile a program that submits kernels: `sudo tracer record -- rocprofv3 --kernel-trace -- ./app`",
            );
        } else if traced.is_empty() {
            finding.lack(
                "no process of the profile has a dispatch in the trace",
                "dispatches of one run",
                "compare a trace with the profile of the same run: `sudo tracer record -- rocprofv3 --kernel-trace -- ./app`",
            );
        }
        if self.profile.unknown > 0 {
            finding.lack(
                format!(
                    "{} of the profile without a kernel object or a size",
                    count(self.profile.unknown, "dispatch")
                ),
                "kernel objects in the profile",
                "profile again with a rocprofv3 that writes rocpd_info_kernel_symbol.kernel_object",
            );
        }
        let (mut both, mut left_out) = (0, 0);
        let (mut in_trace, mut in_profile) = (Offenders::default(), Offenders::default());
        let shapes: BTreeSet<Shape> = traced.keys().chain(self.profile.dispatches.keys()).copied().collect();
        for shape in shapes {
            let (own, internal) = traced.get(&shape).copied().unwrap_or_default();
            let expected = self.profile.dispatches.get(&shape).copied().unwrap_or(0);
            // A profiler may see those of the runtime, too.
            let found = own + internal.min(expected.saturating_sub(own));
            more(&mut both, found.min(expected));
            more(&mut left_out, own + internal - found);
            let (more_traced, more_profiled) = (found.saturating_sub(expected), expected.saturating_sub(found));
            if more_traced > 0 {
                in_trace.add_many(more_traced, || self.offender(&shape, more_traced, "trace"));
            }
            if more_profiled > 0 && !traced.is_empty() {
                in_profile.add_many(more_profiled, || self.offender(&shape, more_profiled, "profile"));
            }
        }
        finding.count("both", Some(both));
        finding.count("trace_only", Some(in_trace.total()));
        finding.count("profile_only", Some(in_profile.total()));
        finding.count("internal", Some(left_out));
        finding.mention(left_out, "dispatch", |number| {
            format!("{number} of the HSA runtime itself, on its own queues, which profilers leave out")
        });
        // What a trace lacks may be what only the profile has.
        let is_whole = context.complete
            && context.damage.is_empty()
            && context.command_began_ns.is_some()
            && counts.unread == 0
            && context.losses.values().all(|lost| *lost == 0);
        let outcome = if is_whole { Outcome::Fail } else { Outcome::Inconclusive };
        if !is_whole && in_profile.total() > 0 {
            finding.missing(
                "a whole trace",
                "record the command from its start, so that nothing is lost or unread: `sudo tracer record -- COMMAND`",
            );
        }
        finding.blame(Outcome::Fail, in_trace, "dispatch", |number| {
            format!("{number} in the trace and not in the profile")
        });
        finding.blame(outcome, in_profile, "dispatch", |number| {
            format!("{number} in the profile and not in the trace")
        });
        format!("the profile and the trace have the same {}", count(both, "dispatch"))
    }
}
