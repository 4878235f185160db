//! Tables that fit any width: the least important columns are left out first.

use std::cmp::Ordering;

use ratatui::{
    buffer::Buffer,
    layout::Rect,
    style::{Modifier, Style},
};
use tracer_core::foreign;

use crate::text::shortened;

/// A column of a table of `R`.
pub struct Column<R> {
    /// The heading.
    pub title: &'static str,
    /// The width in cells. A column with 0 takes what is left.
    pub width: u16,
    /// How early the column is left out: 0 always stays; the greatest goes first.
    pub rank: u8,
    /// Whether to align to the left, for text; numbers are aligned to the right.
    pub left: bool,
    /// Returns the text of a cell, for a field of this width.
    pub cell: fn(&R, u16) -> String,
    /// The order of the rows when sorted by this column: the row that comes first is less.
    pub order: fn(&R, &R) -> Ordering,
}

/// Declares columns, a line each: heading, width, rank, alignment; cell; order.
macro_rules! columns {
    ($($title:literal $width:literal $rank:literal $side:ident: $cell:expr, $order:expr;)*) => {
        &[$($crate::table::Column {
            title: $title,
            width: $width,
            rank: $rank,
            left: $crate::table::columns!(@ $side),
            cell: $cell,
            order: $order,
        }),*]
    };
    (@ left) => { true };
    (@ right) => { false };
}
pub(crate) use columns;

/// Returns the columns that fit, of those that need these widths; 0 takes what is left.
fn fitting<R>(columns: &[Column<R>], needed: &[u16], width: u16) -> Vec<(usize, u16)> {
    /// Fewer cells tell no name apart.
    const LEAST_REST: u16 = 24;
    let least = |&needed: &u16| if needed == 0 { LEAST_REST } else { needed };
    let mut chosen: Vec<(usize, u16)> = needed.iter().map(least).enumerate().collect();
    loop {
        let taken = chosen.iter().map(|(_, width)| width + 1).sum::<u16>().saturating_sub(1);
        if taken <= width || chosen.len() <= 1 {
            let open = chosen.iter_mut().filter(|(at, _)| columns[*at].width == 0);
            open.for_each(|(_, taking)| *taking += width.saturating_sub(taken));
            return chosen;
        }
        // Of several, the last one.
        let worst = (0..chosen.len()).max_by_key(|&place| columns[chosen[place].0].rank);
        chosen.remove(worst.unwrap_or(0));
    }
}

/// A table to draw.
pub struct Table<'a, R> {
    pub columns: &'a [Column<R>],
    pub rows: &'a [&'a R],
    /// Index into `columns` of the sort column.
    pub sorted: usize,
    /// Whether the order is reversed.
    pub reversed: bool,
    /// Index into `rows` of the selected row.
    pub selected: usize,
    /// Returns the style of a row.
    pub style: fn(&R) -> Style,
}

impl<R> Table<'_, R> {
    /// Draws the headings and as many rows as fit, so that the selected row is among them. Returns the index of the first row
    /// shown.
    pub fn draw(&self, area: Rect, buffer: &mut Buffer) -> usize {
        if area.height == 0 {
            return 0;
        }
        let fits = usize::from(area.height - 1);
        let first = (self.selected + 1).saturating_sub(fits);
        let shown = self.rows.get(first..).unwrap_or_default();
        let shown = shown.get(..fits).unwrap_or(shown);
        let needed: Vec<u16> = (0..self.columns.len()).map(|at| self.needed(at, shown)).collect();
        let columns = fitting(self.columns, &needed, area.width);
        self.line(
            area,
            0,
            &columns,
            Style::new().add_modifier(Modifier::BOLD),
            buffer,
            |column, width, at| {
                let mark = match (at == self.sorted, self.reversed) {
                    (false, _) => "",
                    (true, false) => "▾",
                    (true, true) => "▴",
                };
                let room = width.saturating_sub(mark.chars().count() as u16);
                shortened(column.title, room) + mark
            },
        );
        for (place, row) in shown.iter().enumerate() {
            let style = if first + place == self.selected {
                (self.style)(row).add_modifier(Modifier::REVERSED)
            } else {
                (self.style)(row)
            };
            self.line(area, place as u16 + 1, &columns, style, buffer, |column, width, _| {
                (column.cell)(row, width)
            });
        }
        first
    }

    /// Returns the width that a column needs for its heading and these rows. A number that is cut is another number; a name is
    /// shortened.
    fn needed(&self, at: usize, rows: &[&R]) -> u16 {
        let column = &self.columns[at];
        if column.width == 0 {
            return 0;
        }
        let heading = column.title.chars().count() as u16 + u16::from(at == self.sorted);
        let least = column.width.max(heading);
        if column.left {
            return least;
        }
        let cells = rows.iter().map(|row| (column.cell)(row, least).chars().count() as u16);
        cells.fold(least, u16::max)
    }

    fn line(
        &self,
        area: Rect,
        down: u16,
        columns: &[(usize, u16)],
        style: Style,
        buffer: &mut Buffer,
        text: impl Fn(&Column<R>, u16, usize) -> String,
    ) {
        buffer.set_style(Rect::new(area.x, area.y + down, area.width, 1), style);
        let mut x = area.x;
        for &(at, width) in columns {
            let column = &self.columns[at];
            // Names come from traced processes.
            let text = foreign::line(text(column, width, at));
            let used = (text.chars().count() as u16).min(width);
            let start = if column.left { x } else { x + width - used };
            buffer.set_stringn(start, area.y + down, shortened(&text, width), usize::from(width), style);
            x += width + 1;
            if x >= area.right() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(title: &'static str, width: u16, rank: u8) -> Column<u32> {
        Column {
            title,
            width,
            rank,
            left: false,
            cell: |n, _| n.to_string(),
            order: Ord::cmp,
        }
    }

    #[test]
    fn columns_leave_by_rank_and_the_open_one_takes_the_rest() {
        let columns = [
            column("a", 5, 0),
            column("b", 0, 1),
            column("c", 5, 9),
            column("d", 5, 2),
        ];
        let needed = [5, 0, 5, 5];
        assert_eq!(fitting(&columns, &needed, 60), [(0, 5), (1, 42), (2, 5), (3, 5)]);
        assert_eq!(fitting(&columns, &needed, 40), [(0, 5), (1, 28), (3, 5)]);
        assert_eq!(fitting(&columns, &needed, 3), [(0, 5)]);
        assert_eq!(fitting(&columns, &[9, 0, 5, 5], 40), [(0, 9), (1, 24), (3, 5)]);
    }

    #[test]
    fn a_column_is_as_wide_as_its_numbers() {
        let columns = [column("a", 3, 0), column("titled", 3, 1)];
        let mut table = Table {
            columns: &columns,
            rows: &[&1, &1_234_567],
            sorted: 0,
            reversed: false,
            selected: 0,
            style: |_| Style::new(),
        };
        let needed = |table: &Table<'_, u32>| [0, 1].map(|at| table.needed(at, table.rows));
        assert_eq!(needed(&table), [7, 7]);
        table.rows = &[&1];
        table.sorted = 1;
        assert_eq!(needed(&table), [3, 7]);
    }
}
