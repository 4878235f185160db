//! Blocks of a report: tables, notes, items and labelled lines, as data.
//!
//! The writer of a report passes them as JSON, one line each, through the same output that text takes. Whatever else is in that
//! output is an error, so that no text becomes markup by mistake.

use std::io::{self, Write};

use maud::{Markup, html};
use serde::{Deserialize, Serialize};

/// A part of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Block {
    /// A table.
    Table {
        /// Its columns.
        columns: Vec<Column>,
        /// Its rows: a cell for each column.
        rows: Vec<Vec<String>>,
        /// Rows that are left out.
        left_out: u64,
    },
    /// A sentence about the table before.
    Note(String),
    /// An item of a list.
    Item {
        /// One character: `!` for a warning.
        mark: char,
        /// The text.
        text: String,
    },
    /// A label, and a line of text. An empty label continues the line before.
    Line {
        /// The label.
        label: String,
        /// The text.
        text: String,
    },
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Column {
    /// Its heading.
    pub heading: String,
    /// What its cells are.
    pub kind: Kind,
}

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Names, which may be long.
    Name,
    /// Words.
    Text,
    /// Numbers.
    Number,
}

/// The output of a report has something that is not a block.
#[derive(Debug, thiserror::Error)]
#[error("the report has text outside of its blocks: {0}")]
pub struct BlockError(#[from] serde_json::Error);

impl Block {
    /// Writes the block to an output of blocks.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)
    }

    /// Reads an output of blocks. Empty lines between blocks mean nothing.
    ///
    /// # Errors
    /// If there is anything but blocks.
    pub fn read(output: &[u8]) -> Result<Vec<Self>, BlockError> {
        let blocks = serde_json::Deserializer::from_slice(output).into_iter();
        Ok(blocks.collect::<Result<_, _>>()?)
    }
}

/// Returns the elements of blocks. Of each table, `visible` rows are visible at once, and the reader opens the others.
pub(crate) fn elements(blocks: &[Block], visible: usize) -> Markup {
    let groups = blocks.chunk_by(|one, next| matches!((one, next), (Block::Line { .. }, Block::Line { .. })));
    html! {
        @for group in groups {
            @match &group[0] {
                Block::Line { .. } => (lines(group)),
                Block::Note(text) => p .note { (text) },
                Block::Item { mark, text } => p .finding.warn[*mark == '!'] {
                    b { @if *mark == '!' { "Warning" } @else { "Note" } } " " (text)
                },
                Block::Table { columns, rows, left_out } => (table(columns, rows, *left_out, visible)),
            }
        }
    }
}

/// Returns a list of labels with their lines.
fn lines(lines: &[Block]) -> Markup {
    let pairs = lines.iter().filter_map(|line| match line {
        Block::Line { label, text } => Some((label, text)),
        _ => None,
    });
    html! {
        dl {
            @for (label, text) in pairs {
                @if !label.is_empty() { dt { (label) } }
                dd data-of=[Some(label).filter(|label| !label.is_empty())] { (text) }
            }
        }
    }
}

fn table(columns: &[Column], rows: &[Vec<String>], left_out: u64, visible: usize) -> Markup {
    let (first, more) = rows.split_at(visible.min(rows.len()));
    html! {
        (rows_of(columns, first))
        @if !more.is_empty() {
            details {
                summary { (more.len()) " more" }
                (rows_of(columns, more))
            }
        }
        @if left_out > 0 {
            p .note { (left_out) " more rows are not in this page. " code { "tracer report --all" } " has them." }
        }
    }
}

fn rows_of(columns: &[Column], rows: &[Vec<String>]) -> Markup {
    let class = |at: usize| match columns[at].kind {
        Kind::Name => Some("name"),
        Kind::Text => Some("text"),
        Kind::Number => None,
    };
    html! {
        // Scrolled by keys, too.
        div .wide tabindex="0" role="region" aria-label=(columns[0].heading) {
            table {
                thead { tr { @for (at, column) in columns.iter().enumerate() {
                    th scope="col" class=[class(at)] { (column.heading) }
                } } }
                tbody { @for row in rows { tr { @for (at, cell) in row.iter().enumerate() {
                    td class=[class(at)] { (cell) }
                } } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&";

    fn hostile() -> Vec<Block> {
        let text = HOSTILE.to_owned();
        vec![
            Block::Line {
                label: text.clone(),
                text: text.clone(),
            },
            Block::Table {
                columns: vec![Column {
                    heading: text.clone(),
                    kind: Kind::Name,
                }],
                rows: vec![vec![text.clone()], vec![text.clone()]],
                left_out: 7,
            },
            Block::Note(text.clone()),
            Block::Item { mark: '!', text },
        ]
    }

    #[test]
    fn blocks_survive_their_output_and_nothing_else_does() {
        let mut output = Vec::new();
        for block in hostile() {
            output.extend(b"\n");
            block.write(&mut output).unwrap();
        }
        assert_eq!(Block::read(&output).unwrap(), hostile());
        output.extend(b"<b>text</b>\n");
        assert!(Block::read(&output).is_err());
    }

    #[test]
    fn text_of_blocks_is_never_markup() {
        let shown = elements(&hostile(), 1).into_string();
        let escaped = "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;'&amp;";
        assert!(!shown.contains("<img") && !shown.contains("</script"), "{shown}");
        // As a label and its line, two headings, each with a name for readers of the screen, two cells, a note and an item; the line
        // names its label once more.
        assert_eq!(shown.matches(escaped).count(), 11, "{shown}");
        assert!(
            shown.contains("<summary>1 more</summary>") && shown.contains("7 more rows"),
            "{shown}"
        );
    }
}
