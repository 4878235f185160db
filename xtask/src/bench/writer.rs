//! How many rows a second reach the disk.

use std::process::Command;

use anyhow::Result;

use super::{Place, median, number};
use crate::cmd;

/// Rounds; the median counts.
const ROUNDS: usize = 3;
/// Dispatches of a round; each is two rows.
const DISPATCHES: u64 = 1_000_000;

/// Rows a second, from the first that is pushed until all are on disk, while they are pushed as fast as one thread can.
/// Those that the writer did not take in time don't count.
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
