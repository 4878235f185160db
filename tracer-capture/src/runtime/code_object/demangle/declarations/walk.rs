//! Names, types and template arguments of the grammar.

use super::{OPEN, SHUT};

/// Nested types, expressions and names that are followed. `cpp_demangle` has a similar limit.
const MAX_DEPTH: u32 = 96;

/// A parser of the grammar in section 5.1 of the Itanium C++ ABI. It finds where things end, and nothing else.
pub(super) struct Walk<'a> {
    pub(super) symbol: &'a [u8],
    pub(super) at: usize,
    /// The bytes before are in `out`.
    copied: usize,
    out: Vec<u8>,
    depth: u32,
}

impl<'a> Walk<'a> {
    pub(super) fn new(symbol: &'a str) -> Self {
        Self {
            symbol: symbol.as_bytes(),
            at: 0,
            copied: 0,
            out: Vec::with_capacity(symbol.len() + 64),
            depth: 0,
        }
    }

    /// Returns the symbol with the changes, if it was read to its end.
    pub(super) fn finish(mut self) -> Option<String> {
        (self.at == self.symbol.len()).then_some(())?;
        self.copy();
        String::from_utf8(self.out).ok()
    }

    pub(super) fn peek(&self, ahead: usize) -> u8 {
        self.symbol.get(self.at + ahead).copied().unwrap_or(0)
    }

    pub(super) fn starts(&self, with: &[u8]) -> bool {
        self.symbol.get(self.at..).is_some_and(|rest| rest.starts_with(with))
    }

    pub(super) fn take(&mut self, token: &[u8]) -> bool {
        let there = self.starts(token);
        if there {
            self.at += token.len();
        }
        there
    }

    pub(super) fn expect(&mut self, token: &[u8]) -> Option<()> {
        self.take(token).then_some(())
    }

    pub(super) fn skip_while(&mut self, is: impl Fn(u8) -> bool) -> usize {
        let from = self.at;
        while self.symbol.get(self.at).is_some_and(|&byte| is(byte)) {
            self.at += 1;
        }
        self.at - from
    }

    pub(super) fn digits(&mut self) {
        self.skip_while(|byte| byte.is_ascii_digit());
    }

    /// Copies everything before the current place.
    pub(super) fn copy(&mut self) {
        self.out.extend_from_slice(&self.symbol[self.copied..self.at]);
        self.copied = self.at;
    }

    /// Copies everything before the current place, and leaves out `len` bytes there.
    pub(super) fn leave_out(&mut self, len: usize) {
        self.copy();
        self.at += len;
        self.copied = self.at;
    }

    pub(super) fn insert(&mut self, text: &str) {
        self.copy();
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn deeper(&mut self, part: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        (self.depth < MAX_DEPTH).then_some(())?;
        self.depth += 1;
        let parsed = part(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn until_end(&mut self, part: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        while !self.take(b"E") {
            part(self)?;
        }
        Some(())
    }

    /// A function with its parameters, or an object.
    pub(super) fn encoding(&mut self) -> Option<()> {
        self.deeper(|walk| {
            // Virtual tables, thunks, guard variables.
            if walk.starts(b"T") || walk.starts(b"G") {
                return None;
            }
            walk.name()?;
            while !matches!(walk.peek(0), 0 | b'E') {
                walk.ty()?;
            }
            Some(())
        })
    }

    pub(super) fn name(&mut self) -> Option<()> {
        match self.peek(0) {
            b'N' => return self.nested(),
            b'Z' => return self.local(),
            b'S' if self.peek(1) != b't' => self.substitution()?,
            b'S' => {
                self.at += 2;
                self.unqualified()?;
            }
            _ => self.unqualified()?,
        }
        self.arguments_if_any()
    }

    pub(super) fn nested(&mut self) -> Option<()> {
        self.expect(b"N")?;
        self.skip_while(|byte| matches!(byte, b'r' | b'V' | b'K'));
        self.skip_while(|byte| matches!(byte, b'R' | b'O'));
        self.until_end(|walk| match (walk.peek(0), walk.peek(1)) {
            (b'S', _) => walk.substitution(),
            (b'T', _) => walk.parameter(),
            (b'I', _) => walk.arguments(),
            (b'D', b't' | b'T') => walk.ty(),
            _ => walk.unqualified(),
        })
    }

    pub(super) fn local(&mut self) -> Option<()> {
        self.expect(b"Z")?;
        self.encoding()?;
        self.expect(b"E")?;
        if self.take(b"d") {
            self.digits();
            self.expect(b"_")?;
            return self.name();
        }
        // A string literal has no name.
        if !self.take(b"s") {
            self.name()?;
        }
        self.discriminator();
        Some(())
    }

    pub(super) fn discriminator(&mut self) {
        if self.take(b"__") {
            self.digits();
            self.take(b"_");
        } else if self.peek(0) == b'_' && self.peek(1).is_ascii_digit() {
            self.at += 2;
        }
    }

    pub(super) fn unqualified(&mut self) -> Option<()> {
        match (self.peek(0), self.peek(1)) {
            (b'0'..=b'9', _) => self.source_name()?,
            // A name of internal linkage.
            (b'L', b'0'..=b'9') => {
                self.at += 1;
                self.source_name()?;
            }
            (b'C' | b'D', b'0'..=b'9') => self.at += 2,
            (b'C', b'I') => {
                self.at += 3;
                self.ty()?;
            }
            (b'U', b'l') => {
                self.at += 2;
                self.until_end(Self::ty)?;
                self.digits();
                self.expect(b"_")?;
            }
            (b'U', b't') => {
                self.at += 2;
                self.digits();
                self.expect(b"_")?;
            }
            (b'a'..=b'z', _) => self.operator()?,
            _ => return None,
        }
        while self.take(b"B") {
            self.source_name()?;
        }
        Some(())
    }

    pub(super) fn operator(&mut self) -> Option<()> {
        if self.take(b"cv") {
            return self.ty();
        }
        if self.take(b"li") {
            return self.source_name();
        }
        let letters = self.peek(0).is_ascii_alphabetic() && self.peek(1).is_ascii_alphabetic();
        letters.then(|| self.at += 2)
    }

    pub(super) fn source_name(&mut self) -> Option<()> {
        let from = self.at;
        self.digits();
        let len: usize = str::from_utf8(self.symbol.get(from..self.at)?).ok()?.parse().ok()?;
        self.at = self.at.checked_add(len).filter(|&end| end <= self.symbol.len())?;
        (len > 0).then_some(())
    }

    pub(super) fn substitution(&mut self) -> Option<()> {
        self.expect(b"S")?;
        if self.peek(0).is_ascii_lowercase() {
            self.at += 1;
            return Some(());
        }
        self.skip_while(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
        self.expect(b"_")
    }

    pub(super) fn parameter(&mut self) -> Option<()> {
        self.expect(b"T")?;
        if self.take(b"L") {
            self.digits();
            self.expect(b"_")?;
        }
        self.digits();
        self.expect(b"_")
    }

    pub(super) fn arguments_if_any(&mut self) -> Option<()> {
        if self.peek(0) == b'I' {
            self.arguments()
        } else {
            Some(())
        }
    }

    pub(super) fn arguments(&mut self) -> Option<()> {
        self.expect(b"I")?;
        self.until_end(Self::argument)
    }

    pub(super) fn argument(&mut self) -> Option<()> {
        self.deeper(Self::argument_inside)
    }

    pub(super) fn argument_inside(&mut self) -> Option<()> {
        match (self.peek(0), self.peek(1)) {
            (b'X', _) => {
                self.at += 1;
                self.expression()?;
                self.expect(b"E")
            }
            (b'L', _) => self.literal(),
            (b'J', _) => {
                self.at += 1;
                self.until_end(Self::argument)
            }
            // A declared type, or a pack of what follows: there is nothing to hide.
            (b'T', b'y' | b'p') => {
                self.leave_out(2);
                self.argument()
            }
            // A value, with its type.
            (b'T', b'n') => {
                self.leave_out(2);
                self.insert(&format!("JX{}{OPEN}E", OPEN.len()));
                self.ty()?;
                self.insert(&format!("X{}{SHUT}E", SHUT.len()));
                self.argument()?;
                self.insert("E");
                Some(())
            }
            // A concept, or a template: these have names and parameters of their own.
            (b'T', b'k' | b't') => None,
            _ => self.ty(),
        }
    }
}
