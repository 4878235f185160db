//! The ioctls of /dev/kfd and of the render nodes.

pub mod abi;
pub mod drm;
mod errno;
pub mod events;
pub mod failure;
pub mod gem;
pub mod kfd;
pub mod memory;
pub mod queues;
pub mod request;
pub mod sharing;
#[cfg(test)]
mod tests;

pub use errno::Errno;

use abi::Abi;

/// The result of a handler: the errno if it fails. Arguments are copied back either way, as the driver does.
pub type IoctlResult = Result<(), Errno>;

/// Runs a handler on a struct at the start of the argument bytes.
fn with<A: Abi>(bytes: &mut [u8], handler: impl FnOnce(&mut A) -> IoctlResult) -> IoctlResult {
    let mut args = A::load(bytes);
    let result = handler(&mut args);
    args.store(bytes);
    result
}
