//! What a recording watched.

use serde::{Deserialize, Serialize};

/// The sources that were watched: a number that no source could have counted is unknown, not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Stores to AQL doorbells.
    pub doorbells: bool,
    /// The packets that doorbells publish.
    pub packets: bool,
    /// Stores to doorbells of SDMA queues.
    pub sdma_doorbells: bool,
    /// Advances of write indexes.
    pub reserves: bool,
    /// Ioctls on KFD and DRM devices.
    pub ioctls: bool,
    /// Jobs on rings of the kernel driver.
    pub kernel_rings: bool,
    /// Functions of the kernel driver that it has.
    pub driver: bool,
    /// Trace events of the kernel driver itself that it has.
    pub driver_events: bool,
    /// Loads and unloads of code objects, which name kernels.
    pub code_objects: bool,
    /// Calls of functions of HIP or HSA, one by one: the functions that the user requested and that the libraries have.
    pub api: bool,
    /// Number of calls of these functions, without the individual calls.
    pub api_stats: bool,
    /// hsaKmtQueueRingDoorbell.
    pub thunk: bool,
    /// Packets that were published past every probe.
    pub unseen: bool,
    /// Calls of `hsa_queue_create`, which distinguish queues that a program created from queues that its runtime created for
    /// itself.
    pub hsa_queues: bool,
    /// Submissions of programs to proxies that they got instead of queues.
    pub requests: bool,
}

impl Capabilities {
    /// Returns every source by its name in data files, and whether it was watched.
    #[must_use]
    pub const fn each(&self) -> [(&'static str, bool); 15] {
        // Without `..`: a field that is added must be listed here.
        let Self {
            doorbells,
            packets,
            sdma_doorbells,
            reserves,
            ioctls,
            kernel_rings,
            driver,
            driver_events,
            code_objects,
            api,
            api_stats,
            thunk,
            unseen,
            hsa_queues,
            requests,
        } = *self;
        [
            ("doorbells", doorbells),
            ("packets", packets),
            ("sdma_doorbells", sdma_doorbells),
            ("reserves", reserves),
            ("ioctls", ioctls),
            ("kernel_rings", kernel_rings),
            ("driver", driver),
            ("driver_events", driver_events),
            ("code_objects", code_objects),
            ("api", api),
            ("api_stats", api_stats),
            ("thunk", thunk),
            ("unseen", unseen),
            ("hsa_queues", hsa_queues),
            ("requests", requests),
        ]
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
