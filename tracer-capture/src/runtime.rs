//! Runtimes: the libraries that processes map, what the resolver finds in them, and the code objects that they have loaded.

pub mod code_object;
pub mod debug_files;
pub(crate) mod elf_peek;
pub(crate) mod file_server;
pub(crate) mod library;
pub mod resolver;
pub(crate) mod thunk;
pub mod unwind;
