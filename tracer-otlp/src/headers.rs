//! Headers that a collector demands, such as a token.

use std::{fmt, path::Path};

use hyper::{
    HeaderMap,
    header::{self, HeaderName, HeaderValue},
};

use crate::{error::TargetError, file};

/// Headers of each request. They are secret: no message contains them.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

/// Most bytes of the file.
const MOST: u64 = 64 * 1024;

/// Headers that belong to a connection or to the message, which a file must not change.
const OWN: [HeaderName; 8] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

impl Headers {
    /// Reads the headers from a file: lines `Name: value`, empty lines, and lines that start with `#`.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or contains anything else. The error contains nothing of the file.
    pub fn read(path: &Path) -> Result<Self, TargetError> {
        let text = file::read(path, MOST)?;
        let lines = text.lines().zip(1..);
        let lines = lines.map(|(text, line)| (text.trim(), line));
        let mut headers = HeaderMap::new();
        for (text, line) in lines.filter(|(text, _)| !text.is_empty() && !text.starts_with('#')) {
            let Some((name, value)) = parse(text) else {
                let file = path.display().to_string();
                return Err(TargetError::Header { file, line });
            };
            headers.append(name, value);
        }
        Ok(Self(headers))
    }

    /// Returns the headers.
    pub(crate) fn map(&self) -> &HeaderMap {
        &self.0
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Headers(..)")
    }
}

fn parse(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    let name: HeaderName = name.parse().ok().filter(|name| !OWN.contains(name))?;
    let mut value = HeaderValue::from_str(value.trim()).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
