//! How the kernel prints a record: the `print fmt` of its format, with fields and strings for its arguments.

use std::fmt::Write;

use tracer_core::trace_format::TraceFormat;

/// Most characters that a number is padded to.
const MAX_WIDTH: usize = 64;

/// A format that is understood.
#[derive(Debug, PartialEq, Eq)]
pub struct Print(Vec<Piece>);

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Value { conversion: Conversion, value: Value },
}

/// What a percent sign asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conversion {
    Signed,
    Unsigned,
    Hexadecimal { width: usize, zeros: bool },
    Text,
}

/// An argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    /// A number: where it is, how long, and whether it has a sign.
    Number { at: usize, size: usize },
    /// A string of variable length: where its place is.
    Text { at: usize },
    /// Characters of the record itself.
    Characters { at: usize, size: usize },
}

impl Print {
    /// Parses the `print fmt` of a format; `None` if it has something else than fields and strings.
    pub fn of(format: &TraceFormat) -> Option<Self> {
        let text = format.print.strip_prefix('"')?;
        let end = text
            .char_indices()
            .find(|&(at, c)| c == '"' && !text[..at].ends_with('\\'))?
            .0;
        let (text, rest) = (&text[..end], &text[end + 1..]);
        let mut arguments = arguments(rest).into_iter();
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut left = text;
        while let Some(at) = left.find('%') {
            literal += &left[..at];
            left = &left[at + 1..];
            if let Some(after) = left.strip_prefix('%') {
                literal.push('%');
                left = after;
                continue;
            }
            let (conversion, after) = conversion(left)?;
            left = after;
            let value = value(format, &arguments.next()?)?;
            if !literal.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Value { conversion, value });
        }
        literal += left;
        pieces.push(Piece::Text(literal));
        Some(Self(pieces))
    }

    /// Prints a record; `None` if a field is not in it.
    pub fn render(&self, raw: &[u8], into: &mut String) -> Option<()> {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => into.push_str(text),
                Piece::Value { conversion, value } => render(*conversion, *value, raw, into)?,
            }
        }
        Some(())
    }
}

fn render(conversion: Conversion, value: Value, raw: &[u8], into: &mut String) -> Option<()> {
    let number = match value {
        Value::Number { at, size } => number(raw, at, size)?,
        Value::Text { at } => {
            // The place of the string is in the lower half.
            let place = number(raw, at, 4)? & 0xffff;
            push_text(raw.get(place as usize..)?, into);
            return Some(());
        }
        Value::Characters { at, size } => {
            push_text(raw.get(at..at.checked_add(size)?)?, into);
            return Some(());
        }
    };
    let bits = match value {
        Value::Number { size, .. } => size as u32 * 8,
        _ => 64,
    };
    let written = match conversion {
        Conversion::Signed => {
            let shift = 64 - bits;
            write!(into, "{}", (number << shift).cast_signed() >> shift)
        }
        Conversion::Unsigned => write!(into, "{number}"),
        Conversion::Hexadecimal { width, zeros: true } => write!(into, "{number:0width$x}"),
        Conversion::Hexadecimal { width, zeros: false } => write!(into, "{number:width$x}"),
        Conversion::Text => return None,
    };
    written.ok()
}

fn push_text(bytes: &[u8], into: &mut String) {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    into.push_str(&String::from_utf8_lossy(text));
}

fn number(raw: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes
        .get_mut(..size)?
        .copy_from_slice(raw.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(bytes))
}

/// Parses what follows a percent sign, and returns the rest.
fn conversion(text: &str) -> Option<(Conversion, &str)> {
    let digits = text.trim_start_matches(['-', '+', ' ', '#']);
    let zeros = digits.starts_with('0');
    let after = digits.trim_start_matches(|c: char| c.is_ascii_digit());
    let width = &digits[..digits.len() - after.len()];
    let width: usize = if width.is_empty() { 0 } else { width.parse().ok()? };
    let after = after.trim_start_matches(['l', 'L', 'h', 'z']);
    let kind = after.chars().next()?;
    let rest = &after[kind.len_utf8()..];
    let hexadecimal = |width, zeros| (width <= MAX_WIDTH).then_some(Conversion::Hexadecimal { width, zeros });
    let conversion = match kind {
        'd' | 'i' => Conversion::Signed,
        'u' => Conversion::Unsigned,
        'x' => hexadecimal(width, zeros)?,
        // An address. The kernel prints a hash of it instead, of the same length. A letter after it means something else.
        'p' if !rest.starts_with(|c: char| c.is_ascii_alphabetic()) => hexadecimal(16, true)?,
        's' => Conversion::Text,
        _ => return None,
    };
    Some((conversion, rest))
}

/// Splits what follows the text at the commas outside of parentheses.
fn arguments(text: &str) -> Vec<String> {
    let mut arguments = vec![String::new()];
    let mut depth = 0_i32;
    for c in text.trim().trim_start_matches(',').chars() {
        depth += i32::from(c == '(') - i32::from(c == ')');
        match arguments.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => arguments.push(String::new()),
        }
    }
    arguments.iter().map(|argument| argument.trim().to_owned()).collect()
}

fn value(format: &TraceFormat, argument: &str) -> Option<Value> {
    if let Some(inner) = argument.strip_prefix("__get_str(") {
        let at = format.string(inner.strip_suffix(')')?.trim())? as usize;
        return Some(Value::Text { at });
    }
    // A cast before the field changes nothing that is printed: the conversion says how.
    let mut argument = argument;
    while let Some(inner) = argument.strip_prefix('(') {
        let (kind, rest) = inner.split_once(')')?;
        argument = if rest.trim().is_empty() { kind } else { rest }.trim();
    }
    let field = format.field(argument.strip_prefix("REC->")?)?;
    let (at, size) = (field.offset as usize, field.size as usize);
    if field.declaration.starts_with("char ") && field.declaration.ends_with(']') {
        return Some(Value::Characters { at, size });
    }
    [1, 2, 4, 8].contains(&size).then_some(Value::Number { at, size })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(print: &str, raw: &[u8]) -> Option<String> {
        let text = format!(
            "name: x\nID: 1\nformat:\n\
             \tfield:u64 a;\toffset:8;\tsize:8;\tsigned:0;\n\
             \tfield:int b;\toffset:16;\tsize:4;\tsigned:1;\n\
             \tfield:__data_loc char[] name;\toffset:20;\tsize:4;\tsigned:0;\n\
             \tfield:char comm[4];\toffset:24;\tsize:4;\tsigned:0;\n\nprint fmt: {print}\n"
        );
        let mut into = String::new();
        Print::of(&TraceFormat::parse(&text).unwrap())?.render(raw, &mut into)?;
        Some(into)
    }

    #[test]
    fn records_are_printed_as_the_kernel_does() {
        let mut raw = vec![0; 8];
        raw.extend(0xabc_u64.to_le_bytes());
        raw.extend((-2_i32).to_le_bytes());
        raw.extend((28_u32 | 6 << 16).to_le_bytes());
        raw.extend(b"sh\0?sdma0\0");
        for (print, expected) in [
            ("\"a=%llu, b=%d 100%%\", REC->a, REC->b", "a=2748, b=-2 100%"),
            (
                "\"%p %010Lx %x\", REC->a, REC->a, (unsigned int)REC->a",
                "0000000000000abc 0000000abc abc",
            ),
            (
                "\"ring=%s, comm=%s\", __get_str(name), REC->comm",
                "ring=sdma0, comm=sh",
            ),
            ("\"\\\"%u\\\"\", (REC->b)", "\\\"4294967294\\\""),
        ] {
            assert_eq!(printed(print, &raw).as_deref(), Some(expected), "{print}");
        }
        // Not understood, or not there.
        for print in [
            "\"%pS\", REC->a",
            "\"%d\", REC->a + 1",
            "\"%d\", REC->none",
            "\"%d %d\", REC->a",
            "\"%d\", __print_symbolic(REC->b, { 0, \"x\" })",
            "no text",
        ] {
            assert_eq!(printed(print, &raw), None, "{print}");
        }
        assert_eq!(printed("\"%s\", __get_str(name)", &raw[..20]), None);
    }
}
