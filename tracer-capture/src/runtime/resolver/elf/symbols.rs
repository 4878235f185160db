//! The symbols of a table, with limits.

use object::LittleEndian;
use object::elf::{self, Sym64};
use object::read::elf::Sym;

use super::LE;

/// Length of the longest name that is read. The names that the resolver needs have less than 100 bytes, those of C++ templates
/// thousands.
pub(crate) const MAX_NAME: usize = 512;
/// Unstripped runtimes have tens of thousands of symbols.
const MAX_SYMBOLS: usize = 1 << 20;

/// A symbol table and its strings.
pub(in crate::runtime::resolver) struct Symbols<'data> {
    pub(super) symbols: &'data [Sym64<LittleEndian>],
    pub(super) strings: &'data [u8],
}

impl<'data> Symbols<'data> {
    /// Returns the name and the address of the functions that the table defines. Skips functions with names longer than
    /// [`MAX_NAME`].
    pub(in crate::runtime::resolver) fn functions(self) -> impl Iterator<Item = (&'data str, u64)> {
        let strings = self.strings;
        self.symbols.iter().take(MAX_SYMBOLS).filter_map(move |symbol| {
            let function = symbol.st_type() == elf::STT_FUNC && !symbol.is_undefined(LE);
            let name = bounded(strings, symbol.st_name(LE)).filter(|_| function)?;
            Some((str::from_utf8(name).ok()?, symbol.st_value(LE)))
        })
    }

    /// Returns the index and the value of the variable of this name that the table defines.
    pub(super) fn object(&self, name: &str) -> Option<(usize, u64)> {
        let mut symbols = self.symbols.iter().take(MAX_SYMBOLS).enumerate();
        let (index, symbol) = symbols.find(|(_, symbol)| {
            let object = symbol.st_type() == elf::STT_OBJECT && !symbol.is_undefined(LE);
            object && bounded(self.strings, symbol.st_name(LE)) == Some(name.as_bytes())
        })?;
        Some((index, symbol.st_value(LE)))
    }

    /// Returns the value of a symbol that a relocation names, and the symbol's name if it is undefined.
    pub(in crate::runtime::resolver) fn value_and_undefined_name(
        &self,
        index: usize,
    ) -> Option<(u64, Option<&'data [u8]>)> {
        let symbol = self.symbols.get(index)?;
        let name = symbol
            .is_undefined(LE)
            .then(|| bounded(self.strings, symbol.st_name(LE)));
        Some((symbol.st_value(LE), name.flatten()))
    }
}

/// Returns the string at an offset, unless it is longer than [`MAX_NAME`].
pub(super) fn bounded(strings: &[u8], offset: u32) -> Option<&[u8]> {
    let rest = strings.get(offset as usize..)?;
    let window = rest.get(..MAX_NAME).unwrap_or(rest);
    let end = window.iter().position(|&byte| byte == 0)?;
    window.get(..end)
}
