//! KFD and DRM ioctls: the syscall trace events.

use super::Prober;
use crate::inventory::Probe;

/// Attaches entry and exit.
pub fn attach(prober: &mut Prober) -> Vec<Probe> {
    vec![
        prober.tracepoint("ioctl_enter", "ioctl", "syscalls", "sys_enter_ioctl"),
        prober.tracepoint("ioctl_exit", "ioctl", "syscalls", "sys_exit_ioctl"),
    ]
}
