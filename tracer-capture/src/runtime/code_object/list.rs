//! The runtime's list: `_amdgpu_r_debug`, a `struct r_debug` as in the C library (elf/link.h), and its `struct link_map`s.

use std::io;

use tracer_common::r_debug::{L_ADDR, L_NAME, L_NEXT, LINK_MAP_LEN, R_MAP};

/// Largest number of entries. A list that is longer, or circular, is rejected.
const MAX_ENTRIES: usize = 1 << 14;
/// The longest path has 4096 bytes, and each byte can take three in a URI.
const MAX_URI: usize = 3 * 4096 + 128;
/// Limit in bytes for all names together: a circular list may contain a long name.
const MAX_TEXT: usize = 8 << 20;
/// A read ends at a page boundary, because the next page may not be mapped.
const PAGE: u64 = 4096;

/// The memory of a process.
pub trait Memory {
    /// Copies `to.len()` bytes from `address`.
    ///
    /// # Errors
    /// If not all of the bytes are readable.
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()>;
}

/// An entry of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Address of the entry itself.
    pub node: u64,
    /// `l_addr`: the load base.
    pub base: u64,
    /// `l_name`: the URI.
    pub uri: Vec<u8>,
}

/// Reads the whole list. `debug` is the address of the `r_debug`.
///
/// # Errors
/// If a part can't be read, or exceeds a limit.
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

/// Reads a string that ends in 0.
fn text(memory: &impl Memory, mut address: u64) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < MAX_URI {
        let len = (PAGE - address % PAGE).min(256);
        let part = &mut [0; 256][..len as usize];
        memory.read(address, part)?;
        text.extend(part.iter().take_while(|&&byte| byte != 0));
        if part.contains(&0) {
            return Ok(text);
        }
        address = address.wrapping_add(len);
    }
    Err(io::Error::other("the name of a code object is too long"))
}

/// Returns which old entries remain, and which new entries are additions.
///
/// The runtime appends to its list and removes entries from it. So the remaining entries keep their order and precede the
/// additions. An entry that breaks this order was removed and added again.
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
