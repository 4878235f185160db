//! Reads completion signals.

use tracer_common::{
    queue::{SIGNAL_END, SIGNAL_START, SIGNAL_VALUE},
    record::{SignalState, Stamps},
};
use tracer_core::event::Signal;

use crate::sampler::memory::Scattered;

/// Reads signals of processes; `seen` receives those that are there. In each pair, the process comes before the handle.
pub fn read(memory: &mut Scattered, signals: &mut [(u32, u64)], mut seen: impl FnMut(Signal)) {
    signals.sort_unstable();
    // The GPU writes the value last.
    let places = |&(_, handle): &(u32, u64)| {
        [SIGNAL_VALUE, SIGNAL_START, SIGNAL_END].map(|offset| handle.wrapping_add(offset as u64))
    };
    memory.read_each(
        signals,
        |&(pid, _)| pid,
        places,
        |&(_, signal), read| {
            let Some(read) = read else { return };
            let [value, start, end] = read.words;
            seen(Signal {
                origin: read.origin,
                after_ns: read.after_ns,
                state: SignalState {
                    signal,
                    value: value.cast_signed(),
                    stamps: Stamps { start, end },
                },
            });
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_are_there_are_seen() {
        let signals: Vec<[u64; 8]> = (0..300).map(|k| [1, k, 0, 0, 2 * k, 3 * k, 0, 0]).collect();
        let own = |signal: &[u64; 8]| {
            let at = std::ptr::from_ref(signal).expose_provenance() as u64;
            (std::process::id(), at)
        };
        let mut asked: Vec<(u32, u64)> = signals.iter().map(own).collect();
        asked.push((std::process::id(), 8));
        asked.push((u32::MAX >> 1, 8));
        let mut seen = Vec::new();
        // SAFETY: the other thread of a test program only waits, and the C library's own locks survive a fork.
        let readers = unsafe { crate::confined::Readers::start() }.unwrap();
        read(&mut Scattered::new(readers), &mut asked, |signal| {
            assert!(signal.origin.time_ns <= signal.after_ns);
            seen.push((signal.origin.pid, signal.state));
        });
        let state = |(k, signal): (u64, &[u64; 8])| {
            let (pid, signal) = own(signal);
            let stamps = Stamps {
                start: 2 * k,
                end: 3 * k,
            };
            let value = k.cast_signed();
            (pid, SignalState { signal, value, stamps })
        };
        let expected: Vec<_> = (0..).zip(&signals).map(state).collect();
        assert_eq!(seen, expected);
    }
}
