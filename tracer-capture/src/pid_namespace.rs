//! The pid namespace that tracer runs in: events of the kernel have the process ids of the initial one.

use std::fs;

use crate::CaptureError;

/// Inode of the initial pid namespace (PROC_PID_INIT_INO of include/linux/proc_ns.h).
const INITIAL: &str = "pid:[4026531836]";

/// Why tracer records nothing in another one.
pub const REASON: &str =
    "tracer runs in a pid namespace of its own, where process ids differ from those in the kernel's events";
/// What to do about it.
pub const FIX: &str = "run it on the host, or start its container with `--pid=host`";

/// Whether process ids here differ from those in the kernel's events. False where /proc does not say.
#[must_use]
pub fn is_own() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() != INITIAL)
}

/// Fails where they differ: a recording would attribute nothing, and pauses would be of other processes.
///
/// # Errors
/// [`CaptureError::PidNamespace`].
pub fn require_initial() -> Result<(), CaptureError> {
    if is_own() {
        Err(CaptureError::PidNamespace)
    } else {
        Ok(())
    }
}
