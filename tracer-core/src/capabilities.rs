//! What a recording watched.

use serde::{Deserialize, Serialize};

use crate::tables::Table;

/// Declares the sources, in the order in which reports list them.
macro_rules! sources {
    ($($(#[doc = $doc:literal])+ $source:ident,)+) => {
        /// The sources that were watched: a number that no source could have counted is unknown, not 0.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        pub struct Capabilities {
            $($(#[doc = $doc])+ pub $source: bool,)+
        }

        impl Capabilities {
            /// Returns every source by its name in data files, and whether it was watched.
            #[must_use]
            pub const fn each(&self) -> [(&'static str, bool); [$(stringify!($source)),+].len()] {
                [$((stringify!($source), self.$source)),+]
            }
        }
    };
}

sources! {
    /// Stores to AQL doorbells.
    doorbells,
    /// The packets that doorbells publish.
    packets,
    /// Stores to doorbells of SDMA queues.
    sdma_doorbells,
    /// Advances of write indexes.
    reserves,
    /// Ioctls on KFD and DRM devices.
    ioctls,
    /// Jobs on rings of the kernel driver.
    kernel_rings,
    /// Functions of the kernel driver that it has.
    driver,
    /// Trace events of the kernel driver itself that it has.
    driver_events,
    /// Loads and unloads of code objects, which name kernels.
    code_objects,
    /// Calls of functions of HIP or HSA, one by one: the functions that the user requested and that the libraries have.
    api,
    /// Number of calls of these functions, without the individual calls.
    api_stats,
    /// hsaKmtQueueRingDoorbell.
    thunk,
    /// Packets that were published past every probe.
    unseen,
    /// Calls of `hsa_queue_create`, which distinguish queues that a program created from queues that its runtime created for
    /// itself.
    hsa_queues,
    /// Submissions of programs to proxies that they got instead of queues.
    requests,
}

impl Capabilities {
    /// Returns the source that the rows of a table come from; `None` if they come from several, or from none that can be missing.
    #[must_use]
    pub const fn source_of(table: Table) -> Option<&'static str> {
        Some(match table {
            Table::Dispatches | Table::DispatchRuns | Table::Packets => "packets",
            Table::Doorbells | Table::DoorbellRuns => "doorbells",
            Table::Copies => "sdma_doorbells",
            Table::Ioctls => "ioctls",
            Table::RingJobs => "kernel_rings",
            Table::DriverCalls => "driver",
            Table::DriverEvents => "driver_events",
            Table::ApiCalls => "api",
            Table::ApiStats => "api_stats",
            Table::Proxies | Table::Requests => "requests",
            Table::CodeObjects | Table::Kernels => "code_objects",
            Table::Processes
            | Table::Queues
            | Table::Progress
            | Table::GpuTimes
            | Table::Libraries
            | Table::Losses
            | Table::Stacks => return None,
        })
    }

    /// Returns the sources that a view of submissions lacks. Sources that only add to it are omitted.
    #[must_use]
    pub fn blind(&self) -> Vec<&'static str> {
        const ADDING: [&str; 7] = [
            "driver",
            "driver_events",
            "code_objects",
            "api",
            "api_stats",
            "hsa_queues",
            "requests",
        ];
        let missing = self
            .each()
            .into_iter()
            .filter(|(name, watched)| !watched && !ADDING.contains(name));
        missing.map(|(name, _)| name).collect()
    }
}
