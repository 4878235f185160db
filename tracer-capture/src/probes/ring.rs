//! Jobs of the DRM scheduler: which of its events this kernel has, and the offsets of their fields.

use aya::EbpfLoader;
use tracer_common::{
    offset::ABSENT,
    record::{EventLayout, StructLayout},
};

use super::{Plain, Prober, tracefs::Format};
use crate::{CaptureError, inventory::Probe, kernel::btf::Btf};
use tracer_core::family::Family;

/// The group of the events, in every version, also if the module is called amd-sched.
pub const GROUP: &str = "gpu_scheduler";

/// The names of the three events. The set changed in Linux 6.17, but backports and DKMS drivers move that border: tracefs shows the
/// set, the kernel's version does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet {
    /// Submit, run and done.
    pub names: [&'static str; 3],
    /// Whether this is the set of kernels before the change. The records of its events hold pointers only.
    pub old: bool,
}

/// The sets, newest first: a driver that has both dates from the time of the change.
const SETS: [EventSet; 2] = [
    EventSet {
        names: ["drm_sched_job_queue", "drm_sched_job_run", "drm_sched_job_done"],
        old: false,
    },
    EventSet {
        names: ["drm_sched_job", "drm_run_job", "drm_sched_process_job"],
        old: true,
    },
];

/// Modules that may hold the scheduler: the kernel's, and that of DKMS drivers. A built-in scheduler is in the kernel's own BTF.
pub const MODULES: [&str; 2] = ["gpu_sched", "amd_sched"];

/// The way in which the scheduler's events are read on this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The events.
    pub set: EventSet,
    layouts: [Plain<EventLayout>; 3],
    structs: Plain<StructLayout>,
    /// Whether the programs take the events raw, with what BTF says about the scheduler's structures. Then the old set, whose
    /// records omit device and client, reports as much as the new one. A job that ends in an interrupt is then not skipped because
    /// the interrupt came while another program ran, as the kernel does with programs of trace events (`trace_call_bpf`). Without
    /// BTF the programs take the events as trace events.
    pub raw: bool,
}

impl Plan {
    /// Reads the plan from tracefs, and from the kernel's BTF with one of [`MODULES`].
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] if the kernel has none of the sets, or one whose fields are not understood.
    pub fn read(btf: Option<&Btf>) -> Result<Self, CaptureError> {
        let mut missing = None;
        for set in SETS {
            match set.names.map(|name| Format::read(GROUP, name)) {
                [Ok(submit), Ok(run), Ok(done)] => {
                    return Self::of(set, &[submit, run, done], btf.and_then(structs));
                }
                [Err(error), ..] | [_, Err(error), _] | [.., Err(error)] => missing = missing.or(Some(error)),
            }
        }
        Err(missing.unwrap_or_else(|| CaptureError::NoEvent(GROUP.to_owned())))
    }

    /// Creates the plan from these format files; `structs` is given if BTF describes the structures.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] and the name of a field without which jobs can't be joined.
    pub fn of(set: EventSet, formats: &[Format; 3], structs: Option<StructLayout>) -> Result<Self, CaptureError> {
        let [submit, run, done] = formats;
        let layouts = [
            job_layout(submit, set.old)?,
            job_layout(run, set.old)?,
            key_layout(done, set.old)?,
        ];
        Ok(Self {
            set,
            layouts: layouts.map(Plain),
            raw: structs.is_some(),
            structs: Plain(structs.unwrap_or(StructLayout::NONE)),
        })
    }

    /// Returns the layouts of the records of submit, run and done.
    pub fn layouts(&self) -> [EventLayout; 3] {
        self.layouts.map(|layout| layout.0)
    }

    /// Passes the layouts to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        for (name, layout) in ["RING_SUBMIT", "RING_RUN", "RING_DONE"].into_iter().zip(&self.layouts) {
            loader.override_global(name, layout, true);
        }
        loader.override_global("RING_STRUCTS", &self.structs, true);
    }

    /// Attaches to the three events.
    pub fn attach(&self, prober: &mut Prober) -> Vec<Probe> {
        let programs = if self.raw {
            ["ring_submit_raw", "ring_run_raw", "ring_done_raw"]
        } else {
            ["ring_submit", "ring_run", "ring_done"]
        };
        let events = programs.into_iter().zip(self.set.names);
        let attach = |(program, event)| prober.tracepoint(program, Family::Ring, GROUP, event);
        events.map(attach).collect()
    }
}

/// Returns the layout of a submit or run event.
fn job_layout(format: &Format, old: bool) -> Result<EventLayout, CaptureError> {
    let optional = |name, size| format.offset(name, size).unwrap_or(ABSENT);
    Ok(EventLayout {
        // The field is called `name`; the text form calls it `ring`.
        ring: format.require_string("name")?,
        device: format.string("dev").unwrap_or(ABSENT),
        client_id: optional("client_id", 8),
        job_id: optional("id", 8),
        queued: optional("job_count", 4),
        ..key_layout(format, old)?
    })
}

/// Returns the layout of the fields that all three events must have to be joined.
fn key_layout(format: &Format, old: bool) -> Result<EventLayout, CaptureError> {
    let mut layout = EventLayout::NONE;
    if old {
        layout.fence = format.require("fence", 8)?;
    } else {
        layout.context = format.require("fence_context", 8)?;
        layout.seqno = format.require("fence_seqno", 8)?;
    }
    Ok(layout)
}

/// Returns the offsets, in the scheduler's structures, of what its old events omit; `None` if BTF does not describe enough to join
/// jobs and to name their rings.
fn structs(btf: &Btf) -> Option<StructLayout> {
    let optional = |name, path: &[&str]| btf.offset(name, path).unwrap_or(ABSENT);
    Some(StructLayout {
        job_fence: btf.offset("drm_sched_job", &["s_fence"])?,
        job_sched: btf.offset("drm_sched_job", &["sched"])?,
        job_id: optional("drm_sched_job", &["id"]),
        context: btf.offset("drm_sched_fence", &["finished", "context"])?,
        seqno: btf.offset("drm_sched_fence", &["finished", "seqno"])?,
        client_id: optional("drm_sched_fence", &["drm_client_id"]),
        sched_name: btf.offset("drm_gpu_scheduler", &["name"])?,
        sched_dev: optional("drm_gpu_scheduler", &["dev"]),
        device_name: optional("device", &["kobj", "name"]),
        queued: optional("drm_sched_entity", &["job_queue", "job_count"]),
    })
}

#[cfg(test)]
#[path = "ring/tests.rs"]
mod tests;
