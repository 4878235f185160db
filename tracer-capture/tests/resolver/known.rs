//! Known facts about Debian's builds, from their disassembly and from traps on the doorbell page at run time.
//!
//! Nothing here comes from the resolver. The queue's functions come from the relocations of the vtable that contains
//! `StoreRelaxed`, by the slots in the class's header, and then from their instructions.

use tracer_capture::runtime::resolver::{DoorbellRole, InstructionKind};

/// One measured build of the HSA runtime. File offsets of code equal addresses in all of them.
pub struct Known {
    pub build_id: &'static str,
    pub version: &'static str,
    pub doorbells: &'static [Doorbell],
    pub thunk: Option<Thunk>,
    pub queue: QueueFunctions,
    pub sdma: &'static [Sdma],
    pub queue_create: u64,
    pub queue_destroy: u64,
    pub add_write_index_relaxed: u64,
    pub add_write_index_screlease: u64,
    pub signal_store_relaxed: u64,
    pub signal_store_screlease: u64,
}

pub struct Doorbell {
    pub role: DoorbellRole,
    pub function: u64,
    /// Offset from the function's start, and the instruction there.
    pub site: (u64, InstructionKind),
    pub signal_offset: i16,
    pub stores: &'static [u64],
    pub thunk_bypass: bool,
}

/// The location of the flags that decide whether doorbells are handed over: a pointer, the hops after it, and flags of a byte each
/// at the end.
pub struct Thunk {
    pub pointer: u64,
    pub hops: &'static [i32],
    pub flags: &'static [i32],
}

/// Functions of `AqlQueue` that do not ring doorbells.
pub struct QueueFunctions {
    pub add_write_index_acq_rel: u64,
    pub store_write_index_relaxed: u64,
    pub store_write_index_release: u64,
    pub execute_pm4: u64,
    /// Offset of its first push from its start.
    pub execute_pm4_site: u64,
    /// Offset of the queue object's field that contains the address of its `amd_queue_t`.
    pub queue_offset: i16,
}

/// Function, offset of the site (a push), doorbell store, bits, offset of the doorbell's address in the object.
pub type Sdma = (u64, u64, u64, u8, i16);

pub const KNOWN: [Known; 4] = [
    Known {
        build_id: "3ef9d39e4700b0681ee0ff8d2929b92c62f30294",
        version: "5.2.3",
        doorbells: &[main(0x3c510, (0, InstructionKind::Push), 0x40, &[0x3c58c, 0x3c5d3])],
        thunk: None,
        queue: QueueFunctions {
            add_write_index_acq_rel: 0x3c430,
            store_write_index_relaxed: 0x3c4e0,
            store_write_index_release: 0x3c4f0,
            execute_pm4: 0x3d410,
            execute_pm4_site: 0,
            queue_offset: 0x18,
        },
        sdma: &[
            (0x2a700, 0, 0x2a780, 32, 0x3c),
            (0x2bc50, 0, 0x2bcca, 64, 0x3c),
            (0x2d220, 0, 0x2d29a, 64, 0x3c),
        ],
        queue_create: 0x70c70,
        queue_destroy: 0x70c90,
        add_write_index_relaxed: 0x70d70,
        add_write_index_screlease: 0x70d80,
        signal_store_relaxed: 0x70e70,
        signal_store_screlease: 0x70e80,
    },
    Known {
        build_id: TRIXIE,
        version: "6.1.2",
        doorbells: &[main(0x4e5c0, (4, InstructionKind::Push), 0x40, &[0x4e64b, 0x4e693])],
        thunk: None,
        queue: QueueFunctions {
            add_write_index_acq_rel: 0x4e4c0,
            store_write_index_relaxed: 0x4e590,
            store_write_index_release: 0x4e5a0,
            execute_pm4: 0x504f0,
            execute_pm4_site: 4,
            queue_offset: 0x18,
        },
        sdma: &[
            (0x35710, 4, 0x357a1, 32, 0x84),
            (0x37400, 4, 0x3748b, 64, 0x84),
            (0x39200, 4, 0x3928b, 64, 0x84),
        ],
        queue_create: 0x9b980,
        queue_destroy: 0x9b9a0,
        add_write_index_relaxed: 0x9bb10,
        add_write_index_screlease: 0x9bb30,
        signal_store_relaxed: 0x9bd10,
        signal_store_screlease: 0x9bd30,
    },
    Known {
        build_id: "5412e7bc37abffd295a4814cb8aff2a81bef0a8c",
        version: "6.4.3",
        doorbells: &[main(0x6dc50, (4, InstructionKind::Push), 0x48, &[0x6dce2, 0x6dd2b])],
        thunk: None,
        queue: QueueFunctions {
            add_write_index_acq_rel: 0x6db60,
            store_write_index_relaxed: 0x6dc30,
            store_write_index_release: 0x6dc40,
            execute_pm4: 0x70380,
            execute_pm4_site: 4,
            queue_offset: 0x18,
        },
        sdma: &[
            (0x513d0, 4, 0x51460, 32, 0x84),
            (0x534f0, 4, 0x53579, 64, 0x84),
            (0x55750, 4, 0x557d9, 64, 0x84),
        ],
        queue_create: 0xc1340,
        queue_destroy: 0xc1360,
        add_write_index_relaxed: 0xc14d0,
        add_write_index_screlease: 0xc14f0,
        signal_store_relaxed: 0xc16d0,
        signal_store_screlease: 0xc16f0,
    },
    Known {
        build_id: EXPERIMENTAL,
        version: "7.2.4",
        doorbells: &[
            inlined(DoorbellRole::Main, 0x66a70, 0x1c, 0x50, &[0x66ab3]),
            inlined(DoorbellRole::SignalThunkRelaxed, 0x66c80, 0x1c, 0x08, &[0x66cc3]),
            inlined(DoorbellRole::ReleaseMain, 0x66cd0, 0x18, 0x50, &[0x66d2c]),
        ],
        thunk: Some(Thunk {
            pointer: 0x42dcc0,
            hops: &[0x5a8],
            flags: &[0x368, 0x369],
        }),
        queue: QueueFunctions {
            add_write_index_acq_rel: 0x66980,
            store_write_index_relaxed: 0x66a50,
            store_write_index_release: 0x66a60,
            execute_pm4: 0x69190,
            execute_pm4_site: 4,
            queue_offset: 0x10,
        },
        sdma: &[(0x4b2b0, 4, 0x4b339, 64, 0x84), (0x4c170, 4, 0x4c1f9, 64, 0x84)],
        queue_create: 0xc0e10,
        queue_destroy: 0xc0e30,
        add_write_index_relaxed: 0xc0fa0,
        add_write_index_screlease: 0xc0fc0,
        signal_store_relaxed: 0xc11a0,
        signal_store_screlease: 0xc11c0,
    },
];

/// Build-id of 7.2.4, the first build that can hand doorbells over.
pub const EXPERIMENTAL: &str = "973abb449f02e6d1eab82b44df7c2165782c5e99";

/// Build-id of 6.1.2 in Debian stable, and more of its addresses. The tests change copies of this build.
pub const TRIXIE: &str = "b6b95ef508da4a05ac4a421d634550f3ed87fd60";
pub const STORE_RELAXED: u64 = 0x4e5c0;
pub const STORE_RELEASE: u64 = 0x4e5b0;
pub const SIGNAL_STORE_RELAXED: u64 = 0x4e6c0;
pub const SIGNAL_STORE_RELEASE: u64 = 0x4e880;
pub const SIGNAL_STORE_RELEASE_LEN: usize = 24;
/// Vtables with 29 slots: of `AqlQueue` and of `InterceptQueue`.
pub const QUEUE_VTABLE: u64 = 0x19f990;
pub const OTHER_QUEUE_VTABLE: u64 = 0x1a0158;
pub const QUEUE_SLOTS: u64 = 29;

const fn main(function: u64, site: (u64, InstructionKind), signal_offset: i16, stores: &'static [u64]) -> Doorbell {
    Doorbell {
        role: DoorbellRole::Main,
        function,
        site,
        signal_offset,
        stores,
        thunk_bypass: false,
    }
}

const fn inlined(role: DoorbellRole, function: u64, site: u64, signal_offset: i16, stores: &'static [u64]) -> Doorbell {
    Doorbell {
        role,
        function,
        site: (site, InstructionKind::Jcc),
        signal_offset,
        stores,
        thunk_bypass: true,
    }
}
