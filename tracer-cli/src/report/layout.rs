//! Text that fits its reader's terminal: tables whose columns and names are fitted to a width, and lines that wrap.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    os::fd::AsFd,
};

use comfy_table::{CellAlignment, ColumnConstraint, presets};
use tracer_core::foreign::Markdown;
use tracer_html::Block;
use unicode_width::UnicodeWidthStr;

/// Columns of a reader whose terminal is unknown.
const USUAL_WIDTH: usize = 80;
/// Columns below which nothing is fitted any more: it wraps instead.
const LEAST_WIDTH: usize = 40;
/// Columns between two columns of a table.
const GAP: usize = 2;
/// Columns that a name keeps, at the least.
const LEAST_NAME: usize = 24;
/// Rows of a table, unless the user asks for others.
const USUAL_ROWS: usize = 10;

/// How a report is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// Columns; `None`: as many as the text needs.
    pub width: Option<usize>,
    /// Rows of a table; the others are counted.
    pub rows: usize,
    /// How headings and tables are marked.
    pub style: Style,
}

/// How headings and tables are marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// By spaces alone.
    Plain,
    /// For a terminal: headings are bold, and marks have colours.
    Bold,
    /// As Markdown.
    Markdown,
    /// As blocks of a page, which has headings of its own.
    Blocks,
}

impl Layout {
    /// Returns the layout for a stream: that of its terminal. `COLUMNS` counts where there is none.
    pub fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        let size = || rustix::termios::tcgetwinsize(stream).ok().map(|size| size.ws_col);
        let is_terminal = stream.is_terminal();
        let variable = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let width = match size().filter(|&columns| columns > 0) {
            Some(columns) => usize::from(columns),
            None => variable.unwrap_or(USUAL_WIDTH),
        };
        // https://no-color.org: any value but the empty one.
        let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            width: Some(width.max(LEAST_WIDTH)),
            rows: USUAL_ROWS,
            style: if is_terminal && !is_plain {
                Style::Bold
            } else {
                Style::Plain
            },
        }
    }

    /// Returns the layout with all columns and whole names.
    pub fn wide(self) -> Self {
        Self { width: None, ..self }
    }

    /// Returns the layout with at most `rows` rows in each table.
    pub fn with_rows(self, rows: usize) -> Self {
        Self { rows, ..self }
    }

    /// Wraps each line at spaces, with an indentation.
    pub fn wrap(self, text: &str, indent: usize) -> String {
        let wrapped = text.lines().map(|line| match self.width {
            Some(width) => wrap(line, indent, width) + "\n",
            None => line.to_owned() + "\n",
        });
        wrapped.collect()
    }

    /// Returns the layout of a Markdown document, which has whole names.
    pub fn markdown(self) -> Self {
        Self {
            width: None,
            style: Style::Markdown,
            ..self
        }
    }

    /// Returns the layout of a page, which has whole names.
    pub fn blocks(self) -> Self {
        Self {
            width: None,
            style: Style::Blocks,
            ..self
        }
    }

    /// Writes a heading.
    pub fn heading(self, out: &mut impl Write, text: &str) -> io::Result<()> {
        match self.style {
            Style::Bold => writeln!(out, "\x1b[1m{text}\x1b[0m"),
            Style::Plain => writeln!(out, "{text}"),
            Style::Markdown => writeln!(out, "## {text}\n"),
            Style::Blocks => Ok(()),
        }
    }

    /// Writes a sentence about the table before.
    pub fn note(self, out: &mut impl Write, text: &str) -> io::Result<()> {
        match self.style {
            Style::Markdown => writeln!(out, "\n{text}"),
            Style::Blocks => Block::Note(text.to_owned()).write(out),
            _ => out.write_all(self.wrap(&format!("  {text}"), 2).as_bytes()),
        }
    }

    /// Writes how many rows a table leaves out.
    pub fn more(self, out: &mut impl Write, rows: usize) -> io::Result<()> {
        match self.style {
            Style::Markdown | Style::Blocks => self.note(out, &format!("{rows} more; `--all` shows them.")),
            _ => writeln!(out, "... {rows} more; --all shows them"),
        }
    }

    /// Writes an item of a list. `mark` is one character.
    pub fn item(self, out: &mut impl Write, mark: char, text: &str) -> io::Result<()> {
        match self.style {
            Style::Markdown => writeln!(out, "- **{mark}** {text}"),
            Style::Bold => {
                // Yellow for a warning, blue for a note.
                let colour = if mark == '!' { 33 } else { 34 };
                let wrapped = self.wrap(&format!("{mark} {text}"), 2);
                let behind = wrapped.strip_prefix(mark).unwrap_or(&wrapped);
                write!(out, "\x1b[1;{colour}m{mark}\x1b[0m{behind}")
            }
            Style::Plain => out.write_all(self.wrap(&format!("{mark} {text}"), 2).as_bytes()),
            Style::Blocks => Block::Item {
                mark,
                text: text.to_owned(),
            }
            .write(out),
        }
    }

    /// Writes lines of labels and texts, wrapped under the texts.
    pub fn labelled(self, out: &mut impl Write, text: &str, label: usize) -> io::Result<()> {
        if self.style == Style::Blocks {
            return text.lines().try_for_each(|line| {
                let (label, text) = line.split_at_checked(label).unwrap_or(("", line));
                let [label, text] = [label, text].map(|text| text.trim().to_owned());
                Block::Line { label, text }.write(out)
            });
        }
        let wrapped = self.wrap(text, label);
        for line in wrapped.lines() {
            // Nothing in an indented line of Markdown is a mark.
            let indent = if self.style == Style::Markdown { "    " } else { "" };
            writeln!(out, "{indent}{line}")?;
        }
        Ok(())
    }
}

/// Wraps one line. A word that is longer than a line stays whole: it may be a name to copy.
fn wrap(line: &str, indent: usize, width: usize) -> String {
    let mut wrapped = String::new();
    let mut used = 0;
    for (at, word) in line.split(' ').enumerate() {
        let length = word.width();
        if at > 0 && used > indent && used + 1 + length > width {
            wrapped.truncate(wrapped.trim_end().len());
            wrapped.push('\n');
            wrapped.push_str(&" ".repeat(indent));
            used = indent;
        } else if at > 0 {
            wrapped.push(' ');
            used += 1;
        }
        wrapped.push_str(word);
        used += length;
    }
    wrapped.truncate(wrapped.trim_end().len());
    wrapped
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    heading: Cow<'static, str>,
    kind: Kind,
    /// Columns with a higher number are left out first where there is no room; 0 always stays.
    spare: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A name, which is shortened in its middle where there is no room.
    Name,
    Text,
    Number,
}

/// Returns a column of names. Its table has no other one.
pub const fn name(heading: &'static str) -> Column {
    column(heading, Kind::Name)
}

/// Returns a column of words.
pub const fn text(heading: &'static str) -> Column {
    column(heading, Kind::Text)
}

/// Returns a column of numbers.
pub const fn number(heading: &'static str) -> Column {
    column(heading, Kind::Number)
}

const fn column(heading: &'static str, kind: Kind) -> Column {
    Column {
        heading: Cow::Borrowed(heading),
        kind,
        spare: 0,
    }
}

/// Returns a column of an answer, whose heading the user chose.
pub fn chosen(heading: String, is_number: bool) -> Column {
    Column {
        heading: Cow::Owned(heading),
        kind: if is_number { Kind::Number } else { Kind::Text },
        spare: 0,
    }
}

impl Column {
    /// Returns the column, which is left out before those with a lower number.
    pub fn spare(self, spare: u8) -> Self {
        Self { spare, ..self }
    }
}

/// A table.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(columns: &[Column]) -> Self {
        Self {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row: one cell for each column. Foreign text in it must be escaped.
    pub fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Returns whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Makes the widest column of texts the one whose cells are shortened in their middle, if there is no room.
    pub fn shorten_widest(&mut self) {
        let texts = (0..self.columns.len()).filter(|&at| self.columns[at].kind == Kind::Text);
        if let Some(widest) = texts.max_by_key(|&at| self.natural(at)) {
            self.columns[widest].kind = Kind::Name;
        }
    }

    /// Writes the table after an empty line, and how many rows it leaves out; nothing if it has no rows.
    pub fn write(self, out: &mut impl Write, layout: Layout) -> io::Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.write_alone(out, layout)
    }

    /// Writes the table where nothing is before it.
    pub fn write_alone(mut self, out: &mut impl Write, layout: Layout) -> io::Result<()> {
        let more = self.rows.len().saturating_sub(layout.rows);
        self.rows.truncate(layout.rows);
        if layout.style == Style::Blocks {
            return self.block(more as u64).write(out);
        }
        let shown = self.fit(layout.width);
        let mut table = comfy_table::Table::new();
        let is_markdown = layout.style == Style::Markdown;
        if is_markdown {
            let cells = self.rows.iter_mut().flatten();
            cells.for_each(|cell| *cell = Markdown(cell).to_string());
        }
        table
            .load_preset(if is_markdown {
                presets::ASCII_MARKDOWN
            } else {
                presets::NOTHING
            })
            .set_header(self.columns.iter().map(|column| &*column.heading))
            .add_rows(&self.rows);
        for (at, column) in table.column_iter_mut().enumerate() {
            if !is_markdown {
                column.set_padding((0, GAP as u16));
            }
            column.set_cell_alignment(match self.columns[at].kind {
                Kind::Number => CellAlignment::Right,
                Kind::Name | Kind::Text => CellAlignment::Left,
            });
            if !shown[at] {
                column.set_constraint(ColumnConstraint::Hidden);
            }
        }
        for (at, line) in table.lines().enumerate() {
            match (at, layout.style) {
                (0, Style::Bold) => layout.heading(out, line.trim_end())?,
                _ => writeln!(out, "{}", line.trim_end())?,
            }
        }
        match more {
            0 => Ok(()),
            more => layout.more(out, more),
        }
    }

    /// Returns the table as a block of a page.
    fn block(self, left_out: u64) -> Block {
        let column = |column: Column| tracer_html::Column {
            heading: column.heading.into_owned(),
            kind: match column.kind {
                Kind::Name => tracer_html::Kind::Name,
                Kind::Text => tracer_html::Kind::Text,
                Kind::Number => tracer_html::Kind::Number,
            },
        };
        Block::Table {
            columns: self.columns.into_iter().map(column).collect(),
            rows: self.rows,
            left_out,
        }
    }

    /// Shortens the names and returns which columns are shown, so that the table has at most `width` columns of text.
    fn fit(&mut self, width: Option<usize>) -> Vec<bool> {
        let mut shown = vec![true; self.columns.len()];
        let Some(width) = width else { return shown };
        let widths: Vec<usize> = (0..self.columns.len()).map(|at| self.natural(at)).collect();
        let names = self.columns.iter().position(|column| column.kind == Kind::Name);
        loop {
            let others = |at: &usize| shown[*at] && Some(*at) != names;
            let taken: usize = (0..widths.len()).filter(others).map(|at| widths[at] + GAP).sum();
            // The gap behind the last column is not written.
            let room = (width + GAP).saturating_sub(taken);
            let needed = names.map_or(0, |at| widths[at].min(LEAST_NAME) + GAP);
            let fits = taken + needed <= width + GAP;
            let spare = (0..widths.len()).filter(|&at| shown[at] && self.columns[at].spare > 0);
            // Of columns with the same number, the last one.
            let next = spare.max_by_key(|&at| (self.columns[at].spare, at));
            match next {
                Some(at) if !fits => shown[at] = false,
                _ => {
                    if let Some(names) = names {
                        let most = room.max(needed) - GAP;
                        self.rows
                            .iter_mut()
                            .for_each(|row| row[names] = shortened(&row[names], most));
                    }
                    return shown;
                }
            }
        }
    }

    /// Returns the width of a column that shows everything.
    fn natural(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[at].width());
        cells.chain([self.columns[at].heading.width()]).max().unwrap_or(0)
    }
}

/// Shortens a name in its middle: both ends distinguish kernels.
fn shortened(name: &str, most: usize) -> String {
    const MARK: &str = "..";
    if name.width() <= most {
        return name.to_owned();
    }
    let room = most.saturating_sub(MARK.len());
    let head = room.div_ceil(2);
    let tail: String = {
        let back: String = taken(name.chars().rev(), room - head);
        back.chars().rev().collect()
    };
    taken(name.chars(), head) + MARK + &tail
}

/// Returns the characters that fit.
fn taken(chars: impl Iterator<Item = char>, most: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += unicode_width::UnicodeWidthChar::width(*c).unwrap_or(0);
        used <= most
    };
    chars.take_while(fits).collect()
}

#[cfg(test)]
mod tests;
