//! A MessagePack reader for the metadata of code objects.
//!
//! Format: <https://github.com/msgpack/msgpack/blob/master/spec.md>. A reader walks over the bytes without allocation. It skips
//! nested values by counting them, so that any depth is fine.

/// A value, or the start of a value that contains others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'a> {
    /// A string, which should be UTF-8.
    Text(&'a [u8]),
    /// A number, 0 or larger.
    Number(u64),
    /// A sequence of this many values, which follow.
    Array(u64),
    /// A map of this many pairs of values, which follow.
    Map(u64),
    /// Any other value.
    Other,
}

impl Token<'_> {
    /// Returns the number of values directly in this one.
    fn inside(self) -> Option<u64> {
        match self {
            Self::Array(values) => Some(values),
            Self::Map(pairs) => pairs.checked_mul(2),
            _ => Some(0),
        }
    }
}

/// Reads one value after another.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader of these bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Returns the next token; `None` at the end, or if the bytes are not a token.
    pub fn next(&mut self) -> Option<Token<'a>> {
        let [first] = *self.take(1)? else { return None };
        Some(match first {
            0x00..=0x7f => Token::Number(first.into()),
            0x80..=0x8f => Token::Map((first & 0xf).into()),
            0x90..=0x9f => Token::Array((first & 0xf).into()),
            0xa0..=0xbf => Token::Text(self.take((first & 0x1f).into())?),
            // nil, false, true; negative numbers.
            0xc0 | 0xc2 | 0xc3 | 0xe0..=0xff => Token::Other,
            // Never used.
            0xc1 => return None,
            // Byte strings.
            0xc4..=0xc6 => self.skipped(first - 0xc4, 0)?,
            // Extensions, with a byte for their type.
            0xc7..=0xc9 => self.skipped(first - 0xc7, 1)?,
            // Floating-point numbers.
            0xca => self.other(4)?,
            0xcb => self.other(8)?,
            0xcc..=0xcf => Token::Number(self.number(first - 0xcc)?),
            0xd0..=0xd3 => {
                let bits = self.number(first - 0xd0)?;
                let sign = 8 * (1 << (first - 0xd0)) - 1;
                if bits >> sign & 1 == 0 {
                    Token::Number(bits)
                } else {
                    Token::Other
                }
            }
            // Extensions of a fixed size.
            0xd4..=0xd8 => self.other(1 + (1 << (first - 0xd4)))?,
            0xd9..=0xdb => {
                let len = self.number(first - 0xd9)?;
                Token::Text(self.take(len)?)
            }
            0xdc | 0xdd => Token::Array(self.number(first - 0xdc + 1)?),
            0xde | 0xdf => Token::Map(self.number(first - 0xde + 1)?),
        })
    }

    /// Passes the next value and everything in it. Returns the value if it is a number.
    pub fn skip(&mut self) -> Option<Option<u64>> {
        let first = self.next()?;
        let mut values = first.inside()?;
        while values > 0 {
            values = (values - 1).checked_add(self.next()?.inside()?)?;
        }
        Some(match first {
            Token::Number(number) => Some(number),
            _ => None,
        })
    }

    /// Reads the next value as a string.
    pub fn text(&mut self) -> Option<&'a str> {
        let Token::Text(bytes) = self.next()? else { return None };
        str::from_utf8(bytes).ok()
    }

    /// Reads the next value as a map, and returns its number of pairs.
    pub fn map(&mut self) -> Option<u64> {
        let Token::Map(pairs) = self.next()? else { return None };
        Some(pairs)
    }

    /// Reads the next value as an array, and returns its number of values.
    pub fn array(&mut self) -> Option<u64> {
        let Token::Array(count) = self.next()? else { return None };
        Some(count)
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(usize::try_from(len).ok()?)?;
        self.rest = rest;
        Some(taken)
    }

    fn other(&mut self, len: u64) -> Option<Token<'a>> {
        self.take(len).map(|_| Token::Other)
    }

    /// Skips a length of 2^`width` bytes, then that many bytes and `more`.
    fn skipped(&mut self, width: u8, more: u64) -> Option<Token<'a>> {
        let len = self.number(width)?;
        self.other(len.checked_add(more)?)
    }

    /// Reads a big-endian number of 2^`width` bytes, at most 8.
    fn number(&mut self, width: u8) -> Option<u64> {
        let bytes = self.take(1 << width)?;
        Some(bytes.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}
