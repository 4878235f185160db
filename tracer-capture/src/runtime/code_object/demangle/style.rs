//! The style of LLVM, where `cpp_demangle` prints the same thing in other words.

/// Types whose literals have a suffix instead of the type: `4u`, not `(unsigned int)4`. The longer names come first.
const SUFFIXES: [(&str, &str); 5] = [
    ("(unsigned long long)", "ull"),
    ("(unsigned long)", "ul"),
    ("(unsigned int)", "u"),
    ("(long long)", "ll"),
    ("(long)", "l"),
];

/// What is printed of an argument pack without arguments, and what LLVM prints.
const EMPTY_PACKS: [(&str, &str); 4] = [(", >", ">"), ("<, ", "<"), (", , ", ", "), (", )", ")")];

/// Returns the name in LLVM's style.
pub fn llvm(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let styles = [literal, vector, unnamed, not, member, pack];
        let replaced = styles.iter().find_map(|style| style(rest, &mut out));
        rest = if let Some(len) = replaced {
            &rest[len..]
        } else {
            out.push(first);
            &rest[first.len_utf8()..]
        };
    }
    out
}

/// Prints what `text` begins with, if it is the trace of an empty pack; returns its length.
fn pack(text: &str, out: &mut String) -> Option<usize> {
    let (pack, instead) = EMPTY_PACKS.iter().find(|(pack, _)| text.starts_with(pack))?;
    out.push_str(instead);
    Some(pack.len())
}

/// Prints the literal that `text` begins with; returns its length.
fn literal(text: &str, out: &mut String) -> Option<usize> {
    let (kind, suffix) = SUFFIXES.iter().find(|(kind, _)| text.starts_with(kind))?;
    let value = &text[kind.len()..];
    let len = number(value)?;
    out.push_str(&value[..len]);
    out.push_str(suffix);
    Some(kind.len() + len)
}

/// Returns the length of the number that `text` begins with.
fn number(text: &str) -> Option<usize> {
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then_some(sign + digits)
}

/// Prints the type of a vector, ` __vector(4)`, that `text` begins with; returns its length.
fn vector(text: &str, out: &mut String) -> Option<usize> {
    let size = text.strip_prefix(" __vector(")?;
    let len = number(size).filter(|&len| size[len..].starts_with(')'))?;
    out.push_str(" vector[");
    out.push_str(&size[..len]);
    out.push(']');
    Some(" __vector(".len() + len + 1)
}

/// Prints the closure or the unnamed type that `text` begins with, `{lambda(int)#2}`: `'lambda0'(int)`. Returns its length.
fn unnamed(text: &str, out: &mut String) -> Option<usize> {
    let inner = text.strip_prefix('{')?;
    let (kind, rest) = [("lambda", "lambda"), ("unnamed type", "unnamed")]
        .iter()
        .find_map(|(theirs, kind)| Some((kind, inner.strip_prefix(theirs)?)))?;
    let end = closing(rest, b'{', b'}')?;
    let (parameters, count) = rest[..end].rsplit_once('#')?;
    let count: u32 = count.parse().ok()?;
    out.push('\'');
    out.push_str(kind);
    if count > 1 {
        out.push_str(&(count - 2).to_string());
    }
    out.push('\'');
    out.push_str(&llvm(parameters));
    Some(text.len() - rest.len() + end + 1)
}

/// Prints a pointer to a member type: `cpp_demangle` 0.5 puts the `*` of `A::type*` after `A`. Returns its length.
fn member(text: &str, out: &mut String) -> Option<usize> {
    let name = text.strip_prefix("*::")?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let len = name.bytes().take_while(|&byte| is_part(byte)).count();
    (len > 0 && name[len..].starts_with([',', ')'])).then_some(())?;
    out.push_str("::");
    out.push_str(&name[..len]);
    out.push('*');
    Some("*::".len() + len)
}

/// Prints a negated name that `text` begins with, `!(is_same<A, B>)`, without the parentheses. Returns its length.
fn not(text: &str, out: &mut String) -> Option<usize> {
    let inner = text.strip_prefix("!(")?;
    let name = &inner[..closing(inner, b'(', b')')?];
    let mut depth = 0_i32;
    let is_name = name.bytes().all(|byte| {
        depth += i32::from(byte == b'<') - i32::from(byte == b'>');
        depth > 0 || byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'>')
    });
    (is_name && depth == 0).then_some(())?;
    out.push('!');
    out.push_str(&llvm(name));
    Some(text.len() - inner.len() + name.len() + 1)
}

/// Returns the offset of the bracket that closes the one before `text`.
fn closing(text: &str, open: u8, close: u8) -> Option<usize> {
    let mut depth = 1;
    text.bytes().position(|byte| {
        depth += i32::from(byte == open) - i32::from(byte == close);
        depth == 0
    })
}
