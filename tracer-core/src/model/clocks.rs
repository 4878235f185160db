//! The GPUs' clocks, and their conversion to the trace's clock.
//!
//! A runtime reads its GPU's clock (GET_CLOCK_COUNTERS) at its start, and whenever it needs times later than the last reading. The
//! shorter the call, the more precise is the reading. Two readings give the rate. Ticks between two readings can be converted;
//! ticks after the last reading wait for the next one.

use std::collections::BTreeMap;

use tracer_common::kfd;

use super::ioctls::{u32_at, u64_at};
use crate::event::Ioctl;
use crate::tables::{Fact, GpuTime};

/// Largest number of readings kept per GPU. Beyond it, every other reading is dropped.
const MAX_READINGS: usize = 1024;
/// Readings nearer to each other than this add no information about the rate.
const NEAR_NS: u64 = 100_000_000;
/// Largest number of times, over all GPUs, that wait for a reading.
const MAX_WAITING: usize = 65_536;
/// Largest number of clocks. There is a limit because the ids of GPUs come from the traced processes.
const MAX_CLOCKS: usize = 4096;
/// A clock with fewer ticks, more than this time after the last reading, was set anew: its GPU was reset, or the machine slept.
const RESET_NS: u64 = 1_000_000_000;
/// Largest change of the two clocks' rates relative to each other between two readings, in millionths. Crystals drift by some tens
/// with their temperature, and CLOCK_MONOTONIC is adjusted while it runs.
const DRIFT_PPM: u64 = 100;
/// Largest error with which a time is reported.
const WORST_NS: u64 = 1_000_000;

/// Every GPU's clock, as each process has read it. The readings of one process are not used for another.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    by_process: BTreeMap<(u32, u32), Clock>,
    waiting: usize,
}

#[derive(Debug, Default)]
struct Clock {
    /// Sorted by time.
    readings: Vec<Reading>,
    waiting: Vec<Stamped>,
}

/// A reading of a GPU's clock, at some time during a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    ticks: u64,
    enter_ns: u64,
    exit_ns: u64,
}

/// The time of a dispatch, and when it became known.
#[derive(Debug)]
pub(super) struct Stamped {
    pub(super) time: GpuTime,
    /// The dispatch had ended by this time.
    pub(super) seen_ns: u64,
}

impl Reading {
    /// Returns the middle of the call.
    fn ns(self) -> u64 {
        self.enter_ns + (self.exit_ns - self.enter_ns) / 2
    }

    /// Returns the largest error of [`Self::ns`].
    fn error_ns(self) -> u64 {
        (self.exit_ns - self.enter_ns).div_ceil(2)
    }
}

impl Clocks {
    /// Takes an ioctl on the KFD, which may be a reading.
    pub(super) fn ioctl(&mut self, event: &Ioctl<'_>, out: &mut impl FnMut(Fact)) {
        let Some((key, reading)) = reading(event).filter(|&(key, _)| self.has_room(key)) else {
            return;
        };
        let clock = self.by_process.entry(key).or_default();
        let before = clock.waiting.len();
        clock.read(reading, out);
        clock.report(false, out);
        self.waiting = self.waiting.saturating_sub(before - clock.waiting.len());
    }

    /// Notes that a process exited. It reads no clock any more.
    pub(super) fn end_process(&mut self, pid: u32, out: &mut impl FnMut(Fact)) {
        let of_process = (pid, 0)..=(pid, u32::MAX);
        for (_, mut clock) in self.by_process.extract_if(of_process, |_, _| true) {
            self.waiting = self.waiting.saturating_sub(clock.waiting.len());
            clock.report(true, out);
        }
    }

    /// Returns whether a clock is known, or can be added.
    fn has_room(&self, key: (u32, u32)) -> bool {
        self.by_process.len() < MAX_CLOCKS || self.by_process.contains_key(&key)
    }

    /// Reports the time of a dispatch as a fact, now or at the next reading.
    pub(super) fn date(&mut self, stamped: Stamped, out: &mut impl FnMut(Fact)) {
        let key = stamped.time.gpu_id.map(|gpu_id| (stamped.time.pid, gpu_id));
        let Some(key) = key.filter(|&key| self.has_room(key)) else {
            return out(Fact::GpuTime(stamped.time));
        };
        if self.waiting >= MAX_WAITING {
            self.finish(out);
        }
        let clock = self.by_process.entry(key).or_default();
        match clock.between(stamped.time.end_ticks) {
            Some(line) => report(stamped, Some(line), out),
            None => {
                clock.waiting.push(stamped);
                self.waiting += 1;
            }
        }
    }

    /// Reports the waiting times, because no more readings will come.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        for clock in self.by_process.values_mut() {
            clock.report(true, out);
        }
        self.waiting = 0;
    }
}

/// Returns the clock that an ioctl has read, and the reading; `None` if it has read none.
fn reading(event: &Ioctl<'_>) -> Option<((u32, u32), Reading)> {
    let is_reading = event.ret == Some(0) && kfd::ioc_nr(event.cmd) == kfd::NR_GET_CLOCK_COUNTERS;
    let arg = event.arg_out.filter(|_| is_reading)?;
    let gpu_id = u32_at(arg, kfd::clock_counters::GPU_ID)?;
    let reading = Reading {
        ticks: u64_at(arg, kfd::clock_counters::GPU_CLOCK)?,
        enter_ns: event.origin.time_ns,
        exit_ns: event.exit_ns,
    };
    // A node without a GPU has no clock and reports 0.
    let is_valid = reading.ticks != 0 && reading.exit_ns >= reading.enter_ns;
    is_valid.then_some(((event.origin.pid, gpu_id), reading))
}

impl Clock {
    fn read(&mut self, reading: Reading, out: &mut impl FnMut(Fact)) {
        let Some(&last) = self.readings.last() else {
            return self.readings.push(reading);
        };
        if reading.ticks <= last.ticks && reading.enter_ns > last.exit_ns.saturating_add(RESET_NS) {
            // The earlier readings do not apply to the clock after the reset.
            self.report(true, out);
            self.readings.clear();
            return self.readings.push(reading);
        }
        // One of two threads may have read the clock first, and its event may arrive later.
        if reading.ticks <= last.ticks || reading.ns() <= last.ns() {
            return;
        }
        if let [.., before, last] = &mut self.readings[..]
            && last.ns() - before.ns() < NEAR_NS
        {
            *last = reading;
            return;
        }
        if self.readings.len() >= MAX_READINGS {
            let mut at = 0_usize;
            self.readings.retain(|_| {
                at += 1;
                at % 2 == 1
            });
        }
        self.readings.push(reading);
    }

    /// Returns the readings around a tick; `None` if there is none after it yet.
    fn between(&self, ticks: u64) -> Option<Line> {
        let after = self.readings.partition_point(|reading| reading.ticks < ticks);
        let second = after.max(1);
        let (a, b) = (*self.readings.get(second - 1)?, *self.readings.get(second)?);
        Some(Line { a, b })
    }

    /// Returns the last two readings.
    fn last(&self) -> Option<Line> {
        match self.readings[..] {
            [.., a, b] => Some(Line { a, b }),
            _ => None,
        }
    }

    /// Reports the times that need no further reading; all of them at the `end`.
    fn report(&mut self, end: bool, out: &mut impl FnMut(Fact)) {
        for stamped in std::mem::take(&mut self.waiting) {
            match self.between(stamped.time.end_ticks) {
                Some(line) => report(stamped, Some(line), out),
                None if end => report(stamped, self.last(), out),
                None => self.waiting.push(stamped),
            }
        }
    }
}

/// Two readings, which give the rate.
#[derive(Clone, Copy, Debug)]
struct Line {
    a: Reading,
    b: Reading,
}

impl Line {
    /// Converts a tick to the trace's clock; `None` if the result is not a valid time.
    fn ns(self, ticks: u64) -> Option<u64> {
        let span_ticks = i128::from(self.b.ticks) - i128::from(self.a.ticks);
        let span_ns = i128::from(self.b.ns()) - i128::from(self.a.ns());
        let since = i128::from(ticks) - i128::from(self.a.ticks);
        let ns = i128::from(self.a.ns()) + since.checked_mul(span_ns)?.checked_div(span_ticks)?;
        u64::try_from(ns).ok()
    }

    /// Returns the largest error of the conversion: the error of the readings, plus the possible change of the rate since the
    /// nearer reading, plus, outside of the readings, an error that grows with the distance.
    fn error_ns(self, ticks: u64) -> u64 {
        let (a, b) = (self.a.error_ns(), self.b.error_ns());
        let away = ticks
            .saturating_sub(self.b.ticks)
            .max(self.a.ticks.saturating_sub(ticks));
        let span = u128::from(self.b.ticks.saturating_sub(self.a.ticks).max(1));
        let more = u128::from(a + b) * u128::from(away) / span;
        let from_a = ticks.abs_diff(self.a.ticks);
        let nearest = u128::from(from_a.min(ticks.abs_diff(self.b.ticks)));
        let span_ns = u128::from(self.b.ns().saturating_sub(self.a.ns()));
        let drift = (nearest.saturating_mul(span_ns) / span).saturating_mul(DRIFT_PPM.into()) / 1_000_000;
        // Only the start of a tick is known.
        let tick = span_ns / span + 1;
        let errors = [more, drift, a.max(b).into(), tick];
        let error = errors.into_iter().fold(0, u128::saturating_add);
        u64::try_from(error).unwrap_or(u64::MAX)
    }
}

/// Reports the fact, with times from two readings if they are precise enough. Reports nothing if the times show that the stamps do
/// not belong to this dispatch: they start before it was published, or after it was known to have ended.
fn report(stamped: Stamped, line: Option<Line>, out: &mut impl FnMut(Fact)) {
    let Stamped { mut time, seen_ns } = stamped;
    let dated = line.and_then(|line| {
        let error = line.error_ns(time.start_ticks).max(line.error_ns(time.end_ticks));
        let dated = (line.ns(time.start_ticks)?, line.ns(time.end_ticks)?, error);
        (error <= WORST_NS).then_some(dated)
    });
    if let Some((start, end, error)) = dated {
        if start.saturating_add(error) < time.time_ns || start > seen_ns.saturating_add(error) {
            return;
        }
        (time.start_ns, time.end_ns, time.clock_error_ns) = (Some(start), Some(end), Some(error));
    }
    out(Fact::GpuTime(time));
}

#[cfg(test)]
mod tests;
