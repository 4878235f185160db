//! A small ELF file, assembled piece by piece. Addresses are file offsets, and one segment holds everything.

/// The fields of a section header other than the location of its contents.
#[derive(Clone, Copy, Default)]
pub struct Kind {
    pub number: u32,
    pub link: u32,
    pub info: u32,
    pub entry: u64,
}

/// Section types of the gABI.
pub mod kind {
    pub const PROGBITS: u32 = 1;
    pub const SYMTAB: u32 = 2;
    pub const STRTAB: u32 = 3;
    pub const RELA: u32 = 4;
    pub const DYNAMIC: u32 = 6;
    pub const NOTE: u32 = 7;
    pub const DYNSYM: u32 = 11;
    pub const RELR: u32 = 19;
}

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SECTION_HEADER: usize = 64;

/// A file under construction.
pub struct File {
    bytes: Vec<u8>,
    headers: Vec<u8>,
    names: Vec<u8>,
    sections: u16,
    /// Type, offset and length of further segments.
    segments: Vec<(u32, u64, u64)>,
}

impl File {
    /// Returns a file with room for headers: of the file, and of `segments` segments beside the loadable one.
    pub fn new(segments: usize) -> Self {
        Self {
            bytes: vec![0; HEADER + PROGRAM_HEADER * (segments + 1)],
            headers: vec![0; SECTION_HEADER],
            names: vec![0],
            sections: 1,
            segments: Vec::new(),
        }
    }

    /// Returns the offset at which the next section will begin.
    pub fn next(&self) -> u64 {
        self.bytes.len().next_multiple_of(16) as u64
    }

    /// Returns the index that the next section will have.
    pub fn next_index(&self) -> u32 {
        u32::from(self.sections)
    }

    /// Appends a section. Returns its address.
    pub fn section(&mut self, name: &str, kind: Kind, contents: &[u8]) -> u64 {
        let at = self.next();
        self.bytes.resize(at as usize, 0);
        self.bytes.extend(contents);
        let name_at = self.names.len() as u32;
        self.names.extend(name.bytes().chain([0]));
        self.header(name_at, kind, at, contents.len());
        at
    }

    /// Adds a segment beside the loadable one.
    pub fn segment(&mut self, kind: u32, at: u64, len: usize) {
        self.segments.push((kind, at, len as u64));
    }

    fn header(&mut self, name: u32, kind: Kind, at: u64, len: usize) {
        let header = &mut self.headers;
        header.extend(name.to_le_bytes());
        header.extend(kind.number.to_le_bytes());
        header.extend(2u64.to_le_bytes()); // SHF_ALLOC
        header.extend(at.to_le_bytes());
        header.extend(at.to_le_bytes());
        header.extend((len as u64).to_le_bytes());
        header.extend(kind.link.to_le_bytes());
        header.extend(kind.info.to_le_bytes());
        header.extend(8u64.to_le_bytes());
        header.extend(kind.entry.to_le_bytes());
        self.sections += 1;
    }

    /// Returns the file with its headers.
    pub fn finish(mut self) -> Vec<u8> {
        let names_index = self.sections;
        let name_at = self.names.len() as u32;
        self.names.extend(b".shstrtab\0");
        let at = self.next();
        self.bytes.resize(at as usize, 0);
        let names = self.names.clone();
        self.bytes.extend(&names);
        let strings = Kind {
            number: kind::STRTAB,
            ..Kind::default()
        };
        self.header(name_at, strings, at, names.len());
        let table = self.next();
        self.bytes.resize(table as usize, 0);
        self.bytes.extend(&self.headers);
        let end = self.bytes.len() as u64;
        let mut head = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        head.extend([3, 0, 62, 0, 1, 0, 0, 0]); // ET_DYN, x86-64, version
        head.extend(0u64.to_le_bytes()); // no entry
        head.extend((HEADER as u64).to_le_bytes());
        head.extend(table.to_le_bytes());
        head.extend(0u32.to_le_bytes());
        let segments = self.segments.len() as u16 + 1;
        for half in [
            HEADER as u16,
            PROGRAM_HEADER as u16,
            segments,
            SECTION_HEADER as u16,
            self.sections,
            names_index,
        ] {
            head.extend(half.to_le_bytes());
        }
        let load = (1, 0, end);
        for (kind, at, len) in std::iter::once(load).chain(self.segments) {
            head.extend(u32::to_le_bytes(kind));
            head.extend(7u32.to_le_bytes()); // readable, writable, executable
            for word in [at, at, at, len, len, 0x1000] {
                head.extend(u64::to_le_bytes(word));
            }
        }
        self.bytes.splice(..head.len(), head);
        self.bytes
    }
}

/// Returns words as bytes.
pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
