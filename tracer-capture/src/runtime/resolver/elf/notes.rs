//! The GNU build-id among the notes of a file.

/// `NT_GNU_BUILD_ID` (include/elf/common.h of binutils).
const BUILD_ID: u32 = 3;
/// Limit above the number of notes in any file; each note takes at least three words.
const MAX_NOTES: usize = 256;
/// Limit in bytes. Build-ids have 8 to 20 bytes; a longer one would only lead to folder names that no file system accepts.
const MAX_BUILD_ID: usize = 64;

/// Returns the build-id in the contents of a note section or segment, in lower-case hexadecimal. A note consists of three words
/// (length of the name, length of the description, type), then name and description, each padded to words.
pub(crate) fn build_id_in(notes: &[u8]) -> Option<String> {
    let mut rest = notes;
    for _ in 0..MAX_NOTES {
        let (head, after) = rest.split_first_chunk::<12>()?;
        let word = |at: usize| head.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
        let (name_len, len, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name = after.get(..name_len)?;
        let from = name_len.next_multiple_of(4);
        let description = after.get(from..)?.get(..len)?;
        if name == b"GNU\0" && kind == BUILD_ID && (2..=MAX_BUILD_ID).contains(&len) {
            return Some(description.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        rest = after.get(from..)?.get(len.next_multiple_of(4)..)?;
    }
    None
}
