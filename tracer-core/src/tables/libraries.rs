//! Libraries that were in use.

use super::table;

table! {
    /// Libraries whose probes tracer removed during the recording, because no process had used them for 20 s. A library that comes
    /// again has another row each time. The manifest lists the libraries that were in use at the end, and the last 64 others.
    pub struct Library: "libraries" by time_ns, Events {
        /// Time at which its probes were removed.
        pub time_ns: u64 => "ns",
        /// Path as the first process saw it.
        pub path: String,
        /// Device of its file, as in /proc/PID/maps.
        pub device: String,
        /// Inode of its file.
        pub inode: u64,
        /// Build id in hexadecimal; null if it has none.
        pub build_id: Option<String>,
        /// Its DT_SONAME; null if it has none.
        pub soname: Option<String>,
        /// First process that tracer saw mapping it.
        pub first_pid: u32,
        /// Probes that were attached to libraries with this path.
        pub probes: u32,
        /// Probes that could not be attached to them.
        pub missing: u32,
    }
}
