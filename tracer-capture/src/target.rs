//! The processes that are recorded: the command that tracer starts, and running processes that it attaches to.

pub mod attach;
pub mod candidate;
pub mod elsewhere;
pub(crate) mod file_tree;
pub mod launch;
pub mod pid_namespace;
pub(crate) mod proc_maps;
pub(crate) mod process_stat;
pub(crate) mod whole_machine;
