//! A copy of a library that still works, with everything moved in memory and in the file.

use super::patch::Patched;

const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;
const PT_LOAD: u32 = 1;
const PT_GNU_STACK: u32 = 0x6474_e551;
const SHT_RELA: u32 = 4;
const SHT_DYNAMIC: u32 = 6;
const SHT_DYNSYM: u32 = 11;
const SHF_ALLOC: u64 = 2;
const STT_TLS: u8 = 6;
const R_X86_64_RELATIVE: u64 = 8;
const R_X86_64_IRELATIVE: u64 = 37;
/// Entries of .dynamic that are addresses (gABI, figure 5-10, and the GNU ones).
const ADDRESSES: [u64; 16] = [
    3,
    4,
    5,
    6,
    7,
    12,
    13,
    23,
    25,
    26,
    32,
    36,
    0x6fff_fef5,
    0x6fff_fff0,
    0x6fff_fffc,
    0x6fff_fffe,
];

impl Patched {
    /// Adds `by`, a multiple of a page, to every address, and inserts `gap` bytes, also whole pages, before each segment except the
    /// first. The result still works: references to an address are relative to their own address, or in a table that this function
    /// rewrites.
    pub fn shift(self, by: u64, gap: u64) -> Self {
        assert!(by.is_multiple_of(4096) && gap.is_multiple_of(4096));
        let starts: Vec<u64> = self
            .headers(0x20, 0x38, PROGRAM_HEADER)
            .filter(|&at| self.half(at) == PT_LOAD && self.word(at + 8) > 0)
            .map(|at| self.word(at + 8))
            .collect();
        let moved = |offset: u64| offset + gap * starts.iter().filter(|&&start| start <= offset).count() as u64;
        let mut tables = self.clone_with(|new| {
            for at in self
                .headers(0x20, 0x38, PROGRAM_HEADER)
                .filter(|&at| self.half(at) != PT_GNU_STACK)
            {
                new.set(at + 8, moved(self.word(at + 8)));
                new.set(at + 16, self.word(at + 16) + by);
                new.set(at + 24, self.word(at + 24) + by);
            }
            for at in self.headers(0x28, 0x3c, SECTION_HEADER) {
                let offset = self.word(at + 24) as usize;
                let contents = offset..offset + self.word(at + 32) as usize;
                match self.half(at + 4) {
                    SHT_RELA => new.relocations(contents, by),
                    SHT_DYNSYM => new.symbols(contents, by),
                    SHT_DYNAMIC => new.dynamic(contents, by),
                    _ => {}
                }
                if self.word(at + 8) & SHF_ALLOC != 0 {
                    new.set(at + 16, self.word(at + 16) + by);
                }
                new.set(at + 24, moved(self.word(at + 24)));
            }
            new.set(0x28, moved(self.word(0x28)));
        });
        let mut shifted = Vec::new();
        let mut from = 0;
        for start in starts {
            shifted.extend(&tables.0[from..start as usize]);
            shifted.extend(std::iter::repeat_n(0xcc, gap as usize));
            from = start as usize;
        }
        shifted.extend(&tables.0[from..]);
        tables.0 = shifted;
        tables
    }

    fn clone_with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut new = Self(self.0.clone());
        change(&mut new);
        new
    }

    /// Returns the file offsets of the headers in a table.
    fn headers(&self, table: usize, count: usize, size: usize) -> impl Iterator<Item = usize> + use<> {
        let (at, count) = (
            self.word(table) as usize,
            u16::from_le_bytes([self.0[count], self.0[count + 1]]),
        );
        (0..usize::from(count)).map(move |index| at + index * size)
    }

    fn relocations(&mut self, contents: std::ops::Range<usize>, by: u64) {
        for at in contents.step_by(24) {
            self.set(at, self.word(at) + by);
            if [R_X86_64_RELATIVE, R_X86_64_IRELATIVE].contains(&(self.word(at + 8) & 0xffff_ffff)) {
                self.set(at + 16, self.word(at + 16) + by);
            }
        }
    }

    fn symbols(&mut self, contents: std::ops::Range<usize>, by: u64) {
        for at in contents.step_by(24) {
            let section = u16::from_le_bytes([self.0[at + 6], self.0[at + 7]]);
            if section != 0 && section < 0xff00 && self.0[at + 4] & 15 != STT_TLS {
                self.set(at + 8, self.word(at + 8) + by);
            }
        }
    }

    fn dynamic(&mut self, contents: std::ops::Range<usize>, by: u64) {
        for at in contents.step_by(16) {
            if ADDRESSES.contains(&self.word(at)) {
                self.set(at + 8, self.word(at + 8) + by);
            }
        }
    }

    fn half(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().expect("four bytes"))
    }

    fn set(&mut self, at: usize, word: u64) {
        self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}
