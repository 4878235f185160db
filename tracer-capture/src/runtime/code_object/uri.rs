//! The location of a code object, as the runtime writes it.
//!
//! Source: `amd_hsa_loader.cpp` of ROCR-Runtime, and LLVM's AMDGPUUsage, "Loaded Code Object Path Uniform Resource Identifier
//! (URI)".

/// The location of a code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file, below the process's root.
    File {
        /// The path, which need not be UTF-8.
        path: Vec<u8>,
        /// Offset and size in the file; `None` for the whole file.
        part: Option<Part>,
    },
    /// The process's own memory.
    Memory(Part),
}

/// A part of a file or of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of the first byte.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}

impl Place {
    /// Parses a URI. Returns `None` for an unknown form.
    pub fn parse(uri: &[u8]) -> Option<Self> {
        let at = uri.windows(3).position(|window| window == b"://")?;
        let (scheme, rest) = (uri.get(..at)?, uri.get(at + 3..)?);
        // The runtime writes `#`; the specification allows `?`, too.
        let mut halves = rest.splitn(2, |&byte| byte == b'#' || byte == b'?');
        let path = halves.next()?;
        let part = match halves.next() {
            Some(query) => Some(part(query)?),
            None => None,
        };
        match scheme {
            b"file" => Some(Self::File {
                path: decode(path)?,
                part,
            }),
            // The URI names the process id in the process's own namespace, which is not useful here.
            b"memory" => part.map(Self::Memory),
            _ => None,
        }
    }
}

/// Parses `offset=N&size=N`, in decimal or hexadecimal, in either order.
fn part(query: &[u8]) -> Option<Part> {
    let text = str::from_utf8(query).ok()?;
    let (mut offset, mut size) = (None, None);
    for pair in text.split('&') {
        let (key, value) = pair.split_once('=')?;
        let number = match value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")) {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        match key {
            "offset" => offset = Some(number.ok()?),
            "size" => size = Some(number.ok()?),
            _ => {}
        }
    }
    Some(Part {
        offset: offset?,
        size: size?,
    })
}

/// Decodes percent codes.
fn decode(path: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(&byte) = bytes.next() {
        if byte == b'%' {
            let mut digit = || char::from(*bytes.next()?).to_digit(16);
            let code = digit()? << 4 | digit()?;
            decoded.push(u8::try_from(code).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    // A path that contains a 0 does not name a file.
    (!decoded.contains(&0)).then_some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, part: Option<(u64, u64)>) -> Place {
        Place::File {
            path: path.into(),
            part: part.map(|(offset, size)| Part { offset, size }),
        }
    }

    #[test]
    fn what_runtimes_write_is_understood() {
        for (uri, place) in [
            ("file:///opt/k.co", file("/opt/k.co", None)),
            (
                "file:///a%20b/%e2%82%ac#offset=4096&size=0x10",
                file("/a b/\u{20ac}", Some((4096, 16))),
            ),
            ("file:///a?size=1&offset=2", file("/a", Some((2, 1)))),
            (
                "memory://24464#offset=0x555560104130&size=2224",
                Place::Memory(Part {
                    offset: 0x5555_6010_4130,
                    size: 2224,
                }),
            ),
        ] {
            assert_eq!(Place::parse(uri.as_bytes()), Some(place), "{uri}");
        }
    }

    #[test]
    fn anything_else_is_not() {
        for uri in [
            "",
            "k.co",
            "http://a/b",
            "memory://1",
            "memory://1#offset=1",
            "file:///a#offset=x&size=1",
            "file:///a#offset=1",
            "file:///%zz",
            "file:///%4",
            "file:///a%00b",
            "file:///a#offset=99999999999999999999&size=1",
        ] {
            assert_eq!(Place::parse(uri.as_bytes()), None, "{uri}");
        }
    }
}
