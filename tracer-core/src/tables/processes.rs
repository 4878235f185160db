//! Traced processes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::table;

table! {
    /// Traced processes.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub struct Process: "processes" by first_ns, Snapshots {
        /// Process id, in the initial pid namespace.
        pub pid: u32,
        /// Process id of the parent; null if tracer did not see the fork.
        pub parent: Option<u32>,
        /// Name of the last program, at most 15 bytes; empty if tracer saw no exec.
        pub comm: String,
        /// Time of its first event.
        pub first_ns: u64 => "ns",
        /// Time of its exit; null if it ran at the end of the trace.
        pub exit_ns: Option<u64> => "ns",
        /// Whether its runtime passes doorbells to the driver's library instead of storing to them (path `thunk`); null if unknown.
        pub thunk: Option<bool>,
        /// Its systemd unit, the system's or a user's, by the path of its cgroup when it began to use the KFD; null if the path, as
        /// tracer sees it, names none, or was not read.
        pub unit: Option<String>,
        /// The id of its container, by the same path; null if that names none, or was not read.
        pub container: Option<String>,
        /// The UID of its Kubernetes pod, by the same path; null if that names none, or was not read.
        pub pod: Option<String>,
    }
}
