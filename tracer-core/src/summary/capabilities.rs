//! What a recording watched.

use serde::{Deserialize, Serialize};

/// What was watched: a number that nothing could have counted is unknown, not 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// Stores to AQL doorbells.
    pub doorbells: bool,
    /// The packets that they publish.
    pub packets: bool,
    /// Stores to doorbells of SDMA queues.
    pub sdma_doorbells: bool,
    /// Advances of write indexes.
    pub reserves: bool,
    /// Ioctls on KFD and DRM devices.
    pub ioctls: bool,
    /// Jobs on rings of the kernel driver.
    pub kernel_rings: bool,
    /// Functions of the kernel driver: those that it has.
    pub driver: bool,
    /// Trace events of the kernel driver itself: those that it has.
    pub driver_events: bool,
    /// Code objects that are loaded and unloaded, which name kernels.
    pub code_objects: bool,
    /// Calls of functions of HIP or HSA, one by one: those that were asked for and that their libraries have.
    pub api: bool,
    /// How many calls of them there were, and nothing of any one call.
    pub api_stats: bool,
    /// hsaKmtQueueRingDoorbell.
    pub thunk: bool,
    /// Packets published past every probe.
    pub unseen: bool,
    /// Calls of hsa_queue_create, which tell queues that a program made from those that its runtime made for itself.
    pub hsa_queues: bool,
    /// What programs submit to proxies that they were given instead of queues.
    pub requests: bool,
}

impl Capabilities {
    /// Each by the name that it has in data, and whether it was watched.
    #[must_use]
    pub const fn each(&self) -> [(&'static str, bool); 15] {
        // Whole: a field that is added must be listed.
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

    /// What a view of submissions lacks: sources that only add to it are left out.
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
