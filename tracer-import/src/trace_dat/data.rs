//! Numbers, strings and compressed parts of a file. All numbers are little-endian.

use std::io::{Read, Seek, SeekFrom};

use super::{Result, TraceDatError::Damaged, TraceDatError::Unsupported};

/// Most bytes of a part that is read whole. The symbols of a kernel, the longest part, have 10 MiB.
pub const MAX_PART: u64 = 256 << 20;
/// Most bytes of a string that ends with a 0.
const MAX_STRING: usize = 4096;

/// How parts of a file are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// By zstd.
    Zstd,
}

impl Compression {
    /// Returns the compression of this name.
    ///
    /// # Errors
    /// For one that tracer does not read.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "none" => Ok(Self::None),
            "zstd" => Ok(Self::Zstd),
            other => Err(Unsupported(format!(
                "it is compressed by {other:?}, which tracer does not read; `trace-cmd convert --compression none -i FILE -o NEW` \
                 helps"
            ))),
        }
    }

    /// Reads a compressed part: its length, that of its contents, and the data.
    ///
    /// # Errors
    /// For a part that is damaged or longer than `most` bytes.
    pub fn part(self, file: &mut impl Read, most: u64) -> Result<Vec<u8>> {
        let (packed, size) = (u64::from(half(file)?), u64::from(half(file)?));
        if packed > most || size > most {
            return Err(Damaged("a compressed part is too long"));
        }
        let packed = bytes(file, packed)?;
        match self {
            Self::None => Ok(packed),
            Self::Zstd => {
                let whole = zstd::bulk::decompress(&packed, size as usize);
                whole.map_err(|_| Damaged("a compressed part cannot be unpacked"))
            }
        }
    }
}

/// Reads that many bytes, at most [`MAX_PART`].
pub fn bytes(file: &mut impl Read, count: u64) -> Result<Vec<u8>> {
    if count > MAX_PART {
        return Err(Damaged("a part is too long"));
    }
    let mut bytes = Vec::new();
    file.take(count).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == count {
        Ok(bytes)
    } else {
        Err(Damaged("it is cut short"))
    }
}

/// Reads past that many bytes.
pub fn skip(file: &mut impl Read, count: u64) -> Result<()> {
    bytes(file, count).map(drop)
}

/// Reads a string that ends with a 0.
pub fn string(file: &mut impl Read) -> Result<String> {
    let mut text = Vec::new();
    loop {
        match array::<1>(file)? {
            [0] => return Ok(String::from_utf8_lossy(&text).into_owned()),
            [byte] if text.len() < MAX_STRING => text.push(byte),
            _ => return Err(Damaged("a string is too long")),
        }
    }
}

/// Reads a number of 2 bytes.
pub fn quarter(file: &mut impl Read) -> Result<u16> {
    array(file).map(u16::from_le_bytes)
}

/// Reads a number of 4 bytes.
pub fn half(file: &mut impl Read) -> Result<u32> {
    array(file).map(u32::from_le_bytes)
}

/// Reads a number of 8 bytes.
pub fn word(file: &mut impl Read) -> Result<u64> {
    array(file).map(u64::from_le_bytes)
}

/// Reads that many bytes.
pub fn array<const N: usize>(file: &mut impl Read) -> Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Goes to an offset of the file.
pub fn go(file: &mut impl Seek, offset: u64) -> Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    Ok(())
}
