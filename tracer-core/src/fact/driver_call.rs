//! Calls of functions of the kernel driver.

/// A call of a function of the kernel driver. It shows how a queue reached the scheduler firmware, and how long that took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverCall {
    /// Process of the thread that made the call; for a kernel thread, 0 or its own id.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Time of entry.
    pub enter_ns: u64,
    /// Time of return.
    pub exit_ns: u64,
    /// Name of the function, without a compiler's suffix.
    pub function: String,
    /// Low half of the return register, as a number. It is the result of a function that returns `int`. For a function that returns
    /// `void` or `bool` it means nothing.
    pub ret: i32,
    /// Whether that process is traced.
    pub traced: bool,
}
