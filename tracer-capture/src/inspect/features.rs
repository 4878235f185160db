//! Abilities of the kernel that the programs need, each tried separately: if the kernel refuses the object as a whole, they show
//! what is missing.

use aya::{
    maps::MapType,
    programs::ProgramType,
    sys::{BpfHelper, is_helper_supported, is_map_supported},
};
use serde::Serialize;

/// Abilities of the kernel; `None` if the attempt was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Features {
    /// Ring buffer maps (in Linux since 5.8).
    pub ring_buffer: Option<bool>,
    /// `bpf_loop`, for doorbells that publish many packets (5.17).
    pub bpf_loop: Option<bool>,
    /// `bpf_get_attach_cookie`, by which a program identifies its site (5.15).
    pub attach_cookie: Option<bool>,
    /// `bpf_send_signal`, which pauses a process until its probes are attached (5.3).
    pub send_signal: Option<bool>,
}

impl Features {
    /// Returns the names of the abilities that are certainly absent.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            ("ring buffers", self.ring_buffer),
            ("bpf_loop", self.bpf_loop),
            ("bpf_get_attach_cookie", self.attach_cookie),
            ("bpf_send_signal", self.send_signal),
        ];
        let missing = |(name, there): (&'static str, Option<bool>)| (there == Some(false)).then_some(name);
        all.into_iter().filter_map(missing).collect()
    }
}

/// Loads a minimal program or creates a minimal map for each ability.
pub fn read() -> Features {
    // Uprobe programs have the type of kprobe programs. A kernel that refuses for lack of rights refuses every attempt, which must
    // not be mistaken for a missing helper.
    let helper = |kind, helper| is_helper_supported(kind, helper).ok();
    Features {
        ring_buffer: is_map_supported(MapType::RingBuf).ok(),
        bpf_loop: helper(ProgramType::KProbe, BpfHelper::BPF_FUNC_loop),
        attach_cookie: helper(ProgramType::KProbe, BpfHelper::BPF_FUNC_get_attach_cookie),
        send_signal: helper(ProgramType::TracePoint, BpfHelper::BPF_FUNC_send_signal),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_tried_is_not_missing() {
        let features = Features {
            ring_buffer: Some(true),
            bpf_loop: Some(false),
            ..Features::default()
        };
        assert_eq!(features.missing(), ["bpf_loop"]);
    }
}
