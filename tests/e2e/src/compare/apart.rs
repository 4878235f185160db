//! The comparison in parts, for programs of others: a difference in one part does not hide the other parts.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use super::{
    Compared, all_seen, consistent_calls, copies, doorbells, ioctls, names, no_losses, packets, queues, report, times,
};
use crate::scenario::Run;

/// What a part of the comparison found: how much it compared, or the first difference.
pub type Found = Result<usize, String>;

/// Compares everything that the device saw, each part for itself. Returns the parts by name.
///
/// The parts are those of [`super::device`] and [`super::all`].
#[must_use]
pub fn apart(run: &Run) -> Vec<(&'static str, Found)> {
    let mut compared = Compared::default();
    let mut parts = Vec::new();
    let mut part = |name, compare: &mut dyn FnMut(&mut Compared) -> usize| {
        parts.push((name, found(|| compare(&mut compared))));
    };
    part("losses", &mut |_| {
        no_losses(run);
        0
    });
    part("ioctls", &mut |_| ioctls(run));
    part("queues", &mut |compared| {
        compared.queues = queues(run).len();
        compared.queues
    });
    let aql = || queues(run).into_iter().filter(|(truth, _)| truth.is_aql());
    part("dispatches", &mut |compared| {
        aql().for_each(|(truth, queue)| packets(run, truth, queue, compared));
        compared.dispatches
    });
    part("doorbells", &mut |_| {
        aql().map(|(truth, queue)| doorbells(run, truth, queue)).sum()
    });
    part("times", &mut |_| {
        aql().map(|(truth, queue)| times::of_queue(run, truth, queue).0).sum()
    });
    part("copies", &mut |_| {
        let other = queues(run).into_iter().filter(|(truth, _)| !truth.is_aql());
        other.map(|(truth, queue)| copies::submissions(run, truth, queue)).sum()
    });
    part("names", &mut |_| names::of_device(run));
    part("calls", &mut |_| {
        consistent_calls(run);
        run.api_calls().count()
    });
    part("unseen", &mut |_| {
        all_seen(run);
        0
    });
    part("report", &mut |compared| {
        report(run, compared);
        0
    });
    parts
}

/// Runs a comparison that panics at the first difference.
///
/// # Errors
/// Returns that difference.
pub fn found(compare: impl FnOnce() -> usize) -> Found {
    quieten();
    COMPARING.set(true);
    let found = catch_unwind(AssertUnwindSafe(compare));
    COMPARING.set(false);
    found.map_err(|panic| message(&*panic))
}

thread_local! {
    /// Whether this thread is comparing: a difference is then a result, and not the failure of a test.
    static COMPARING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps panics while comparing out of the log, where they would look like failures.
fn quieten() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let report = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !COMPARING.get() {
                report(info);
            }
        }));
    });
}

/// Returns the message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or(panic.downcast_ref::<&str>().copied())
        .unwrap_or("a panic without a message")
        .to_owned()
}
