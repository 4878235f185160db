//! What the rows of an answer do not show.

use tracer_core::capabilities::Capabilities;
use tracer_core::tables::Table;
use tracer_core::words::count;
use tracer_store::Damage;

use crate::origin::Origin;

/// Damaged parts that are named one by one.
const NAMED_PARTS: usize = 5;

/// The notes of one query.
#[derive(Debug)]
pub(crate) struct Notes {
    traces: u64,
    notes: Vec<String>,
    damaged: Vec<Damage>,
}

impl Notes {
    /// Starts the notes of a query that reads these tables.
    pub(crate) fn new(traces: &[Origin], used: &[Table]) -> Self {
        let mut notes = Self {
            traces: traces.len() as u64,
            notes: Vec::new(),
            damaged: Vec::new(),
        };
        let such = |is: &dyn Fn(&Origin) -> bool| traces.iter().filter(|origin| is(origin)).count() as u64;
        notes.say(such(&|origin| origin.trace.manifest().simulated.is_some()), |of| {
            format!("simulated: the GPUs of {of}; their rows are not from a real GPU")
        });
        notes.say(such(&|origin| origin.is_partial()), |of| {
            format!("not complete: {of}; the last row of a queue or process counts, and rows may be missing")
        });
        notes.say(such(&|origin| origin.lost().is_none_or(|lost| lost > 0)), |of| {
            format!("events were lost, or not counted as lost: {of} (`select trace, lost from traces`)")
        });
        for table in used {
            let Some(source) = Capabilities::source_of(*table) else {
                continue;
            };
            let blind = such(&|origin| !origin.watched(source));
            notes.say(blind, |of| {
                format!(
                    "{}: {source} not watched in {of}; no row means unknown there",
                    table.name()
                )
            });
        }
        for (runs, table) in [
            (Table::DispatchRuns, Table::Dispatches),
            (Table::DoorbellRuns, Table::Doorbells),
        ] {
            let of_runs = such(&|origin| origin.trace.rows(runs).is_ok_and(|rows| rows > 0));
            if used.contains(&table) && !used.contains(&runs) {
                notes.say(of_runs, |of| {
                    format!(
                        "{}: {of} has more in {}, combined: add the sum of its column count",
                        table.name(),
                        runs.name()
                    )
                });
            }
        }
        notes
    }

    /// Adds parts of a table that cannot be read.
    pub(crate) fn damaged(&mut self, damaged: Vec<Damage>) {
        self.damaged.extend(damaged);
    }

    /// Returns the notes.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let more = self.damaged.len().saturating_sub(NAMED_PARTS);
        let named = self.damaged.iter().take(NAMED_PARTS);
        self.notes.extend(named.map(|damage| format!("left out: {damage}")));
        if more > 0 {
            self.notes.push(format!("left out: {more} more"));
        }
        self.notes
    }

    /// Says something of a number of traces, unless it is 0.
    fn say(&mut self, number: u64, text: impl FnOnce(String) -> String) {
        if number > 0 {
            let of = if self.traces == 1 {
                "the trace".to_owned()
            } else {
                format!("{number} of {}", count(self.traces, "trace"))
            };
            self.notes.push(text(of));
        }
    }
}
