//! `/tmp/perf-PID.map`: names of functions that a program generated while it runs, as Linux perf reads them.

use std::collections::BTreeMap;

/// The maximum size in bytes.
pub const MAX_MAP: u64 = 32 << 20;
/// The maximum length of a name in bytes.
const MAX_NAME: usize = 1024;

/// The functions, by their addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct PerfMap {
    functions: BTreeMap<u64, (u64, String)>,
}

impl PerfMap {
    /// Reads lines of `START SIZE NAME` with hexadecimal numbers. Other lines are left out. Later lines replace earlier ones.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let lines = bytes.split(|&byte| byte == b'\n').filter_map(|line| {
            let line = String::from_utf8_lossy(line.get(..MAX_NAME).unwrap_or(line));
            let mut words = line.splitn(3, ' ');
            let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (start, size) = (number()?, number()?);
            Some((start, (start.checked_add(size)?, words.next()?.to_owned())))
        });
        Self {
            functions: lines.collect(),
        }
    }

    /// Returns the function at an address.
    #[must_use]
    pub fn name(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_addresses_of_their_lines() {
        let map = PerfMap::parse(
            b"1000 10 py::main:/a b.py\nnonsense\n0x2000 8 old\n2000 4 new\nffffffffffffffff 2 over\n3000 1",
        );
        assert_eq!(map.name(0x100f), Some("py::main:/a b.py"));
        assert_eq!((map.name(0xfff), map.name(0x1010)), (None, None));
        assert_eq!((map.name(0x2003), map.name(0x2004)), (Some("new"), None));
        assert_eq!((map.name(u64::MAX), map.name(0x3000)), (None, None));
    }
}
