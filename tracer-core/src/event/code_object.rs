//! Changes of a runtime's list of loaded code objects.

use super::Origin;
use crate::code_object;

/// A change of one process's list.
#[derive(Clone, Copy, Debug)]
pub struct CodeObject<'a> {
    /// Thread that made the change, and the time at which the list was in this state.
    pub origin: Origin,
    /// The change.
    pub change: CodeObjectChange<'a>,
}

/// A change of a list of code objects.
#[derive(Clone, Copy, Debug)]
pub enum CodeObjectChange<'a> {
    /// A new code object is in the list.
    Loaded(&'a code_object::CodeObject),
    /// A code object is no longer in the list.
    Unloaded {
        /// Its number: [`code_object::CodeObject::id`].
        id: u64,
    },
    /// The list changed and could not be read. Its previous entries may be gone. Entries that still exist are reported again as
    /// [`Self::Loaded`] once the list can be read.
    Unread,
}
