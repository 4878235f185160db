//! Ioctls on KFD and DRM devices.

use std::borrow::Cow;

use super::table;

table! {
    /// Ioctls on KFD and DRM devices, from entry to exit.
    pub struct Ioctl: "ioctls" by enter_ns, Events {
        /// Process; 0 if the imported text does not show it.
        pub pid: u32,
        /// Thread.
        pub tid: u32,
        /// Entry.
        pub enter_ns: u64 => "ns",
        /// Exit; for a call that never returned, the exit of the thread or the end of the recording.
        pub exit_ns: u64 => "ns",
        /// Class of the device: `kfd` or `drm`.
        pub device: &'static str,
        /// File descriptor.
        pub fd: i32,
        /// The whole ioctl command; 0 if the imported text only has its name.
        pub cmd: u32,
        /// Name of the command; `nr-0xNN` for an unknown one.
        pub name: Cow<'static, str>,
        /// Result, negative for -errno; null if the call never returned.
        pub ret: Option<i64>,
        /// Fields of the argument, `name=value`, the results of a call that succeeded behind `->`; null where the layout is not
        /// known or the argument was unreadable.
        pub args: Option<String>,
        /// Argument at entry, perhaps only its start; null if unreadable.
        pub arg_in: Option<Vec<u8>>,
        /// Argument at exit, perhaps only its start; null if unreadable.
        pub arg_out: Option<Vec<u8>>,
    }
}

impl Ioctl {
    /// Returns the time in the call, in ns; `None` if it never returned.
    #[must_use]
    pub fn duration_ns(&self) -> Option<u64> {
        self.ret.map(|_| self.exit_ns.saturating_sub(self.enter_ns))
    }

    /// Returns whether the call returned an error.
    #[must_use]
    pub fn failed(&self) -> bool {
        self.ret.is_some_and(|ret| ret < 0)
    }
}
