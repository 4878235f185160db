//! Files written with the rights of the invoking user, and by descriptor.
//!
//! tracer runs as root, and the folders that it writes to belong to others: the user who called sudo, and every program that runs
//! as that user. Two rules keep root's rights away from these folders.
//!
//! - The writing thread gives up its rights ([`Owner::assume`]): its file system ids are those of the invoking user, and it has no
//!   capability. The user could have made any change that the thread can make.
//! - A path is resolved once, with these rights. From then on a [`Folder`] is a descriptor: names in it are created with `O_EXCL`,
//!   opened with `O_NOFOLLOW`, and moved by `renameat`. Renaming the folder, or planting links in it, leads to no other place.

mod folder;
mod mode;
mod output;
mod owner;

pub use folder::{Entry, Folder};
pub use mode::{BadMode, Mode};
pub use output::{append, fill, write};
pub use owner::Owner;
