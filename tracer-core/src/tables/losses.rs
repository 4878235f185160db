//! Events that sources lost.

use serde::{Deserialize, Serialize};

use super::table;

table! {
    /// Events that sources lost.
    #[derive(Serialize, Deserialize)]
    pub struct Loss: "losses" by time_ns, Events {
        /// Time at which the loss was noticed.
        pub time_ns: u64 => "ns",
        /// Source that lost events: `store` for rows that the recorder could not write in time; `missed-FAMILY` for programs that the
        /// kernel did not run, such as `missed-doorbell`. Older traces count doorbells as `missed-other`.
        pub source: String,
        /// Events lost since the last row of this source.
        pub count: u64 => "events",
    }
}
