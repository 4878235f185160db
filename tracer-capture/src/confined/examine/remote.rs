//! The memory of a process, for reads that follow pointers.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    io,
};

use super::Examine;
use crate::{
    confined::{
        answer::ReadError,
        request::{MAX_PIECES, Piece},
    },
    runtime::code_object::list::Memory,
};

/// The number of bytes that are fetched at once: the target of a pointer is often beside the target of the previous pointer.
const PAGE: u64 = 4096;
/// The maximum number of pages that are kept.
const MAX_PAGES: usize = 4096;
/// The bytes of a page, as the length of a piece.
const PAGE_LEN: u32 = 4096;

/// The memory of a process, by pages, each of which is fetched once. Use it for one traversal, and do not keep it.
pub struct Remote<'a> {
    examine: Examine<'a>,
    pages: RefCell<HashMap<u64, Option<Vec<u8>>>>,
}

impl<'a> Remote<'a> {
    pub(super) fn new(examine: Examine<'a>) -> Self {
        let pages = RefCell::default();
        Self { examine, pages }
    }

    /// Reads one u64.
    ///
    /// # Errors
    /// Fails with EFAULT if the word is not there, and with a [`ReadError`] otherwise.
    pub fn word(&self, address: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Fetches the pages of these addresses with one request. A page that is not there, or can't be read now, is requested again
    /// when it is needed.
    pub fn fetch_all(&self, addresses: impl Iterator<Item = u64>) {
        let pages: BTreeSet<u64> = addresses.map(|address| address - address % PAGE).collect();
        let mut known = self.pages.borrow_mut();
        let missing: Vec<u64> = pages
            .into_iter()
            .filter(|page| !known.contains_key(page))
            .take(MAX_PIECES)
            .collect();
        let piece = |&address: &u64| Piece { address, len: PAGE_LEN };
        if missing.len() < 2 || known.len() + missing.len() > MAX_PAGES {
            return;
        }
        let Ok(memory) = self.examine.pieces(missing.iter().map(piece).collect()) else {
            return;
        };
        let bytes = memory.bytes.chunks(PAGE_LEN as usize);
        for ((page, bytes), _) in missing.iter().zip(bytes).zip(memory.there).filter(|(_, there)| *there) {
            known.insert(*page, Some(bytes.to_vec()));
        }
    }

    fn fetch(&self, page: u64) -> Result<(), ReadError> {
        let mut pages = self.pages.borrow_mut();
        if pages.contains_key(&page) {
            return Ok(());
        }
        if pages.len() >= MAX_PAGES {
            pages.clear();
        }
        pages.insert(page, self.examine.piece(page, PAGE_LEN)?);
        Ok(())
    }
}

impl Memory for Remote<'_> {
    fn read(&self, address: u64, to: &mut [u8]) -> io::Result<()> {
        let gone = || io::Error::from_raw_os_error(libc::EFAULT);
        let mut done = 0;
        while done < to.len() {
            let at = address.checked_add(done as u64).ok_or_else(gone)?;
            let (page, within) = (at - at % PAGE, (at % PAGE) as usize);
            self.fetch(page)?;
            let pages = self.pages.borrow();
            let bytes = pages.get(&page).and_then(Option::as_ref).ok_or_else(gone)?;
            let from = bytes.get(within..).unwrap_or_default();
            let len = from.len().min(to.len() - done);
            to[done..done + len].copy_from_slice(&from[..len]);
            done += len;
        }
        Ok(())
    }
}
