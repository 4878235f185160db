//! Function boundaries of a stripped library, from the frame descriptions of `.eh_frame`.
//!
//! The x86-64 psABI requires them for unwinding, so `strip` keeps them when it drops every symbol.

use std::collections::HashMap;

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

use super::code::Body;
use super::elf::Image;

/// Limit in bytes, above the size in any library (Debian's runtimes have 200 KiB). The reader ignores the rest.
const MAX_SECTION: usize = 16 << 20;
/// Limit for the common parts that frame descriptions refer to. Linkers keep one of each kind, a handful. A malicious section may
/// have a description each 20 bytes, and each may refer to a part that is as long as the section.
const MAX_COMMON: usize = 64;

/// The functions of a library that have unwind information.
pub(super) struct Functions<'data> {
    pub(super) image: &'data Image<'data>,
    /// Start and length of each function, sorted by start.
    ranges: Vec<(u64, u64)>,
}

/// The machine code of one function.
#[derive(Clone, Copy)]
pub(super) struct Code<'data> {
    pub(super) vaddr: u64,
    pub(super) bytes: &'data [u8],
}

impl Code<'_> {
    pub(super) fn decode(self) -> Body {
        Body::decode(self.vaddr, self.bytes)
    }
}

impl<'data> Functions<'data> {
    /// Reads the frame descriptions, and ignores those after a malformed one. Returns no functions if the descriptions cover more
    /// code than the file has bytes.
    pub(super) fn read(image: &'data Image<'data>) -> Self {
        let mut ranges = Vec::new();
        if let Some(section) = image.section(b".eh_frame") {
            let data = section.data.get(..MAX_SECTION).unwrap_or(section.data);
            let frames = EhFrame::new(data, LittleEndian);
            let bases = BaseAddresses::default().set_eh_frame(section.vaddr);
            let mut entries = frames.entries(&bases);
            let mut common = HashMap::new();
            while let Ok(Some(entry)) = entries.next() {
                let CieOrFde::Fde(partial) = entry else { continue };
                let parsed = partial.parse(|frames, bases, offset| {
                    if let Some(known) = common.get(&offset) {
                        return Clone::clone(known);
                    }
                    if common.len() == MAX_COMMON {
                        return Err(gimli::Error::NotCieId(offset.0 as u64));
                    }
                    let read = frames.cie_from_offset(bases, offset);
                    common.insert(offset, read.clone());
                    read
                });
                ranges.extend(parsed.map(|fde| (fde.initial_address(), fde.len())));
            }
        }
        ranges.sort_unstable();
        ranges.dedup_by_key(|(start, _)| *start);
        // Only a malicious file has overlapping functions. Reading each of them could take hours.
        let total = ranges.iter().fold(0u64, |total, (_, len)| total.saturating_add(*len));
        if total > image.bytes.len() as u64 {
            ranges.clear();
        }
        Self { image, ranges }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns whether a function starts at `vaddr`.
    pub(super) fn is_start(&self, vaddr: u64) -> bool {
        self.length(vaddr).is_some()
    }

    /// Returns the whole code of the function that starts at `vaddr`.
    pub(super) fn code(&self, vaddr: u64) -> Option<Code<'data>> {
        let length = self.length(vaddr)?;
        let bytes = self.image.code(vaddr, length)?;
        (bytes.len() as u64 == length).then_some(Code { vaddr, bytes })
    }

    /// Decodes the function that starts at `vaddr`, unless it has more than `longest` bytes.
    pub(super) fn body(&self, vaddr: u64, longest: usize) -> Option<Body> {
        let code = self.code(vaddr).filter(|code| code.bytes.len() <= longest);
        code.map(Code::decode)
    }

    /// Returns the code of all functions, in address order.
    pub(super) fn all(&self) -> impl Iterator<Item = Code<'data>> {
        self.ranges.iter().filter_map(|&(start, _)| self.code(start))
    }

    fn length(&self, vaddr: u64) -> Option<u64> {
        let index = self.ranges.binary_search_by_key(&vaddr, |(start, _)| *start).ok()?;
        self.ranges.get(index).map(|(_, length)| *length)
    }
}
