//! Functions of the running kernel and its modules, by their names in the source: `/proc/kallsyms`.
//!
//! Compilers clone functions: `execute_queues_cpsch` may exist only as `execute_queues_cpsch.constprop.0`, and a kprobe needs that
//! exact name. So the symbols of this machine decide whether a function can be probed, not the kernel's version.

use std::{collections::BTreeMap, fs, io};

/// A kernel function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The exact name, which a kprobe needs.
    pub name: String,
    /// The address; `None` if the kernel hides addresses from this process (`kernel.kptr_restrict`).
    pub address: Option<u64>,
    /// The module that contains the function; `None` for the kernel itself.
    pub module: Option<String>,
    /// Whether the compiler split this part off the function (`.part.0`). Not every call reaches such a part.
    pub partial: bool,
}

/// The functions that a base name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence<'a> {
    /// There is no such function: it is not in this kernel, it is inlined everywhere, or its module is not loaded.
    Absent,
    /// There is one function. A probe on its exact name sees every call that was not inlined.
    One(&'a Symbol),
    /// There are several functions, or only a split-off part. A probe on one of them misses calls.
    Ambiguous(&'a [Symbol]),
}

/// The requested functions of one read.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    /// Number of all functions in the text.
    total: usize,
    /// By base name, which has no clone suffixes.
    functions: BTreeMap<String, Vec<Symbol>>,
}

/// Suffixes that compilers add to the names of clones, followed by a number: GCC's `.constprop` (constant arguments), `.isra`
/// (other arguments), `.part` (a part split off) and `.cold` (rarely executed code), LLVM's `.llvm` (promoted to global).
const CLONES: [&str; 5] = ["constprop", "isra", "part", "cold", "llvm"];

impl Kallsyms {
    /// Reads the functions of the running kernel whose base names match one of the patterns (see [`Self::matching`]).
    ///
    /// Call it once: a kernel has some 200 000 symbols, and needs some ten milliseconds to print them.
    ///
    /// # Errors
    /// Any error of reading the file; `NotFound` on a kernel without `CONFIG_KALLSYMS`.
    pub fn read(patterns: &[&str]) -> io::Result<Self> {
        // The conversion is lossy, because module names come from files.
        fs::read("/proc/kallsyms").map(|bytes| Self::parse(patterns, &String::from_utf8_lossy(&bytes)))
    }

    /// Parses lines of the form `ADDRESS TYPE NAME[\t[MODULE]]` and keeps the functions whose base names match one of the patterns.
    /// Skips lines of another form.
    #[must_use]
    pub fn parse(patterns: &[&str], text: &str) -> Self {
        let mut kallsyms = Self::default();
        let patterns: Vec<Pattern<'_>> = patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
        for line in text.lines() {
            let mut words = line.splitn(3, ' ');
            // Text, global, local or weak (nm(1)).
            let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (words.next(), words.next(), words.next())
            else {
                continue;
            };
            kallsyms.total += 1;
            // Most lines fail this check. It needs no base name, because a clone's suffix does not change the start of the name.
            if !patterns.iter().any(|pattern| name.starts_with(pattern.start)) {
                continue;
            }
            if let Some((base, symbol)) = function(address, name)
                && patterns.iter().any(|pattern| pattern.fits(base))
            {
                kallsyms.functions.entry(base.to_owned()).or_default().push(symbol);
            }
        }
        kallsyms
    }

    /// Returns the functions of this base name, in the kernel's order.
    #[must_use]
    pub fn find(&self, base: &str) -> &[Symbol] {
        self.functions.get(base).map_or(&[], Vec::as_slice)
    }

    /// Returns the base names that match a pattern, with their functions. The pattern may contain one `*`, which stands for any
    /// text.
    pub fn matching<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = (&'a str, &'a [Symbol])> {
        let pattern = Pattern::new(pattern);
        self.functions
            .iter()
            .filter(move |(name, _)| pattern.fits(name))
            .map(|(name, symbols)| (name.as_str(), symbols.as_slice()))
    }

    /// Returns the number of all functions in the text, requested or not.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }
}

/// A whole name, or the start and end of names.
#[derive(Clone, Copy)]
struct Pattern<'a> {
    start: &'a str,
    /// `None` if nothing may follow the start.
    end: Option<&'a str>,
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str) -> Self {
        match text.split_once('*') {
            Some((start, end)) => Self { start, end: Some(end) },
            None => Self { start: text, end: None },
        }
    }

    fn fits(self, name: &str) -> bool {
        let rest = name.strip_prefix(self.start);
        rest.is_some_and(|rest| self.end.map_or(rest.is_empty(), |end| rest.ends_with(end)))
    }
}

/// Returns whether one of the functions that share a base name can be probed, and by which name.
#[must_use]
pub fn presence(symbols: &[Symbol]) -> Presence<'_> {
    // Next to the whole function, its split-off part does not count: the whole function or its inlined copies call it.
    let mut whole = symbols.iter().filter(|symbol| !symbol.partial);
    match (whole.next(), whole.next()) {
        _ if symbols.is_empty() => Presence::Absent,
        (Some(one), None) => Presence::One(one),
        _ => Presence::Ambiguous(symbols),
    }
}

/// Returns the base name and the function of a line, from its address, and its name and module; `None` for `.cold` parts, which
/// contain only rarely executed code.
fn function<'a>(address: &str, name: &'a str) -> Option<(&'a str, Symbol)> {
    let address = u64::from_str_radix(address, 16).ok()?;
    let mut words = name.split_whitespace();
    let name = words.next()?;
    let module = words.next().and_then(|tag| tag.strip_prefix('[')?.strip_suffix(']'));
    let (mut base, mut partial) = (name, false);
    while let Some((shorter, suffix)) = clone_suffix(base) {
        if suffix == "cold" {
            return None;
        }
        partial |= suffix == "part";
        base = shorter;
    }
    let symbol = Symbol {
        name: name.to_owned(),
        address: (address != 0).then_some(address),
        module: module.map(str::to_owned),
        partial,
    };
    Some((base, symbol))
}

/// Splits the last clone suffix off a name: `f.constprop.0` into `f` and `constprop`.
fn clone_suffix(name: &str) -> Option<(&str, &str)> {
    if let Some(base) = name.strip_suffix(".cold").filter(|base| !base.is_empty()) {
        return Some((base, "cold"));
    }
    let (rest, number) = name.rsplit_once('.')?;
    let (base, word) = rest.rsplit_once('.')?;
    let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (numbered && CLONES.contains(&word) && !base.is_empty()).then_some((base, word))
}

#[cfg(test)]
#[path = "kallsyms/tests.rs"]
mod tests;
