//! Work that the kernel does on several processors at once, such as the check of programs.

use std::{
    sync::{Mutex, PoisonError},
    thread,
};

/// Calls `each` with every item, on as many threads as there are processors, of which this thread is one. Where no other thread can
/// be created, this one does all. Returns the results in any order.
pub fn on_processors<T: Send, R: Send>(items: impl IntoIterator<Item = T>, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    let items: Vec<T> = items.into_iter().collect();
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let others = processors.min(items.len()).saturating_sub(1);
    let (left, done) = (Mutex::new(items), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(item) = next else { return };
            let result = each(item);
            done.lock().unwrap_or_else(PoisonError::into_inner).push(result);
        }
    };
    thread::scope(|scope| {
        for _ in 0..others {
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Calls both, `other` on a thread of its own; where no other thread can be created, one after the other on this one.
pub fn both<A: Send, B>(other: impl FnOnce() -> A + Send, own: impl FnOnce() -> B) -> (A, B) {
    let waiting = Mutex::new(Some(other));
    let take = || {
        let other = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        other.map(|other| other())
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().spawn_scoped(scope, take).ok();
        let own = own();
        let there = thread.and_then(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        (there.or_else(take).expect("nobody else has taken it"), own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_results_are_returned() {
        let here = thread::current().id();
        let (there, own) = both(|| thread::current().id(), || 7);
        assert!(there != here && own == 7);
    }

    #[test]
    fn each_item_is_taken_once() {
        let mut squares = on_processors(0..100_u64, |n| n * n);
        squares.sort_unstable();
        assert_eq!(squares, (0..100).map(|n| n * n).collect::<Vec<_>>());
        assert!(on_processors([(); 0], |()| ()).is_empty());
    }
}
