//! Demangled names of kernels.

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

/// Demangles a C++ symbol (Itanium ABI), without the return type.
fn cpp(symbol: &str) -> Option<String> {
    // Without this check, plain names would be taken for mangled types: `f` for `float`.
    symbol.starts_with("_Z").then_some(())?;
    let name = cpp_demangle::Symbol::new(symbol).ok()?;
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    let mut out = Bounded::default();
    name.structured_demangle(&mut out, &options).ok()?;
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

#[cfg(test)]
mod tests {
    use super::demangle;

    #[test]
    fn every_language_by_its_own_rules() {
        for (symbol, name) in [
            ("vector_add", "vector_add"),
            ("f", "f"),
            (
                "_Z10vector_addPKfS0_Pfi",
                "vector_add(float const*, float const*, float*, int)",
            ),
            ("_ZN2at6native4copyIfEEvPT_i", "at::native::copy<float>(float*, int)"),
            ("_RNvCs1234_7kernels10vector_add", "kernels::vector_add"),
            ("_ZN7kernels10vector_add17h0123456789abcdefE", "kernels::vector_add"),
            ("_Z", "_Z"),
            ("_Znonsense", "_Znonsense"),
            ("Cijk_Ailk_Bljk_SB_MT64x64x16", "Cijk_Ailk_Bljk_SB_MT64x64x16"),
        ] {
            assert_eq!(demangle(symbol), name);
        }
    }

    #[test]
    fn a_name_does_not_grow_without_end() {
        // Each substitution doubles the text before it.
        let mut symbol = String::from("_Z1f");
        symbol.push_str("SaIiE");
        for at in 0..40 {
            symbol.push_str(&format!("St4pairIS{at:X}_S{at:X}_E"));
        }
        assert!(demangle(&symbol).len() <= super::MAX_NAME.max(symbol.len()));
    }
}
