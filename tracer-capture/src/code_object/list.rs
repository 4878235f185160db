//! The runtime's list: `_amdgpu_r_debug`, a `struct r_debug` as of the C library (elf/link.h), and its `struct link_map`s.

use std::io;

use tracer_common::r_debug::{L_ADDR, L_NAME, L_NEXT, LINK_MAP_LEN, R_MAP};

/// Entries at the most. A list that is longer, or goes round in a circle, is not believed.
const MAX_ENTRIES: usize = 1 << 14;
/// The longest path has 4096 bytes; each can take three in a URI.
const MAX_URI: usize = 3 * 4096 + 128;
/// All names together: a list that goes round in a circle may have a long one.
const MAX_TEXT: usize = 8 << 20;
/// Reads end where a page does: the next one may not be there.
const PAGE: u64 = 4096;

/// Memory of a process.
pub trait Memory {
    /// Copies `to.len()` bytes from `address`.
    ///
    /// # Errors
    /// If not all of them are there.
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()>;
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address of the entry itself.
    pub node: u64,
    /// `l_addr`: the load base.
    pub base: u64,
    /// `l_name`: the URI.
    pub uri: Vec<u8>,
}

/// Reads the whole list; `debug` is the address of the `r_debug`.
///
/// # Errors
/// If a part can't be read, or is longer than any list is.
pub fn read(memory: &impl Memory, debug: u64) -> io::Result<Vec<Entry>> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut text_len = 0;
    let mut node = word(memory, debug.wrapping_add(R_MAP as u64))?;
    while node != 0 {
        if entries.len() >= MAX_ENTRIES {
            return Err(io::Error::other("the list of code objects is too long or circular"));
        }
        let mut bytes = [0; LINK_MAP_LEN];
        memory.read(node, &mut bytes)?;
        let field = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let name = field(L_NAME);
        let uri = if name == 0 { Vec::new() } else { text(memory, name)? };
        text_len += uri.len();
        if text_len > MAX_TEXT {
            return Err(io::Error::other("the names of code objects are too long"));
        }
        entries.push(Entry {
            node,
            base: field(L_ADDR),
            uri,
        });
        node = field(L_NEXT);
    }
    Ok(entries)
}

fn word(memory: &impl Memory, address: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    memory.read(address, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// A string that ends in 0.
fn text(memory: &impl Memory, mut address: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < MAX_URI {
        let to_end = PAGE - address % PAGE;
        let mut bytes = [0; 256];
        let len = usize::try_from(to_end).unwrap_or(bytes.len()).min(bytes.len());
        let part = &mut bytes[..len];
        memory.read(address, part)?;
        if let Some(end) = part.iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&part[..end]);
            return Ok(text);
        }
        text.extend_from_slice(part);
        address = address.wrapping_add(len as u64);
    }
    Err(io::Error::other("the name of a code object is too long"))
}

/// Which of the old entries are still there, and which of the new ones were not.
///
/// The runtime appends to its list and takes out of it, so what is still there has kept its order, in front of what is
/// new. An entry that breaks this was taken out and came again.
pub fn differences(old: &[Entry], new: &[Entry]) -> (Vec<bool>, Vec<bool>) {
    let mut stays = vec![false; old.len()];
    let mut added = vec![true; new.len()];
    let mut from = 0;
    for (entry, added) in new.iter().zip(&mut added) {
        let Some(at) = old.iter().skip(from).position(|known| known == entry) else {
            break;
        };
        stays[from + at] = true;
        *added = false;
        from += at + 1;
    }
    (stays, added)
}
