//! The part of a recording that a report is about.

use std::time::Duration;

use anyhow::bail;
use regex::Regex;
use schemars::JsonSchema;
use serde::Serialize;
use tracer_core::{
    foreign::Terminal,
    tables::{Fact, Table},
    units::duration,
};
use tracer_export::Window;
use tracer_store::Manifest;

use super::text::By;
use crate::{cli::Report, window};

/// The part of a recording whose rows are counted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Selection {
    /// The process.
    pid: Option<u32>,
    /// A regular expression that names of kernels match.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "Option<String>")]
    kernel: Option<Regex>,
    /// The begin, ns since the start of the recording.
    from_ns: Option<u64>,
    /// The end, ns since the start of the recording.
    to_ns: Option<u64>,
    #[serde(skip)]
    window: Window,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn as_text<S: serde::Serializer>(regex: &Option<Regex>, to: S) -> Result<S::Ok, S::Error> {
    regex.as_ref().map(Regex::as_str).serialize(to)
}

impl Selection {
    /// Returns the part that the user chose; `None` for the whole recording.
    ///
    /// # Errors
    /// If the requested table has no rows of a part.
    pub fn of(options: &Report, manifest: &Manifest) -> anyhow::Result<Option<Self>> {
        let Report {
            pid, kernel, from, to, ..
        } = options;
        if (pid, from, to) == (&None, &None, &None) && kernel.is_none() {
            return Ok(None);
        }
        let ns = |time: &Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let chosen = Self {
            pid: *pid,
            kernel: kernel.clone(),
            from_ns: from.as_ref().map(ns),
            to_ns: to.as_ref().map(ns),
            window: window::of(manifest, *from, *to),
        };
        match options.by {
            Some(by) if !chosen.tables().contains(&by) => bail!(
                "--by {} counts the whole recording only; leave out --pid, --kernel, --from and --to, or use `tracer query`",
                clap::ValueEnum::to_possible_value(&by).map_or_else(String::new, |value| value.get_name().to_owned())
            ),
            _ => Ok(Some(chosen)),
        }
    }

    /// Returns the tables that have rows of a part, what matters most first.
    pub fn tables(&self) -> &'static [By] {
        match self.kernel {
            // A call has several kernels, or none.
            Some(_) => &[By::Kernel, By::Dispatch],
            None => &[
                By::Kernel,
                By::Layer,
                By::Step,
                By::Copy,
                By::Finding,
                By::Api,
                By::Nesting,
                By::Dispatch,
            ],
        }
    }

    /// Returns whether a row is in the part. What exists, such as a code object, is in each part of its process.
    pub fn has(&self, fact: &Fact) -> bool {
        let table = Table::of(fact);
        let in_time = match table {
            _ if (self.from_ns, self.to_ns) == (None, None) => true,
            // Calls that were only counted have no times.
            Table::ApiStats => false,
            Table::Kernels => true,
            table => table.is_snapshot() || self.window.has(fact.time_ns()),
        };
        // A loss may have been of any process.
        let is_of_process = matches!(fact, Fact::Loss(_)) || self.pid.is_none_or(|pid| fact.pid() == Some(pid));
        in_time && is_of_process && self.is_of_kernel(fact)
    }

    /// Returns whether only some kernels are counted.
    pub fn is_of_kernels(&self) -> bool {
        self.kernel.is_some()
    }

    /// Returns the times of the part, CLOCK_MONOTONIC ns; `None` where it has no limit.
    pub fn window(&self) -> Window {
        self.window
    }

    fn is_of_kernel(&self, fact: &Fact) -> bool {
        let Some(regex) = &self.kernel else { return true };
        let name = match fact {
            Fact::Dispatch(dispatch) => &dispatch.kernel,
            Fact::DispatchRun(run) => &run.kernel,
            Fact::GpuTime(time) => &time.kernel,
            _ => return true,
        };
        name.as_ref().is_some_and(|name| regex.is_match(name))
    }

    /// Returns the length of the part, ns, of a recording of this length.
    pub fn wall_ns(&self, whole: Option<u64>) -> Option<u64> {
        let end = match (self.to_ns, whole) {
            (Some(to), Some(whole)) => to.min(whole),
            (to, whole) => to.or(whole)?,
        };
        Some(end.saturating_sub(self.from_ns.unwrap_or(0)))
    }

    /// Returns what the part is, for people.
    pub fn text(&self) -> String {
        let time = match (self.from_ns, self.to_ns) {
            (None, None) => None,
            (Some(from), None) => Some(format!("from {} on", duration(from))),
            (from, Some(to)) => Some(format!("from {} to {}", duration(from.unwrap_or(0)), duration(to))),
        };
        let parts = [
            self.pid.map(|pid| format!("process {pid}")),
            self.kernel
                .as_ref()
                .map(|regex| format!("kernels that match {}", Terminal(regex.as_str()))),
            time,
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}
