//! KFD and DRM ioctls: the syscall trace events.

use super::{Prober, twins};
use crate::inventory::Probe;

/// Attaches to entry and exit.
pub fn attach(prober: &mut Prober, twins: bool) -> Vec<Probe> {
    twins::attach(
        prober,
        twins,
        "ioctl",
        [
            ["ioctl_enter", "ioctl_enter_twin", "sys_enter_ioctl"],
            ["ioctl_exit", "ioctl_exit_twin", "sys_exit_ioctl"],
        ],
    )
}
