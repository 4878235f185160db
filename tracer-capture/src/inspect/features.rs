//! Abilities of the kernel that the programs stand on, each tried by itself: where the object as a whole is refused, they
//! tell what is missing.

use aya::{
    maps::MapType,
    programs::ProgramType,
    sys::{BpfHelper, is_helper_supported, is_map_supported},
};
use serde::Serialize;

/// Abilities of the kernel; `None` where trying was refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Features {
    /// Ring buffer maps (in Linux since 5.8).
    pub ring_buffer: Option<bool>,
    /// `bpf_loop`, for doorbells that publish many packets (5.17).
    pub bpf_loop: Option<bool>,
    /// `bpf_get_attach_cookie`, by which a program knows its site (5.15).
    pub attach_cookie: Option<bool>,
    /// `bpf_send_signal`, which holds a process until its probes are in (5.3).
    pub send_signal: Option<bool>,
}

impl Features {
    /// The names of those that are not there for certain.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        let all = [
            ("ring buffers", self.ring_buffer),
            ("bpf_loop", self.bpf_loop),
            ("bpf_get_attach_cookie", self.attach_cookie),
            ("bpf_send_signal", self.send_signal),
        ];
        let missing = all.into_iter().filter(|(_, there)| *there == Some(false));
        missing.map(|(name, _)| name).collect()
    }
}

/// Loads a minimal program or makes a minimal map for each.
pub fn read() -> Features {
    // Uprobes are programs of the type for kprobes. A kernel that refuses for lack of rights refuses all alike, which must
    // not be taken for a lack of the helper.
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
