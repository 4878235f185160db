//! Texts and bytes of a column's cells, each stored once.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Distinct texts, numbered in the order of their arrival. Names of kernels, paths and kinds repeat from row to row.
#[derive(Clone, Debug, Default)]
pub(super) struct Texts {
    heap: Vec<u8>,
    /// The end of each text in `heap`.
    ends: Vec<usize>,
    /// The numbers, by the hash of the text. The hash depends on a number that nobody who chooses a text knows.
    numbers: HashTable<usize>,
    hashes: RandomState,
    /// The number that was returned last.
    last: usize,
}

impl Texts {
    /// Returns the number of distinct texts.
    pub(super) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Returns the bytes of memory that the texts take.
    pub(super) fn bytes(&self) -> usize {
        // An entry of the table is a number and a byte.
        self.heap.len() + size_of_val(&*self.ends) + self.numbers.capacity() * (size_of::<usize>() + 1)
    }

    /// Returns a text by its number.
    pub(super) fn get(&self, number: usize) -> Option<&[u8]> {
        text(&self.heap, &self.ends, number)
    }

    /// Returns the number of a text, which is stored if it is new.
    pub(super) fn number(&mut self, bytes: &[u8]) -> u64 {
        if self.get(self.last) != Some(bytes) {
            self.last = self.find_or_add(bytes);
        }
        self.last as u64
    }

    fn find_or_add(&mut self, bytes: &[u8]) -> usize {
        let Self {
            heap,
            ends,
            numbers,
            hashes,
            ..
        } = self;
        let hash = hashes.hash_one(bytes);
        if let Some(&known) = numbers.find(hash, |&known| text(heap, ends, known) == Some(bytes)) {
            return known;
        }
        let number = ends.len();
        heap.extend_from_slice(bytes);
        ends.push(heap.len());
        numbers.insert_unique(hash, number, |&known| {
            hashes.hash_one(text(heap, ends, known).unwrap_or_default())
        });
        number
    }

    /// Removes the texts, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.ends.clear();
        self.numbers.clear();
        self.last = 0;
    }
}

fn text<'a>(heap: &'a [u8], ends: &[usize], number: usize) -> Option<&'a [u8]> {
    let end = *ends.get(number)?;
    let begin = number
        .checked_sub(1)
        .map_or(Some(0), |before| ends.get(before).copied())?;
    heap.get(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_is_stored_once_and_found_by_its_number() {
        let mut texts = Texts::default();
        let words: [&[u8]; 6] = [b"", b"doorbell", b"", b"unseen", b"doorbell", b"door"];
        assert_eq!(words.map(|word| texts.number(word)), [0, 1, 0, 2, 1, 3]);
        let found = [0, 1, 2, 3, 4].map(|number| texts.get(number));
        assert_eq!(
            found,
            [Some(&b""[..]), Some(b"doorbell"), Some(b"unseen"), Some(b"door"), None]
        );
        assert_eq!((texts.count(), texts.heap.len()), (4, 18));
        texts.clear();
        assert_eq!(texts.get(0), None);
        assert_eq!((texts.number(b"unseen"), texts.count()), (0, 1));
    }

    #[test]
    fn thousands_of_texts_are_found() {
        let mut texts = Texts::default();
        for round in 0..2 {
            for n in 0..5_000_u64 {
                assert_eq!(texts.number(format!("kernel {n}").as_bytes()), n, "{round}");
            }
        }
    }
}
