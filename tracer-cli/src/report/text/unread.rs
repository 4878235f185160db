//! What cannot be read, and what is unknown because of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, Write},
};

use tracer_core::{foreign::Terminal, known::Total, tables::Table, words::Named};
use tracer_store::Damage;

/// Returns whether a total is unknown because of damage.
pub fn hides(total: Total, damage: &[Damage]) -> bool {
    Total::hidden_by(&tables(damage)).any(|hidden| hidden == total)
}

/// Writes each table with damage, and the totals that are unknown because of it; nothing without damage.
pub fn parts(out: &mut impl Write, damage: &[Damage]) -> io::Result<()> {
    let mut by_table: BTreeMap<Table, Vec<&Damage>> = BTreeMap::new();
    for damage in damage {
        by_table.entry(damage.table).or_default().push(damage);
    }
    for (table, parts) in &by_table {
        let more = match parts.len() {
            1 => String::new(),
            n => format!(", and {} more of its parts", n - 1),
        };
        let reason = Terminal(&parts[0].reason);
        writeln!(out, "damaged    table {}: {reason}{more}", table.name())?;
    }
    let hidden: Vec<String> = Total::hidden_by(&tables(damage))
        .map(|total| total.name().replace('-', " "))
        .collect();
    if !hidden.is_empty() {
        writeln!(out, "           unknown because of it: {}", hidden.join(", "))?;
    }
    Ok(())
}

fn tables(damage: &[Damage]) -> BTreeSet<Table> {
    damage.iter().map(|damage| damage.table).collect()
}
