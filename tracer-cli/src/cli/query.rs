//! Options of `tracer query`.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use tracer_core::tables::Table;
use tracer_query::TRACES;

/// Format of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueryFormat {
    /// A table for people
    Text,
    /// A JSON object per row
    Jsonl,
    /// Comma-separated values: a line of names, then the rows; null is an empty cell
    Csv,
    /// A Markdown table
    Markdown,
}

/// The tables whose columns `--schema` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Described {
    /// All of them, and table `traces`.
    All,
    /// One of them.
    One(Table),
}

impl FromStr for Described {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match (name, Table::of_name(name)) {
            ("all" | TRACES, _) => Ok(Self::All),
            (_, Some(table)) => Ok(Self::One(table)),
            _ => Err("there is no such table; `tracer query --schema` prints all tables".to_owned()),
        }
    }
}

/// `tracer query`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  tracer query app.trace 'select kernel, count(*) as n from dispatches group by kernel order by n desc'\n  \
                  tracer query 'traces/*.trace' 'select host, count(*) as jobs from ring_jobs where traced group by host'\n  \
                  tracer query --schema dispatches"
)]
pub struct Query {
    /// The trace, or a quoted pattern of several: 'traces/*.trace'
    #[arg(value_name = "TRACE", required_unless_present = "schema")]
    pub traces: Option<String>,
    /// The query; its tables are those of docs/events.md, and `traces`
    #[arg(value_name = "SQL", required_unless_present = "schema")]
    pub sql: Option<String>,
    /// Print the columns of a table, or of all tables, instead
    #[arg(long, value_name = "TABLE", num_args = 0..=1, default_missing_value = "all", conflicts_with_all = ["traces", "sql"])]
    pub schema: Option<Described>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: QueryFormat,
    /// Rows of a text or Markdown table
    #[arg(long, value_name = "ROWS", default_value = "1000", conflicts_with = "all")]
    pub top: usize,
    /// Print all rows
    #[arg(long)]
    pub all: bool,
    /// Print whole texts, however wide they are
    #[arg(long)]
    pub wide: bool,
}
