//! Demangled names of kernels, as `llvm-cxxfilt` and the tools that use LLVM print them.

mod declarations;
mod style;
#[cfg(test)]
mod tests;

use std::fmt::{self, Write};

/// Limit in bytes. A longer name stays as it is in the code object.
const MAX_NAME: usize = 64 << 10;

/// Returns the demangled name. Returns `symbol` itself if it is not mangled, or mangled in an unknown way.
pub fn demangle(symbol: &str) -> String {
    rust(symbol)
        .or_else(|| cpp(symbol))
        .unwrap_or_else(|| symbol.to_owned())
}

/// Demangles a Rust symbol, without the hash that makes it unique.
fn rust(symbol: &str) -> Option<String> {
    let name = rustc_demangle::try_demangle(symbol).ok()?;
    let mut out = Bounded::default();
    write!(out, "{name:#}").ok()?;
    Some(out.0)
}

/// Demangles a C++ symbol (Itanium ABI). A compiler can append a suffix that is no part of the mangled name, such as `.intern.HASH`
/// for a kernel that is local to its file; the name has it in parentheses.
fn cpp(symbol: &str) -> Option<String> {
    // Without this check, plain names would be taken for mangled types: `f` for `float`.
    symbol.starts_with("_Z").then_some(())?;
    let (encoding, suffix) = symbol.split_at(symbol.find('.').unwrap_or(symbol.len()));
    let mut name = plain(encoding).or_else(|| Some(declarations::cut(&plain(&declarations::hide(encoding)?)?)))?;
    name = style::llvm(&name);
    // No pointer or reference has members: this is misprinted in another way than `style` knows.
    if name.contains("*::") || name.contains("&::") {
        return None;
    }
    if !suffix.is_empty() {
        name = format!("{name} ({suffix})");
    }
    Some(name)
}

/// Demangles a C++ symbol that has nothing but what `cpp_demangle` knows.
fn plain(symbol: &str) -> Option<String> {
    let name = cpp_demangle::Symbol::new(symbol).ok()?;
    let mut out = Bounded::default();
    name.structured_demangle(&mut out, &cpp_demangle::DemangleOptions::new())
        .ok()?;
    Some(out.0)
}

/// A string that does not grow beyond [`MAX_NAME`]: a short mangled name can expand to an endless one.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_NAME {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}
