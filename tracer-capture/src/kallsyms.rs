//! Functions of the running kernel and its modules, by the names that their source gives them: `/proc/kallsyms`.
//!
//! Compilers clone functions: `execute_queues_cpsch` may exist only as `execute_queues_cpsch.constprop.0`, and a kprobe
//! takes that exact name. Whether a function can be probed is thus a question of what stands here on this machine, not of
//! the kernel's version.

use std::{collections::BTreeMap, fs, io, ops::Bound};

/// A function of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its exact name: what a kprobe takes.
    pub name: String,
    /// Where it lies; `None` if the kernel hides addresses from this process (`kernel.kptr_restrict`).
    pub address: Option<u64>,
    /// The module that it is part of; `None`: the kernel itself.
    pub module: Option<String>,
    /// It is a part of the function that was split off (`.part.0`): not every call comes by.
    pub partial: bool,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence<'a> {
    /// No such function: not in this kernel, inlined everywhere, or its module is not loaded.
    Absent,
    /// One function: a probe on its exact name sees every call that was not inlined.
    One(&'a Symbol),
    /// Several, or only a split-off part: a probe on one of them misses calls.
    Ambiguous(&'a [Symbol]),
}

/// The functions of one reading that were asked for.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    /// All functions that the text had.
    total: usize,
    /// By base name: without the suffixes of clones.
    functions: BTreeMap<String, Vec<Symbol>>,
}

/// What compilers add to the names of clones, followed by a number: GCC's `.constprop` (constant arguments), `.isra`
/// (other arguments) and `.part` (a part split off), LLVM's `.llvm` (promoted to global).
const CLONES: [&str; 4] = ["constprop", "isra", "part", "llvm"];

impl Kallsyms {
    /// Reads those of the running kernel whose base names fit one of the patterns (see [`Self::matching`]).
    ///
    /// A kernel has some 200 000 symbols, which takes it some ten milliseconds to print: read once.
    ///
    /// # Errors
    /// What reading says; NotFound on a kernel without CONFIG_KALLSYMS.
    pub fn read(patterns: &[&str]) -> io::Result<Self> {
        // Lossy: module names come from files.
        fs::read("/proc/kallsyms").map(|bytes| Self::parse(patterns, &String::from_utf8_lossy(&bytes)))
    }

    /// Those in a text of the form `ADDRESS TYPE NAME[\t[MODULE]]`; lines of another form are passed over.
    #[must_use]
    pub fn parse(patterns: &[&str], text: &str) -> Self {
        let mut kallsyms = Self::default();
        let patterns: Vec<Pattern<'_>> = patterns.iter().map(|pattern| Pattern::new(pattern)).collect();
        for line in text.lines() {
            let Some(name) = name_of_function(line) else { continue };
            kallsyms.total += 1;
            // Most lines end here: a suffix of a clone leaves the name's start as it is.
            if !patterns.iter().any(|pattern| name.starts_with(pattern.start)) {
                continue;
            }
            if let Some((base, symbol)) = function(line)
                && patterns.iter().any(|pattern| pattern.fits(base))
            {
                kallsyms.functions.entry(base.to_owned()).or_default().push(symbol);
            }
        }
        kallsyms
    }

    /// The functions of this base name, in the kernel's order.
    #[must_use]
    pub fn find(&self, base: &str) -> &[Symbol] {
        self.functions.get(base).map_or(&[], Vec::as_slice)
    }

    /// Whether a function of this base name can be probed, and by which name.
    #[must_use]
    pub fn presence(&self, base: &str) -> Presence<'_> {
        presence(self.find(base))
    }

    /// The base names that a pattern fits, with their functions. A `*` in the pattern, at most one, stands for any text.
    pub fn matching<'a>(&'a self, pattern: &'a str) -> impl Iterator<Item = (&'a str, &'a [Symbol])> {
        let pattern = Pattern::new(pattern);
        self.functions
            .range::<str, _>((Bound::Included(pattern.start), Bound::Unbounded))
            .take_while(move |(name, _)| name.starts_with(pattern.start))
            .filter(move |(name, _)| pattern.fits(name))
            .map(|(name, symbols)| (name.as_str(), symbols.as_slice()))
    }

    /// Number of functions that the text had, asked for or not.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total
    }
}

/// A name, or the beginning and end of names.
#[derive(Clone, Copy)]
struct Pattern<'a> {
    start: &'a str,
    /// `None`: nothing may come behind the start.
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
        match (name.strip_prefix(self.start), self.end) {
            (Some(rest), Some(end)) => rest.ends_with(end),
            (Some(rest), None) => rest.is_empty(),
            (None, _) => false,
        }
    }
}

/// As [`Kallsyms::presence`], of functions that share a base name.
#[must_use]
pub fn presence(symbols: &[Symbol]) -> Presence<'_> {
    // Beside the whole function its split-off part does not count: it is called by the whole, or by inlined copies.
    let mut whole = symbols.iter().filter(|symbol| !symbol.partial);
    match (whole.next(), whole.next()) {
        _ if symbols.is_empty() => Presence::Absent,
        (Some(one), None) => Presence::One(one),
        _ => Presence::Ambiguous(symbols),
    }
}

/// The name in a line, if it is one of a function.
fn name_of_function(line: &str) -> Option<&str> {
    let mut words = line.splitn(3, ' ');
    let (_, kind) = (words.next()?, words.next()?);
    // Text, global, local or weak (nm(1)).
    matches!(kind, "t" | "T" | "w" | "W").then(|| words.next()).flatten()
}

/// Base name and function of a line; `None` for data, and for `.cold` parts, which only hold what is rarely executed.
fn function(line: &str) -> Option<(&str, Symbol)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    // Text, global, local or weak (nm(1)).
    if !matches!(words.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
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

/// Splits off the last suffix of a clone: `f.constprop.0` into `f` and `constprop`.
fn clone_suffix(name: &str) -> Option<(&str, &str)> {
    if let Some(base) = name.strip_suffix(".cold").filter(|base| !base.is_empty()) {
        return Some((base, "cold"));
    }
    let (rest, number) = name.rsplit_once('.')?;
    let (base, word) = rest.rsplit_once('.')?;
    let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    let known = word == "cold" || CLONES.contains(&word);
    (numbered && known && !base.is_empty()).then_some((base, word))
}

#[cfg(test)]
#[path = "kallsyms/tests.rs"]
mod tests;
