//! Byte offsets of fields that user space reads from format files and BTF.

/// No such field.
pub const ABSENT: u32 = u32::MAX;
