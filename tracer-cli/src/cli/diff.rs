//! Options of `tracer diff`.

use clap::{Args, ValueEnum};
use tracer_core::diff::{Table, Threshold};

/// Format of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffFormat {
    /// Text for people
    Text,
    /// JSON (stable schema: docs/diff.schema.json)
    Json,
    /// Markdown with whole names
    Markdown,
}

/// The table that `--by` chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiffBy {
    /// Totals
    Total,
    /// Kernels, by name
    Kernel,
    /// Submissions, by path
    Path,
    /// User queues, by role
    Queue,
    /// API functions
    Api,
    /// Ioctls
    Ioctl,
    /// Layers of time: API classes and ioctls
    Layer,
    /// Copies, by direction
    Copy,
}

impl From<DiffBy> for Table {
    fn from(by: DiffBy) -> Self {
        match by {
            DiffBy::Total => Self::Total,
            DiffBy::Kernel => Self::Kernel,
            DiffBy::Path => Self::Path,
            DiffBy::Queue => Self::Queue,
            DiffBy::Api => Self::Api,
            DiffBy::Ioctl => Self::Ioctl,
            DiffBy::Layer => Self::Layer,
            DiffBy::Copy => Self::Copy,
        }
    }
}

/// `tracer diff`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 no threshold is exceeded (always, without --fail-on), 1 a threshold is exceeded, 2 usage error, \
    3 inconclusive: a figure of a threshold is unknown, a trace is not whole, or there are too few runs to tell a change from chance. \
    125 if tracer itself fails.\n\n\
    docs/diff.md lists the figures, and describes the test.\n\n\
    Examples:\n  tracer diff before.trace after.trace\n  \
    tracer diff --by kernel --format json before.trace after.trace\n  \
    tracer diff --runs 'before/*.trace' 'after/*.trace'\n  \
    tracer diff --fail-on 'dispatches>+0' --fail-on 'ioctls>+5%' before.trace after.trace\n  \
    tracer diff --runs --fail-on 'kernel:*:launch.p50>+10%' 'before/*.trace' 'after/*.trace'"
)]
pub struct Diff {
    /// The trace before the change; with --runs, a quoted pattern of several: 'before/*.trace'
    #[arg(value_name = "BEFORE")]
    pub before: String,
    /// The trace after the change; with --runs, a quoted pattern of several
    #[arg(value_name = "AFTER")]
    pub after: String,
    /// Compare repeated runs: BEFORE and AFTER are patterns, and a rank test says which figures differ
    #[arg(long)]
    pub runs: bool,
    /// Highest corrected p-value of a significant difference
    #[arg(long, value_name = "P", default_value = "0.05", value_parser = alpha)]
    pub alpha: f64,
    /// Fail if a figure changes by more: FIGURE>+LIMIT or FIGURE<-LIMIT; repeatable
    ///
    /// FIGURE is a total (dispatches, launch.p50) or TABLE:ROW:FIGURE, where ROW can be * for every row
    /// (kernel:saxpy:dispatches, ioctl:*:calls). LIMIT is a share (10%), or an amount (3, 2us, 4KiB).
    #[arg(long, value_name = "THRESHOLD")]
    pub fail_on: Vec<Threshold>,
    /// Print one kind of table
    #[arg(long, value_enum)]
    pub by: Option<DiffBy>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiffFormat,
    /// Rows of each table
    #[arg(long, value_name = "ROWS", default_value = "10", conflicts_with = "all")]
    pub top: usize,
    /// Print all rows, also those that do not differ
    #[arg(long)]
    pub all: bool,
    /// Print all figures of a row, all columns and whole names, however wide they are
    #[arg(long)]
    pub wide: bool,
}

fn alpha(text: &str) -> Result<f64, String> {
    let p: f64 = text.parse().map_err(|_| format!("{text} is not a number"))?;
    let is_probability = p > 0.0 && p < 1.0;
    is_probability
        .then_some(p)
        .ok_or_else(|| format!("{text} is not between 0 and 1"))
}
