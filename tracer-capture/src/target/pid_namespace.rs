//! The pid namespace that tracer runs in. Kernel events carry the process ids of the initial one.

use std::fs;

use crate::CaptureError;

/// Inode of the initial pid namespace (PROC_PID_INIT_INO of include/linux/proc_ns.h).
const INITIAL: &str = "pid:[4026531836]";

/// Why tracer cannot record in another pid namespace.
pub const REASON: &str =
    "tracer runs in a pid namespace of its own, where process ids differ from those in the kernel's events";
/// What to do about it.
pub const FIX: &str = "run it on the host, or start its container with `--pid=host`";

/// Returns whether process ids here differ from those in the kernel's events; false if /proc does not say.
#[must_use]
pub fn is_own() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|link| link.as_os_str() != INITIAL)
}

/// Fails if they differ: a recording would attribute nothing, and would pause other processes.
///
/// # Errors
/// Returns [`CaptureError::PidNamespace`].
pub fn require_initial() -> Result<(), CaptureError> {
    if is_own() {
        return Err(CaptureError::PidNamespace);
    }
    Ok(())
}
