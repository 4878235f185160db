//! Jobs of the DRM scheduler: which of its events this kernel has, and where their fields lie.

use aya::{EbpfLoader, Pod};
use tracer_common::record::{ABSENT, EventLayout, StructLayout};

use super::{Prober, tracefs::Format};
use crate::{CaptureError, btf::Btf, inventory::Probe};

/// Group of the events, in every version, also where the module is called amd-sched.
pub const GROUP: &str = "gpu_scheduler";

/// The names of the three events. The set changed in Linux 6.17, but backports and DKMS drivers move that border: tracefs
/// tells, the kernel's version does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSet {
    /// Submit, run and done.
    pub names: [&'static str; 3],
    /// The events' records hold pointers only.
    old: bool,
}

impl EventSet {
    /// Whether it is that of kernels before the change.
    #[must_use]
    pub fn is_old(self) -> bool {
        self.old
    }
}

/// Newest first: a driver that has both is of the time of the change.
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

/// Modules that may hold the scheduler: the kernel's, and that of DKMS drivers. Built in, it is in the kernel's own BTF.
pub const MODULES: [&str; 2] = ["gpu_sched", "amd_sched"];

/// How the scheduler's events are read on this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The events.
    pub set: EventSet,
    layouts: [Plain<EventLayout>; 3],
    structs: Plain<StructLayout>,
    raw: bool,
}

/// A layout, as the programs take it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plain<T>(T);
// SAFETY: `repr(C)` of u32 only.
unsafe impl Pod for Plain<EventLayout> {}
// SAFETY: as above.
unsafe impl Pod for Plain<StructLayout> {}

impl Plan {
    /// Looks at tracefs, and at the kernel's BTF with one of [`MODULES`].
    ///
    /// # Errors
    /// [`CaptureError::NoEvent`] if the kernel has none of the sets, or one whose fields are not understood.
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

    /// The plan for these format files; `structs` where BTF tells the structures.
    ///
    /// # Errors
    /// [`CaptureError::NoEvent`] naming a field without which jobs can't be joined.
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

    /// Whether the events are taken raw, with what BTF tells of the scheduler's structures. Then the old set, whose records
    /// leave out device and client, tells as much as the new one; and a job that ends in an interrupt is not passed over
    /// because that came while another program ran, as the kernel does with programs of trace events (`trace_call_bpf`).
    /// Without BTF they are taken as trace events.
    #[must_use]
    pub fn is_raw(&self) -> bool {
        self.raw
    }

    /// Hands the layouts to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        let [submit, run, done] = &self.layouts;
        loader
            .override_global("RING_SUBMIT", submit, true)
            .override_global("RING_RUN", run, true)
            .override_global("RING_DONE", done, true)
            .override_global("RING_STRUCTS", &self.structs, true);
    }

    /// Attaches to the three events.
    pub fn attach(&self, prober: &mut Prober) -> Vec<Probe> {
        let [submit, run, done] = self.set.names;
        if self.raw {
            vec![
                prober.raw_tracepoint("ring_submit_raw", "ring", GROUP, submit),
                prober.raw_tracepoint("ring_run_raw", "ring", GROUP, run),
                prober.raw_tracepoint("ring_done_raw", "ring", GROUP, done),
            ]
        } else {
            vec![
                prober.tracepoint("ring_submit", "ring", GROUP, submit),
                prober.tracepoint("ring_run", "ring", GROUP, run),
                prober.tracepoint("ring_done", "ring", GROUP, done),
            ]
        }
    }
}

/// Layout of a submit or run event.
fn job_layout(format: &Format, old: bool) -> Result<EventLayout, CaptureError> {
    let optional = |name, size| format.offset(name, size).unwrap_or(ABSENT);
    Ok(EventLayout {
        // The field is called `name`; `ring` is what the text form calls it.
        ring: format.require_string("name")?,
        device: format.string("dev").unwrap_or(ABSENT),
        client_id: optional("client_id", 8),
        job_id: optional("id", 8),
        queued: optional("job_count", 4),
        ..key_layout(format, old)?
    })
}

/// What all three must have to be joined.
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

/// Where the scheduler's structures hold what its old events leave out; `None` where BTF does not tell enough to join jobs
/// by, and to name their rings.
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
