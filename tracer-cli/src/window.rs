//! The part of a trace that `--from` and `--to` choose.

use std::time::Duration;

use tracer_export::Window;
use tracer_store::Manifest;

/// Returns the window between two times since the start of the recording.
pub fn of(manifest: &Manifest, from: Option<Duration>, to: Option<Duration>) -> Window {
    let zero = manifest.started.monotonic_ns;
    let ns = |time: Duration| zero.saturating_add(time.as_nanos() as u64);
    Window {
        from_ns: from.map(ns),
        to_ns: to.map(ns),
    }
}
