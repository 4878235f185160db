//! The tree of processes.

use std::collections::{HashMap, HashSet};

use ratatui::style::{Modifier, Style};
use tracer_core::live::{Picture, ProcessRow};

use crate::{
    picks::{self, greatest},
    state::Top,
    table::Column,
    units::{UNKNOWN, count, rate},
};

/// A process and its depth in the tree.
pub struct Branch {
    row: ProcessRow,
    depth: usize,
}

/// The columns of this view.
pub const COLUMNS: &[Column<Branch>] = &[
    Column {
        title: "process",
        width: 0,
        rank: 0,
        left: true,
        cell: |p, _| {
            format!(
                "{}{}",
                "  ".repeat(p.depth.min(16)),
                p.row.comm.as_deref().unwrap_or(UNKNOWN)
            )
        },
        // The order of the tree itself.
        order: |_, _| std::cmp::Ordering::Equal,
    },
    Column {
        title: "pid",
        width: 7,
        rank: 0,
        left: false,
        cell: |p, _| p.row.pid.to_string(),
        order: |a, b| a.row.pid.cmp(&b.row.pid),
    },
    Column {
        title: "queues",
        width: 6,
        rank: 2,
        left: false,
        cell: |p, _| p.row.queues.to_string(),
        order: |a, b| b.row.queues.cmp(&a.row.queues),
    },
    Column {
        title: "disp/s",
        width: 7,
        rank: 1,
        left: false,
        cell: |p, _| rate(p.row.dispatches_per_s),
        order: |a, b| greatest(Some(a.row.dispatches_per_s), Some(b.row.dispatches_per_s)),
    },
    Column {
        title: "disp",
        width: 7,
        rank: 3,
        left: false,
        cell: |p, _| count(p.row.dispatches),
        order: |a, b| b.row.dispatches.cmp(&a.row.dispatches),
    },
    Column {
        title: "db",
        width: 7,
        rank: 6,
        left: false,
        cell: |p, _| count(p.row.doorbells),
        order: |a, b| b.row.doorbells.cmp(&a.row.doorbells),
    },
    Column {
        title: "copies",
        width: 7,
        rank: 4,
        left: false,
        cell: |p, _| count(p.row.copies),
        order: |a, b| b.row.copies.cmp(&a.row.copies),
    },
    Column {
        title: "ioctls",
        width: 7,
        rank: 5,
        left: false,
        cell: |p, _| count(p.row.ioctls),
        order: |a, b| b.row.ioctls.cmp(&a.row.ioctls),
    },
];

/// Returns all processes, each after its parent.
pub fn tree(picture: &Picture) -> Vec<Branch> {
    let all = &picture.processes;
    let ids: HashSet<u32> = all.iter().map(|row| row.pid).collect();
    let mut children: HashMap<u32, Vec<&ProcessRow>> = HashMap::new();
    let mut stack: Vec<Branch> = Vec::new();
    for row in all.iter().rev() {
        match row.parent {
            Some(parent) if parent != row.pid && ids.contains(&parent) => children.entry(parent).or_default().push(row),
            _ => stack.push(Branch {
                row: row.clone(),
                depth: 0,
            }),
        }
    }
    let mut branches = Vec::with_capacity(all.len());
    while let Some(branch) = stack.pop() {
        for row in children.remove(&branch.row.pid).into_iter().flatten() {
            stack.push(Branch {
                row: row.clone(),
                depth: branch.depth + 1,
            });
        }
        branches.push(branch);
    }
    // Processes whose parents are each other's children (process ids are reused) would otherwise be missing.
    branches.extend(children.into_values().flatten().map(|row| Branch {
        row: row.clone(),
        depth: 0,
    }));
    branches
}

/// Returns the rows of a tree in their order.
pub fn sorted<'a>(top: &Top, tree: &'a [Branch]) -> Vec<&'a Branch> {
    picks::rows(tree, COLUMNS, top, words)
}

/// Returns the number of rows shown.
pub fn count_rows(top: &Top, picture: &Picture) -> usize {
    sorted(top, &tree(picture)).len()
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
