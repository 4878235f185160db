//! Which rows of a picture a view shows, and in which order.

use std::cmp::Ordering;

use tracer_core::live::Picture;

use crate::{
    state::{Top, View},
    table::Column,
    views::{ioctls, kernels, processes, queues, rings},
};

/// Returns the rows that match the filter, in the order of the view's column.
pub fn rows<'a, R>(all: &'a [R], columns: &[Column<R>], top: &Top, words: fn(&R) -> String) -> Vec<&'a R> {
    let filter = top.filter().to_lowercase();
    let mut rows: Vec<&R> = all
        .iter()
        .filter(|row| filter.is_empty() || words(row).to_lowercase().contains(&filter))
        .collect();
    let (sorted, reversed) = top.sorting();
    if let Some(column) = columns.get(sorted) {
        // The sort is stable: rows that are equal in the column stay in the picture's order.
        rows.sort_by(|a, b| {
            let order = (column.order)(a, b);
            if reversed { order.reverse() } else { order }
        });
    }
    rows
}

/// Orders greater numbers first and unknown values last.
pub fn greatest<T: PartialOrd + Copy>(a: Option<T>, b: Option<T>) -> Ordering {
    b.partial_cmp(&a).unwrap_or(Ordering::Equal)
}

/// Returns how many rows the view shows, and by how many columns it can be sorted.
pub fn extent(top: &Top, picture: &Picture) -> (usize, usize) {
    match top.view() {
        View::Queues => (queues::rows(top, picture).len(), queues::COLUMNS.len()),
        View::Kernels => (kernels::rows(top, picture).len(), kernels::COLUMNS.len()),
        View::Rings => (rings::rows(top, picture).len(), rings::COLUMNS.len()),
        View::Ioctls => (ioctls::rows(top, picture).len(), ioctls::COLUMNS.len()),
        View::Processes => (processes::count_rows(top, picture), processes::COLUMNS.len()),
        View::Queue => (top.queue(picture).map_or(0, |queue| queue.packets.len()), 0),
    }
}
