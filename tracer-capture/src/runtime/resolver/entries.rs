//! Entries of exported functions whose calls are captured from entry to return.

use serde::{Deserialize, Serialize};
use std::ops::Range;

use tracer_common::api::{self, Layer};

use super::elf::Image;
use super::error::ResolveError;
use super::exports::{ExportSite, export_site};
use super::site::Argument;

/// The functions of the catalogue that a library exports.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entries {
    /// GNU build-id in lower-case hexadecimal.
    pub build_id: Option<String>,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// Addresses of the library's code, as linked.
    pub code: Range<u64>,
    /// The functions, in the order of the catalogue.
    pub functions: Vec<Entry>,
}

/// A function of the catalogue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Index in [`api::FUNCTIONS`].
    pub number: usize,
    /// The place for its probe. At this place, the registers in the list given to [`entries`] have the same contents as at the
    /// entry.
    pub export: ExportSite,
}

/// Returns the plain name of a function that C++ mangled outside of namespaces (`_Z24hipExtModuleLaunchKernelP18...`, as HIP
/// exports some of its functions), by the Itanium C++ ABI. Returns any other name unchanged.
fn plain(name: &str) -> &str {
    let inner = || {
        let rest = name.strip_prefix("_Z")?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let length: usize = rest.get(..digits)?.parse().ok()?;
        rest.get(digits..)?.get(..length)
    };
    inner().unwrap_or(name)
}

/// Finds the functions of a layer in a library. `elf` is the contents of the whole file.
///
/// # Errors
/// If the file is not an x86-64 ELF file, or so damaged that its tables cannot be read.
pub fn entries(elf: &[u8], layer: Layer, keep: &[Argument]) -> Result<Entries, ResolveError> {
    let image = Image::parse(elf)?;
    let mut found: Vec<(usize, u64)> = image
        .dynsym()
        .functions()
        .filter_map(|(name, vaddr)| Some((api::find(layer, plain(name))?, vaddr)))
        // A library has each function once or, if it has versions, a few times.
        .take(4 * api::FUNCTIONS.len())
        .collect();
    found.sort_unstable();
    // A function may have several names: in versions, and as a function of C and of C++.
    found.dedup();
    let site = |(number, vaddr): (usize, u64)| {
        let name = api::FUNCTIONS.get(number)?.name.to_owned();
        let export = export_site(&image, vaddr, vec![name], keep)?;
        Some(Entry { number, export })
    };
    let functions: Vec<Entry> = found.into_iter().filter_map(site).collect();
    let code = functions
        .first()
        .and_then(|entry| image.code_around(entry.export.probe.vaddr))
        .unwrap_or_default();
    Ok(Entries {
        build_id: image.build_id(),
        soname: image.soname(),
        code,
        functions,
    })
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_of_functions_of_cxx_are_found_in_theirs() {
        assert_eq!(
            plain("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tj"),
            "hipExtModuleLaunchKernel"
        );
        for name in [
            "hipMalloc",
            "_Z",
            "_Z99hip",
            "_ZN3hip4initEv",
            "_Z99999999999999999999999x",
            "_Z2\u{e9}\u{e9}",
        ] {
            let _ = plain(name);
        }
        assert_eq!(plain("hipMalloc"), "hipMalloc");
        assert_eq!(plain("_Z99hip"), "_Z99hip");
    }
}
