//! Options of `tracer path`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

/// Format of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathFormat {
    /// Text for people
    Text,
    /// JSON
    Json,
}

/// A packet: a queue of the trace, and an index in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the queue in the trace.
    pub queue: u32,
    /// Index of the packet in its queue.
    pub index: u64,
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once(':').and_then(|(queue, index)| {
            let (queue, index) = (queue.parse().ok()?, index.parse().ok()?);
            Some(Self { queue, index })
        });
        numbers.ok_or_else(|| format!("{text} is not QUEUE:INDEX; write 3:421"))
    }
}

/// `tracer path`
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tracer path app.trace 3:421\n  tracer path app.trace --kernel saxpy --nth 2")]
pub struct Path {
    /// The trace
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,
    /// The packet: number of its queue in the trace, and its index there
    #[arg(
        value_name = "QUEUE:INDEX",
        required_unless_present = "kernel",
        conflicts_with = "kernel"
    )]
    pub place: Option<Place>,
    /// A dispatch of a kernel with this text in its name instead
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Which of these dispatches, from 1, in the order of their doorbells
    #[arg(long, value_name = "N", default_value = "1", requires = "kernel", value_parser = clap::value_parser!(u64).range(1..))]
    pub nth: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: PathFormat,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_two_numbers() {
        assert_eq!("3:421".parse(), Ok(Place { queue: 3, index: 421 }));
        for wrong in ["", "3", "3:", ":1", "3:-1", "a:b", "3:421:1", "4294967296:0"] {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }
}
