//! User stacks of submissions.

use super::table;

table! {
    /// User stacks of threads that rang doorbells (`record --stacks`), one for each doorbell whose stack was taken. Dispatches of the
    /// same thread with the same time have this stack.
    pub struct Stack: "stacks" by time_ns, Events {
        /// Process.
        pub pid: u32,
        /// Thread.
        pub tid: u32,
        /// Time of the doorbell.
        pub time_ns: u64 => "ns",
        /// The frames, from the outermost function to the one that rang, a line each. A line is the function, the file that is mapped
        /// there, the linked address in it and the file's build id, separated by tabs; `-` stands for what is not known. Functions are
        /// demangled. Control characters of foreign names are escaped. Null if the process was gone before tracer could read what it
        /// had mapped.
        pub frames: Option<String>,
        /// Whether the first line is the outermost function of the thread. If it is false, the stack was longer than what was copied, or tracer
        /// could not unwind a function: callers are missing.
        pub complete: bool,
    }
}
