//! Changes of a runtime's list of loaded code objects.

use super::Origin;
use crate::code_object;

/// A change of the list of one process.
#[derive(Clone, Copy, Debug)]
pub struct CodeObject<'a> {
    /// Who made it, and when the list was as it is told here.
    pub origin: Origin,
    /// What it was.
    pub change: CodeObjectChange<'a>,
}

/// What a change was.
#[derive(Clone, Copy, Debug)]
pub enum CodeObjectChange<'a> {
    /// A code object is in the list that was not there.
    Loaded(&'a code_object::CodeObject),
    /// One is no longer there.
    Unloaded {
        /// Its number: [`code_object::CodeObject::id`].
        id: u64,
    },
    /// The list changed and could not be read. What was in it may be gone; what still is comes again as
    /// [`Self::Loaded`] once the list can be read.
    Unread,
}
