//! The tree of processes.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use ratatui::style::{Modifier, Style};
use tracer_core::live::{Picture, ProcessRow};
use tracer_core::units::{count, rate};

use crate::{
    cells::{UNKNOWN, known},
    rows::{self, Choice, greatest},
    table::{Column, columns},
};

/// A process and its depth in the tree.
pub struct Branch {
    row: ProcessRow,
    depth: usize,
}

/// The columns of this view: heading, width, rank, alignment; cell; order.
pub const COLUMNS: &[Column<Branch>] = columns! {
    "process" 0 0 left: |p, _| indented(p), in_tree;
    "pid" 7 0 right: |p, _| p.row.pid.to_string(), |a, b| a.row.pid.cmp(&b.row.pid);
    "queues" 6 2 right: |p, _| p.row.queues.to_string(), |a, b| b.row.queues.cmp(&a.row.queues);
    "disp/s" 7 1 right: |p, _| known(p.row.dispatches_per_s, rate),
        |a, b| greatest(a.row.dispatches_per_s, b.row.dispatches_per_s);
    "disp" 7 3 right: |p, _| known(p.row.dispatches, count), |a, b| b.row.dispatches.cmp(&a.row.dispatches);
    "db" 7 6 right: |p, _| known(p.row.doorbells, count), |a, b| b.row.doorbells.cmp(&a.row.doorbells);
    "copies" 7 4 right: |p, _| known(p.row.copies, count), |a, b| b.row.copies.cmp(&a.row.copies);
    "ioctls" 7 5 right: |p, _| known(p.row.ioctls, count), |a, b| b.row.ioctls.cmp(&a.row.ioctls);
};

/// Returns the name of a process, indented by its depth in the tree.
fn indented(process: &Branch) -> String {
    let name = process.row.comm.as_deref().unwrap_or(UNKNOWN);
    format!("{}{name}", "  ".repeat(process.depth.min(16)))
}

/// Keeps the order of the tree.
fn in_tree(_: &Branch, _: &Branch) -> Ordering {
    Ordering::Equal
}

/// Returns all processes, each after its parent.
pub fn tree(picture: &Picture) -> Vec<Branch> {
    let all = &picture.processes;
    let ids: HashSet<u32> = all.iter().map(|row| row.pid).collect();
    let branch = |row: &ProcessRow, depth| Branch {
        row: row.clone(),
        depth,
    };
    let mut children: HashMap<u32, Vec<&ProcessRow>> = HashMap::new();
    let mut stack: Vec<Branch> = Vec::new();
    for row in all.iter().rev() {
        match row.parent {
            Some(parent) if parent != row.pid && ids.contains(&parent) => children.entry(parent).or_default().push(row),
            _ => stack.push(branch(row, 0)),
        }
    }
    let mut branches = Vec::with_capacity(all.len());
    while let Some(parent) = stack.pop() {
        let rows = children.remove(&parent.row.pid).into_iter().flatten();
        stack.extend(rows.map(|row| branch(row, parent.depth + 1)));
        branches.push(parent);
    }
    // Processes whose parents are each other's children (process ids are reused) would otherwise be missing.
    branches.extend(children.into_values().flatten().map(|row| branch(row, 0)));
    branches
}

/// Returns the rows of a tree in their order.
pub fn sorted<'a>(choice: Choice<'_>, tree: &'a [Branch]) -> Vec<&'a Branch> {
    rows::of(tree, COLUMNS, choice, words)
}

/// Returns the style of a row. Processes that have exited are dimmed.
pub fn style(branch: &Branch) -> Style {
    if branch.row.ended {
        Style::new().add_modifier(Modifier::DIM)
    } else {
        Style::new()
    }
}

fn words(branch: &Branch) -> String {
    format!("{} {}", branch.row.pid, branch.row.comm.as_deref().unwrap_or_default())
}
