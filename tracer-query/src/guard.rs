//! Panics of the engine, which are failures of a query.
//!
//! The engine panics where it lacks a part of SQL, and where it decodes content that its checksum covers and that no writer wrote. Its
//! threads panic, too, so a hook keeps the message for the error and prints nothing.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

thread_local! {
    /// Whether this thread has called [`caught`].
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// The message of the first panic since the last call.
static MESSAGE: Mutex<Option<String>> = Mutex::new(None);

/// Runs a part of the engine. Returns the message if it panics.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    listen();
    message().take();
    GUARDED.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    GUARDED.set(false);
    outcome.map_err(|_| message().take().unwrap_or_else(|| "it says no reason".to_owned()))
}

/// Sets the hook, which passes panics of other code on.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let current = std::thread::current();
            let of_engine = GUARDED.get() || current.name().is_some_and(|name| name.contains("polars"));
            if of_engine {
                let text = info.payload_as_str().unwrap_or_default();
                message().get_or_insert_with(|| text.lines().next().unwrap_or_default().to_owned());
            } else {
                before(info);
            }
        }));
    });
}

fn message() -> MutexGuard<'static, Option<String>> {
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_message() {
        assert_eq!(caught(|| 7), Ok(7));
        let number = 1;
        assert_eq!(
            caught(|| assert!(number > 1, "no {number}\nmore")),
            Err("no 1".to_owned())
        );
        assert_eq!(caught(|| 8), Ok(8));
    }
}
