//! Calls of functions of the kernel driver.

/// A call of a function of the kernel driver: how a queue reached the scheduler firmware, and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverCall {
    /// Process of the thread that ran it; of the kernel's own threads, 0 or their own id.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// Entry.
    pub enter_ns: u64,
    /// Return.
    pub exit_ns: u64,
    /// Name of the function, without a compiler's suffix.
    pub function: String,
    /// The low half of the return register as a number: the result of functions that return `int`. Others return `void` or
    /// `bool`; then it means nothing.
    pub ret: i32,
    /// Whether that process is traced.
    pub traced: bool,
}
