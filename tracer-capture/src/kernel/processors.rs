//! The processors that are online.

use std::{fs, io};

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Returns the numbers of the processors that are online.
///
/// # Errors
/// Fails if the list cannot be read, or is not understood.
pub fn online() -> io::Result<Vec<u32>> {
    let text = fs::read_to_string(ONLINE)?;
    parse(text.trim()).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{ONLINE}: {}", text.trim())))
}

/// Parses a list such as `0-3,8`.
fn parse(list: &str) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<u32>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_single_numbers() {
        assert_eq!(parse("0-3,8"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse("0"), Some(vec![0]));
        assert_eq!((parse(""), parse("1-x")), (None, None));
        assert!(!online().unwrap().is_empty());
    }
}
