//! Text from other sources: names of processes, kernels, files and libraries, arguments, and error messages of other programs. Each
//! adapter writes such text in one output format so that it cannot be anything but text there.
//!
//! An adapter implements [`fmt::Display`], with width and alignment. It does not change harmless text.
//!
//! - [`Terminal`]: one line on a terminal or in the log of a CI system.
//! - [`Lines`]: the same for text that may have several lines.
//! - [`Xml`]: content of an XML 1.0 document, before the writer replaces `<`, `&` and quotes.
//! - [`Json`]: a complete JSON document that may be shown on a terminal.
//! - [`Github`] and [`GithubProperty`]: parts of a workflow command of GitHub Actions.
//! - [`Markdown`]: one line of a Markdown document, also in a cell of a table.
//!
//! HTML needs no adapter: the live page sets `textContent`, and the templates of a report's page escape every text. Prometheus needs no adapter: the encoder escapes label values.

use std::{borrow::Cow, fmt};

/// One line. Control characters, line breaks, characters that reorder or hide text, and noncharacters become `\u{..}`.
///
/// CI systems read commands from the log of a step. They recognize `::error::` at the start of a line (actions/runner,
/// `ActionCommand.TryParseV2`), so a leading colon is escaped. They recognize `##[error]` and `##vso[..]` anywhere in a line
/// (`ActionCommand.TryParse`; Azure Pipelines), so the second `#` of such a mark is escaped.
#[derive(Clone, Copy, Debug)]
pub struct Terminal<'a>(pub &'a str);

/// Several lines. Works as [`Terminal`], but a line feed starts a new line, indented by four spaces. The indentation distinguishes
/// a continuation line from a new message.
#[derive(Clone, Copy, Debug)]
pub struct Lines<'a>(pub &'a str);

/// Content of an XML document. Works as [`Terminal`], but keeps line feeds. XML 1.0 cannot represent most control characters,
/// U+FFFE and U+FFFF (production `Char`), so they must not reach the writer.
#[derive(Clone, Copy, Debug)]
pub struct Xml<'a>(pub &'a str);

/// A complete JSON document. Characters outside ASCII that [`Terminal`] escapes become `\uXXXX`, and so does U+007F. They occur
/// only in strings, whose meaning stays the same. The marks by which CI systems find commands in a line are escaped in the same
/// way.
#[derive(Clone, Copy, Debug)]
pub struct Json<'a>(pub &'a str);

/// The data of a workflow command, as `escapeData` of GitHub's toolkit. Line feeds become `%0A`; other characters are escaped as by
/// [`Terminal`].
#[derive(Clone, Copy, Debug)]
pub struct Github<'a>(pub &'a str);

/// A property of a workflow command, as `escapeProperty` of GitHub's toolkit. Also escapes `:` and `,`.
#[derive(Clone, Copy, Debug)]
pub struct GithubProperty<'a>(pub &'a str);

/// One line that Markdown shows unchanged. Works as [`Terminal`], and also escapes marks of Markdown and HTML.
#[derive(Clone, Copy, Debug)]
pub struct Markdown<'a>(pub &'a str);

/// Converts bytes to text: UTF-8 stays, every other byte becomes `\xNN`. The result must still be escaped for its output format.
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    Cow::Owned(text)
}

/// Formats any value as one line: see [`Terminal`].
#[must_use]
pub fn line(text: impl fmt::Display) -> String {
    Terminal(&text.to_string()).to_string()
}

/// Returns whether a character must not reach a terminal: control characters, characters that reorder text (Unicode UAX 9) or show
/// nothing, line separators, and noncharacters.
#[must_use]
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
        || u32::from(c) & 0xfffe == 0xfffe
}

/// Marks by which CI systems find commands anywhere in a line.
const MARKS: [&str; 2] = ["##[", "##vso["];

/// Escapes one line. `keep` returns whether a character, such as a line feed, stays.
fn escape(text: &str, keep: fn(char) -> bool) -> Cow<'_, str> {
    let starts_command = text.trim_start().starts_with(':');
    if !starts_command && !text.contains("##") && !text.chars().any(|c| is_unsafe(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    let mut first = starts_command;
    for (at, c) in text.char_indices() {
        let marked = c == '#' && at > 0 && MARKS.iter().any(|mark| text[at - 1..].starts_with(mark));
        if marked || first && c == ':' {
            first = false;
            clean.extend(c.escape_unicode());
        } else if is_unsafe(c) && !keep(c) {
            clean.extend(c.escape_default());
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

fn one_line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Escapes each line, and joins the lines with `separator`.
fn each_line(text: &str, separator: &str) -> String {
    text.split('\n').map(one_line).collect::<Vec<_>>().join(separator)
}

fn json(text: &str) -> String {
    let unmarked = |document: String, mark: &str| document.replace(mark, &mark.replacen("##", "#\\u0023", 1));
    let document = MARKS.into_iter().fold(text.to_owned(), unmarked);
    let mut clean = String::with_capacity(document.len());
    for c in document.chars() {
        if is_unsafe(c) && c >= '\u{7f}' {
            clean.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            clean.push(c);
        }
    }
    clean
}

/// Applies `escapeData` of GitHub's toolkit to text that [`escape`] has processed.
fn data(text: &str) -> String {
    escape(text, |c| matches!(c, '\n' | '\r'))
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn markdown(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '&' => clean.push_str("&amp;"),
            '<' => clean.push_str("&lt;"),
            '>' => clean.push_str("&gt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '@' => clean.extend(['\\', c]),
            _ => clean.push(c),
        }
    }
    clean
}

/// Implements [`fmt::Display`] for each adapter by the function that escapes its text.
macro_rules! display {
    ($($adapter:ident, $escape:expr;)*) => {$(
        impl fmt::Display for $adapter<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&$escape(self.0))
            }
        }
    )*};
}

display! {
    Terminal, one_line;
    Lines, |text: &str| each_line(text.trim_end_matches('\n'), "\n    ");
    // The document may be printed to the log of a step, so the rule applies to each of its lines.
    Xml, |text| each_line(text, "\n");
    Json, json;
    Github, data;
    GithubProperty, |text| data(text).replace(':', "%3A").replace(',', "%2C");
    Markdown, markdown;
}

/// A name that tries to break out of every format. It has no NUL, because names of processes and files cannot contain one.
///
/// It sets the title of a terminal, moves its cursor, starts a line with a command of GitHub Actions and one of Azure Pipelines,
/// closes an HTML attribute and a CDATA section, hides and reorders text, and contains a byte that is not UTF-8.
#[cfg(any(test, feature = "sample"))]
pub const HOSTILE: &[u8] =
    b"\x1b]0;owned\x07\x1b[2J\n::error::x\r\n##[error]y ##vso[z]\"><script>]]>\xe2\x80\xae\xc2\x9b31m\xef\xbf\xbe|%,:`\xff";

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile() -> String {
        let text = from_bytes(HOSTILE);
        format!("{text}\0")
    }

    /// Returns whether text has no characters that are forbidden in every output format.
    fn is_clean(text: &str) -> bool {
        !text.chars().any(|c| is_unsafe(c) && c != '\n')
            && !text.lines().any(|line| line.trim_start().starts_with("::"))
            && !text.contains("##[")
            && !text.contains("##vso[")
    }

    #[test]
    fn harmless_text_is_left_alone() {
        for text in [
            "",
            "vector_add",
            "void k<int>(float*) [clone .kd]",
            "a::b # c",
            "größe 数",
            "é",
        ] {
            assert_eq!(Terminal(text).to_string(), text);
            assert_eq!(Lines(text).to_string(), text);
            assert_eq!(Xml(text).to_string(), text);
            assert_eq!(Json(text).to_string(), text);
        }
        assert_eq!(format!("[{:<4}|{:>4}]", Terminal("a"), Terminal("b")), "[a   |   b]");
    }

    #[test]
    fn one_hostile_name_is_text_in_every_format() {
        let hostile = hostile();
        let terminal = Terminal(&hostile).to_string();
        assert!(is_clean(&terminal) && !terminal.contains('\n'), "{terminal:?}");
        assert!(
            terminal.contains("\\u{1b}]0;owned\\u{7}") && terminal.contains("\\xff"),
            "{terminal}"
        );
        assert!(is_clean(&format!("  {}", Terminal("::error::x"))));
        let lines = Lines(&hostile).to_string();
        assert!(
            is_clean(&lines) && lines.lines().skip(1).all(|line| line.starts_with("    ")),
            "{lines:?}"
        );
        let xml = Xml(&hostile).to_string();
        assert!(is_clean(&xml), "{xml:?}");
        let markdown = Markdown(&hostile).to_string();
        assert!(
            is_clean(&markdown) && !markdown.contains(['\n', '<', '>']),
            "{markdown:?}"
        );
        assert!(!markdown.replace("\\|", "").contains('|') && !markdown.replace("\\`", "").contains('`'));
        let github = Github(&hostile).to_string();
        assert!(is_clean(&github) && !github.contains(['\n', '\r']), "{github:?}");
        assert!(github.contains("%0A") && github.contains("|%25,:"), "{github}");
        let property = GithubProperty(&hostile).to_string();
        assert!(
            !property.contains([':', ',', '\n']) && property.contains("%3A"),
            "{property}"
        );
    }

    #[test]
    fn a_json_document_keeps_its_meaning() {
        let document = serde_json::to_string(&hostile()).unwrap();
        let shown = Json(&document).to_string();
        assert!(is_clean(&shown) && !shown.chars().any(is_unsafe), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), hostile());
        let tag = serde_json::to_string("\u{e0041}").unwrap();
        assert_eq!(Json(&tag).to_string(), "\"\\udb40\\udc41\"");
    }

    #[test]
    fn bytes_that_are_no_text_stay_visible() {
        assert_eq!(from_bytes(b"a\xffb\xe2\x80"), "a\\xffb\\xe2\\x80");
        assert_eq!(from_bytes("ü".as_bytes()), "ü");
    }
}
