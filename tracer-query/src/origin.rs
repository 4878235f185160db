//! Where rows come from.

use tracer_store::manifest::{Target, rfc3339};
use tracer_store::{State, Trace};

/// A trace to query.
#[derive(Clone, Debug)]
pub struct Origin {
    /// The value of column `trace`: the path as the user gave it.
    pub name: String,
    /// The trace.
    pub trace: Trace,
}

impl Origin {
    /// Returns the name of the machine that the trace was taken on; `None` if it was imported from a text that does not name it.
    pub(crate) fn host(&self) -> Option<String> {
        named(&self.trace.manifest().host.name)
    }

    /// Returns the release of the machine's kernel; `None` in the same case.
    pub(crate) fn kernel(&self) -> Option<String> {
        named(&self.trace.manifest().host.kernel_release)
    }

    /// Returns when the recording started: RFC 3339, UTC; `None` in the same case.
    pub(crate) fn start(&self) -> Option<String> {
        let realtime_ns = self.trace.manifest().started.realtime_ns;
        (realtime_ns != 0).then(|| rfc3339(realtime_ns))
    }

    /// Returns the recorded command; `None` if tracer attached to processes.
    pub(crate) fn command(&self) -> Option<String> {
        match &self.trace.manifest().target {
            Target::Command { argv } => Some(argv.join(" ")),
            _ => None,
        }
    }

    /// Returns the number of events that the trace counts as lost; `None` if its recorder did not finish.
    pub(crate) fn lost(&self) -> Option<u64> {
        let manifest = self.trace.manifest();
        let counts = manifest.losses.values();
        let total = counts.fold(0, |sum: u64, count| sum.saturating_add(*count));
        manifest.complete.then_some(total)
    }

    /// Returns whether the trace is still being recorded, or its recorder was killed.
    pub(crate) fn is_partial(&self) -> bool {
        self.trace.state() != State::Complete
    }

    /// Returns whether the recording watched a source.
    pub(crate) fn watched(&self, source: &str) -> bool {
        self.trace
            .manifest()
            .capabilities
            .iter()
            .any(|watched| watched == source)
    }
}

fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
