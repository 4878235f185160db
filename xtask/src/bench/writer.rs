//! How many rows per second reach the disk.

use std::process::Command;

use anyhow::Result;

use super::{Place, median, number};
use crate::cmd;

/// Rounds. The median counts.
const ROUNDS: usize = 3;
/// Dispatches in a round; each is two rows.
const DISPATCHES: u64 = 1_000_000;

/// Returns the rows per second, from the first row that is pushed until all are on disk, while one thread pushes them as fast as it
/// can. Rows that the writer did not take in time don't count.
pub fn rate(place: &Place<'_>) -> Result<f64> {
    let mut rates = Vec::new();
    for round in 0..ROUNDS {
        let mut program = Command::new(place.programs.join("writer-rate"));
        program
            .arg(DISPATCHES.to_string())
            .arg(place.dir.join(format!("{round}.trace")));
        let printed = cmd::read(&mut program)?;
        let (rows, ns) = (number(&printed, "rows")?, number(&printed, "written_ns")?);
        eprintln!(
            "    {rows:.0} rows in {ns:.0} ns, {:.0} dropped",
            number(&printed, "dropped")?
        );
        rates.push(rows / ns * 1e9);
    }
    median(rates)
}
