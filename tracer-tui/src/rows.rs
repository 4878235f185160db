//! Which rows of a picture a view shows, and in which order.

use std::cmp::Ordering;

use crate::table::Column;

/// The rows that the user chose.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The text that rows must contain.
    pub filter: &'a str,
    /// Index of the sort column.
    pub sorted: usize,
    /// Whether the order is reversed.
    pub reversed: bool,
}

/// Returns the rows that match the filter, in the order of the view's column.
pub fn of<'a, R>(all: &'a [R], columns: &[Column<R>], choice: Choice<'_>, words: fn(&R) -> String) -> Vec<&'a R> {
    let filter = choice.filter.to_lowercase();
    let mut rows: Vec<&R> = all
        .iter()
        .filter(|row| filter.is_empty() || words(row).to_lowercase().contains(&filter))
        .collect();
    if let Some(column) = columns.get(choice.sorted) {
        // The sort is stable: rows that are equal in the column stay in the picture's order.
        rows.sort_by(|a, b| {
            let order = (column.order)(a, b);
            if choice.reversed { order.reverse() } else { order }
        });
    }
    rows
}

/// Orders greater numbers first and unknown values last.
pub fn greatest<T: PartialOrd + Copy>(a: Option<T>, b: Option<T>) -> Ordering {
    b.partial_cmp(&a).unwrap_or(Ordering::Equal)
}
