//! Events that sources lost.

use serde::{Deserialize, Serialize};

use super::table;

table! {
    /// Events that sources lost.
    #[derive(Serialize, Deserialize)]
    pub struct Loss: "losses" by time_ns, Events {
        /// Time at which the loss was noticed.
        pub time_ns: u64 => "ns",
        /// Source that lost events; `store` for rows that the recorder could not write in time.
        pub source: String,
        /// Events lost since the last row of this source.
        pub count: u64 => "events",
    }
}
