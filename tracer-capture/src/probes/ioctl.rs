//! KFD and DRM ioctls: the syscall trace events.

use super::{Prober, second_programs};
use crate::inventory::Probe;
use tracer_core::family::Family;

/// Attaches to entry and exit.
pub fn attach(prober: &mut Prober, second_programs: bool) -> Vec<Probe> {
    let events = [
        ["ioctl_enter", "ioctl_enter_twin", "sys_enter_ioctl"],
        ["ioctl_exit", "ioctl_exit_twin", "sys_exit_ioctl"],
    ];
    second_programs::attach(prober, second_programs, Family::Ioctl, events)
}
