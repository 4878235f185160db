//! Template parameter declarations in mangled names, such as `TnNSt9enable_ifIXT_EiE4typeE`.
//!
//! The Itanium C++ ABI (5.1.5.8, `<template-arg> ::= <template-param-decl> <template-arg>`) puts the declaration of a parameter in
//! front of its argument where the argument alone would be ambiguous. Demanglers do not print it. `cpp_demangle` does not know it.
//! It can't be cut out of the symbol, because later substitutions (`S3_`) count its components. So [`hide`] keeps its type and makes
//! it an argument between two marks, and [`cut`] removes what was printed between the marks.

mod expressions;
mod types;
mod walk;

use walk::Walk;

/// The mark before a type that is not printed. No C++ identifier contains it.
const OPEN: &str = "$.declared";
/// The mark after the type.
const SHUT: &str = "$.argument";

/// Returns the symbol with each declaration in a form that `cpp_demangle` parses. Returns `None` if the symbol has a part that this
/// parser does not know.
pub fn hide(symbol: &str) -> Option<String> {
    let mut walk = Walk::new(symbol);
    walk.expect(b"_Z")?;
    walk.encoding()?;
    walk.finish()
}

/// Removes what was printed of declarations, with their marks.
pub fn cut(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    let mut hidden = 0_usize;
    while let Some(at) = rest.find("$.") {
        let (before, from) = rest.split_at(at);
        if hidden == 0 {
            out.push_str(before);
        }
        rest = if let Some(rest) = from.strip_prefix(OPEN) {
            hidden += 1;
            rest
        } else if let Some(rest) = from.strip_prefix(SHUT) {
            hidden = hidden.saturating_sub(1);
            rest.strip_prefix(", ").unwrap_or(rest)
        } else {
            if hidden == 0 {
                out.push_str("$.");
            }
            &from[2..]
        };
    }
    if hidden == 0 {
        out.push_str(rest);
    }
    out
}
