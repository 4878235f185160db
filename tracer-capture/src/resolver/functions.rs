//! Function boundaries of a stripped library: the frame descriptions of `.eh_frame`.
//!
//! The x86-64 psABI demands them for unwinding, so `strip` keeps them when it drops every symbol.

use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};

use super::elf::Image;

/// Start and length of every function that has unwind information, sorted by start.
pub(super) struct Functions {
    ranges: Vec<(u64, u64)>,
}

/// The machine code of one function.
#[derive(Clone, Copy)]
pub(super) struct Code<'data> {
    pub(super) vaddr: u64,
    pub(super) bytes: &'data [u8],
}

impl Functions {
    /// Reads the frame descriptions; what follows a malformed one is left out.
    pub(super) fn read(image: &Image<'_>) -> Self {
        let mut ranges = Vec::new();
        if let Some(section) = image.section(b".eh_frame") {
            let frames = EhFrame::new(section.data, LittleEndian);
            let bases = BaseAddresses::default().set_eh_frame(section.vaddr);
            let mut entries = frames.entries(&bases);
            while let Ok(Some(entry)) = entries.next() {
                let CieOrFde::Fde(partial) = entry else { continue };
                let parsed = partial.parse(|frames, bases, offset| frames.cie_from_offset(bases, offset));
                ranges.extend(parsed.map(|fde| (fde.initial_address(), fde.len())));
            }
        }
        ranges.sort_unstable();
        ranges.dedup_by_key(|(start, _)| *start);
        Self { ranges }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Whether a function begins at `vaddr`.
    pub(super) fn is_start(&self, vaddr: u64) -> bool {
        self.length(vaddr).is_some()
    }

    /// The whole code of the function that begins at `vaddr`.
    pub(super) fn code<'data>(&self, image: &Image<'data>, vaddr: u64) -> Option<Code<'data>> {
        let length = self.length(vaddr)?;
        let bytes = image.code(vaddr, length)?;
        (bytes.len() as u64 == length).then_some(Code { vaddr, bytes })
    }

    /// The functions whose length lies in `lengths`.
    pub(super) fn of_length<'a, 'data>(
        &'a self,
        image: &'a Image<'data>,
        lengths: std::ops::Range<u64>,
    ) -> impl Iterator<Item = Code<'data>> + 'a {
        let fitting = self.ranges.iter().filter(move |(_, length)| lengths.contains(length));
        fitting.filter_map(|&(start, _)| self.code(image, start))
    }

    fn length(&self, vaddr: u64) -> Option<u64> {
        let index = self.ranges.binary_search_by_key(&vaddr, |(start, _)| *start).ok()?;
        self.ranges.get(index).map(|(_, length)| *length)
    }
}
