//! How the program of a driver function finds facts in the function's arguments: offsets that user space takes from the kernel's
//! BTF, for each function.

/// The number of facts.
pub const FACTS: usize = 5;

/// The facts, as positions.
pub mod fact {
    /// Index of the queue's doorbell in the doorbell BAR.
    pub const DOORBELL: usize = 0;
    /// The queue's type.
    pub const TYPE: usize = 1;
    /// The queue's KFD id.
    pub const QUEUE_ID: usize = 2;
    /// The process that owns the queue.
    pub const PROCESS: usize = 3;
    /// The id of its address space on the GPU.
    pub const PASID: usize = 4;
}

/// The maximum number of reads from an argument to a fact.
pub const MAX_HOPS: usize = 4;

/// The way from an argument to a fact.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FactPlan {
    /// Number of the argument, from 0.
    pub argument: u8,
    /// Number of reads; 0 if the function's arguments do not lead to this fact.
    pub hops: u8,
    /// Bytes of the last read: 2, 4 or 8. All other reads are of pointers.
    pub bytes: u8,
    /// Unused.
    pub pad: u8,
    /// Offset of each read from the address that the former one gave, or from the argument.
    pub offsets: [u32; MAX_HOPS],
}

/// The plan of a function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriverPlan {
    /// 1 if the function sets the facts: they are read at its return, if it succeeds. Otherwise they are read at its entry.
    pub at_return: u32,
    /// A plan for each fact.
    pub facts: [FactPlan; FACTS],
}
