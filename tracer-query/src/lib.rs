//! SQL over the tables of one trace or many.
//!
//! Every table of [`tracer_core::tables`] is a table of the query, with the rows of all traces. Its columns are those of docs/events.md
//! and three more, which say where a row comes from: `trace`, `host` and `start`. Table `traces` has one row per trace.
//!
//! [`run`] plans the query lazily and runs it in polars' streaming engine: it reads only the columns and rows that the query needs,
//! and memory does not depend on the size of the traces, except where the query itself needs many rows at once (a sort, groups, a
//! join). The engine maps the parts, whose checksums were right before. If another process truncates a part during the query, the
//! process gets SIGBUS.

mod batch;
mod error;
mod guard;
mod notes;
mod origin;
mod tables;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;

use polars::prelude::{Engine, PlanCallback};
use polars::sql::{SQLContext, extract_table_identifiers};
use tracer_core::tables::Table;

pub use batch::{Batch, Cell};
pub use error::QueryError;
pub use origin::Origin;
pub use tables::{TRACES, origin_columns, traces_columns};

/// Rows of a batch, at most.
const BATCH_ROWS: NonZeroUsize = NonZeroUsize::new(8192).expect("not 0");

/// What a query returned beside its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What the rows do not show, in sentences: sources that were not watched, losses, damaged parts.
    pub notes: Vec<String>,
}

/// Runs a query, and passes its rows to `take` in batches, in the order of the answer. The first batch has the columns, if no
/// row, too. The query ends early if `take` returns false.
///
/// # Errors
/// If a table cannot be read, or the query is not valid SQL that polars can run.
pub fn run(traces: &[Origin], sql: &str, mut take: impl FnMut(&Batch) -> bool) -> Result<Outcome, QueryError> {
    let names = extract_table_identifiers(sql, false, true)?;
    let is = |name: &str, table: &str| name.eq_ignore_ascii_case(table);
    // The engine takes names of tables as they are written, SQL does not.
    let of = |name: &str| Table::ALL.into_iter().find(|table| is(name, table.name()));
    let used: BTreeMap<Table, Vec<&String>> = names.iter().fold(BTreeMap::new(), |mut used, name| {
        if let Some(table) = of(name) {
            used.entry(table).or_insert_with(Vec::new).push(name);
        }
        used
    });
    let mut notes = notes::Notes::new(traces, &used.keys().copied().collect::<Vec<_>>());
    let context = SQLContext::new();
    for name in names.iter().filter(|name| is(name, TRACES)) {
        context.register(name, tables::traces(traces)?);
    }
    for (table, names) in used {
        let (frame, damaged) = tables::frame(traces, table)?;
        notes.damaged(damaged);
        for name in names {
            context.register(name, frame.clone());
        }
    }
    answer(&context, sql, &mut take)?;
    Ok(Outcome { notes: notes.finish() })
}

/// Plans the query and passes its batches on.
fn answer(context: &SQLContext, sql: &str, take: &mut impl FnMut(&Batch) -> bool) -> Result<(), QueryError> {
    let mut plan = context.clone().execute(sql)?;
    let schema = plan.collect_schema()?;
    let mut go_on = take(&Batch::empty(&schema)?);
    let (sender, batches) = mpsc::sync_channel(1);
    // The engine ends the query once its receiver is gone.
    let send = PlanCallback::new(move |frame| Ok(sender.send(frame).is_err()));
    let plan = plan.sink_batches(send, true, Some(BATCH_ROWS))?;
    let run = move || guard::caught(|| plan.collect_with_engine(Engine::Streaming));
    let ran = thread::scope(|scope| {
        let engine = scope.spawn(run);
        while go_on && let Ok(frame) = batches.recv() {
            go_on = take(&Batch::of(frame));
        }
        drop(batches);
        engine.join()
    });
    let ended = ran.unwrap_or_else(|_| Err("a panic".to_owned()));
    ended.map_err(QueryError::GaveUp)??;
    Ok(())
}
