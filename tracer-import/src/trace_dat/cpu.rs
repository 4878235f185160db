//! The records of a processor, page by page.

use std::io::{Read, Seek};

use tracer_core::trace_page;

use super::{
    Result,
    data::{Compression, go, half},
};

/// Most bytes of a compressed piece. trace-cmd compresses ten pages at once.
const MAX_PIECE: u64 = 64 << 20;

/// Compressed pages.
#[derive(Clone, Debug)]
pub struct Packed {
    compression: Compression,
    /// Pieces that were not read; `None` before their number was read.
    pieces: Option<u32>,
    /// Pages that were unpacked, and how much of them was read.
    pages: Vec<u8>,
    read: usize,
}

impl Packed {
    /// Nothing was read yet.
    pub fn new(compression: Compression) -> Self {
        Self {
            compression,
            pieces: None,
            pages: Vec::new(),
            read: 0,
        }
    }
}

/// The records of a processor.
#[derive(Debug)]
pub struct Cpu {
    /// Where the next data is in the file, and how much is left.
    at: u64,
    left: u64,
    size: usize,
    packed: Option<Packed>,
    page: Vec<u8>,
    /// Times and places of the records of the page.
    records: Vec<(u64, usize, usize)>,
    next: usize,
    /// Added to every time, ns.
    pub shift_ns: i64,
    /// Records that were overwritten before those that follow.
    pub lost: u64,
    /// Pages that were not understood to their end.
    pub damaged: u64,
}

impl Cpu {
    /// The records are in `left` bytes from an offset on, in pages of `size` bytes.
    pub fn new(at: u64, left: u64, size: usize, packed: Option<Packed>) -> Self {
        Self {
            at,
            left,
            size,
            packed,
            page: Vec::new(),
            records: Vec::new(),
            next: 0,
            shift_ns: 0,
            lost: 0,
            damaged: 0,
        }
    }

    /// Returns the time of the next record; `None` at the end.
    pub fn time<R: Read + Seek>(&mut self, file: &mut R) -> Result<Option<u64>> {
        loop {
            if let Some(&(time, ..)) = self.records.get(self.next) {
                return Ok(Some(time.saturating_add_signed(self.shift_ns)));
            }
            if !self.read_page(file)? {
                return Ok(None);
            }
            self.lost = self.lost.saturating_add(trace_page::missed(&self.page));
            self.records.clear();
            self.next = 0;
            let records = &mut self.records;
            let whole = trace_page::records(&self.page, |time, at, size| records.push((time, at, size)));
            self.damaged += u64::from(!whole);
        }
    }

    /// Returns the next record; nothing at the end.
    pub fn record(&self) -> &[u8] {
        let record = self.records.get(self.next);
        let bytes = record.and_then(|&(_, at, size)| self.page.get(at..at + size));
        bytes.unwrap_or_default()
    }

    /// Goes on to the record after the next one.
    pub fn pass(&mut self) {
        self.next += 1;
    }

    /// Reads the next page. Returns whether there is one.
    fn read_page<R: Read + Seek>(&mut self, file: &mut R) -> Result<bool> {
        let Some(packed) = &mut self.packed else {
            if self.left == 0 {
                return Ok(false);
            }
            go(file, self.at)?;
            let length = self.left.min(self.size as u64);
            self.page.clear();
            file.by_ref().take(length).read_to_end(&mut self.page)?;
            self.at += length;
            self.left -= length;
            if (self.page.len() as u64) < length {
                // The file is cut short, and with it the page.
                self.left = 0;
            }
            return Ok(true);
        };
        if packed.read >= packed.pages.len() {
            if self.left == 0 {
                return Ok(false);
            }
            go(file, self.at)?;
            if packed.pieces.is_none() {
                packed.pieces = Some(half(file)?);
                self.at += 4;
            }
            match &mut packed.pieces {
                Some(0) | None => return Ok(false),
                Some(pieces) => *pieces -= 1,
            }
            packed.pages = packed.compression.part(file, MAX_PIECE)?;
            packed.read = 0;
            self.at = file.stream_position()?;
        }
        let end = (packed.read + self.size).min(packed.pages.len());
        self.page.clear();
        self.page.extend_from_slice(&packed.pages[packed.read..end]);
        packed.read = end;
        Ok(!self.page.is_empty())
    }
}
