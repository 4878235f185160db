//! A stored trace, fact by fact, at any speed.

use std::time::Instant;

use anyhow::bail;
use tracer_core::live::{Capture, Live, Picture, time_of};
use tracer_core::tables::{Fact, Table};
use tracer_store::{Facts, StoreError, Trace};
use tracer_tui::{Action, Status};

use super::{blind, screen};
use crate::record::manifest;

/// The highest speed.
pub const FASTEST: u32 = 1 << 10;

/// A trace and the current position in it.
pub struct Replay {
    facts: Facts,
    /// The next fact; `None` at the end.
    next: Option<Fact>,
    /// Number of damaged parts that were noted.
    damaged: usize,
    /// What cannot be read.
    pub warnings: Vec<String>,
    live: Live,
    /// The position of the clock in the trace when it was last read, and the time of that reading.
    at_ns: u64,
    advanced: Instant,
    /// The time of the last fact.
    last_ns: u64,
    status: Status,
    speed: u32,
}

impl Replay {
    /// Opens the trace, positioned before the first fact.
    pub fn open(trace: &Trace, speed: u32) -> anyhow::Result<Self> {
        let mut live = Live::new();
        live.set_gpus(manifest::gpus(&trace.manifest().devices));
        // The facts on queues and processes come at the ends of their lives. Here they are known from the beginning.
        let whole = [Table::Queues, Table::Processes];
        let mut things = trace.facts(&whole)?.skip_damaged();
        let saved = trace.manifest();
        let watched = manifest::parse(&saved.capabilities);
        live.set_capture(Capture {
            watched,
            simulated: saved.simulated.clone(),
            complete: saved.complete,
            interrupted: !saved.complete,
            ..Capture::default()
        });
        for fact in &mut things {
            live.apply(&fact?);
        }
        for damage in things.damaged() {
            live.lacks(damage.table);
        }
        let events: Vec<Table> = Table::ALL.into_iter().filter(|table| !whole.contains(table)).collect();
        let mut replay = Self {
            facts: trace.facts(&events)?.skip_damaged(),
            next: None,
            damaged: 0,
            warnings: things.damaged().iter().map(ToString::to_string).collect(),
            live,
            at_ns: 0,
            advanced: Instant::now(),
            last_ns: 0,
            status: Status {
                source: trace.dir().display().to_string(),
                blind: blind(&watched),
                ..Status::default()
            },
            speed: speed.clamp(1, FASTEST),
        };
        replay.advance()?;
        // A trace may begin with facts that have no time, such as the kernels of code objects.
        while let Some(fact) = replay.next.take_if(|fact| time_of(fact).is_none()) {
            replay.live.apply(&fact);
            replay.advance()?;
        }
        replay.at_ns = replay.next.as_ref().and_then(time_of).unwrap_or(0);
        Ok(replay)
    }

    /// Reads the next fact. Notes the parts that turn out to be damaged: what they contribute to is unknown.
    fn advance(&mut self) -> Result<(), StoreError> {
        self.next = self.facts.next().transpose()?;
        for damage in self.facts.damaged().iter().skip(self.damaged) {
            self.status.message = Some(damage.to_string());
            self.warnings.push(damage.to_string());
            self.live.lacks(damage.table);
        }
        self.damaged = self.facts.damaged().len();
        Ok(())
    }

    /// Returns the picture at the end of the trace.
    pub fn end(&mut self) -> Result<Picture, StoreError> {
        while self.step(u64::MAX)? {}
        self.live.advance(self.last_ns);
        Ok(self.live.picture())
    }

    /// Takes the next fact if its time is not after `until_ns`. Returns whether there was one.
    fn step(&mut self, until_ns: u64) -> Result<bool, StoreError> {
        let due = |fact: &mut Fact| time_of(fact).is_none_or(|time| time <= until_ns);
        let Some(fact) = self.next.take_if(due) else {
            return Ok(false);
        };
        self.advance()?;
        self.last_ns = self.last_ns.max(time_of(&fact).unwrap_or(0));
        self.live.apply(&fact);
        Ok(true)
    }

    /// Advances the clock of the trace.
    fn pass(&mut self) -> Result<(), StoreError> {
        let passed = u64::try_from(self.advanced.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.advanced = Instant::now();
        self.at_ns = self.at_ns.saturating_add(passed.saturating_mul(self.speed.into()));
        while self.step(self.at_ns)? {}
        if self.next.is_none() {
            self.status.ended = true;
            self.at_ns = self.at_ns.min(self.last_ns);
        }
        self.live.advance(self.at_ns);
        Ok(())
    }
}

impl screen::Source for Replay {
    fn picture(&mut self) -> Option<Picture> {
        if self.status.ended {
            return None;
        }
        if let Err(error) = self.pass() {
            // What was read before the error stays on the screen.
            self.status.message = Some(error.to_string());
            self.status.ended = true;
        }
        Some(self.live.picture())
    }

    fn status(&mut self, shown: &mut Status) {
        let message = shown.message.take();
        shown.clone_from(&self.status);
        shown.speed = Some(self.speed);
        if shown.message.is_none() {
            shown.message = message;
        }
    }

    fn act(&mut self, action: Action) -> anyhow::Result<Option<String>> {
        match action {
            Action::Speed(step) if step > 0 => self.speed = (self.speed * 2).min(FASTEST),
            Action::Speed(_) => self.speed = (self.speed / 2).max(1),
            Action::Record => bail!("cannot record while replaying a trace"),
            Action::Quit => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use tracer_core::{sample, tables::Fact};
    use tracer_store::{Manifest, TraceWriter, manifest::Target};

    use super::*;

    #[test]
    fn the_clock_starts_at_the_first_fact_with_a_time() {
        const DAY: u64 = 86_400_000_000_000;
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("t.trace");
        let mut writer = TraceWriter::create(&dir, manifest::begin(Target::System), false).unwrap();
        writer.push(&Fact::Kernel(sample::kernel(0)));
        (0..10).for_each(|index| writer.push(&Fact::Dispatch(sample::dispatch(index, DAY + index))));
        writer.finish(|_: &mut Manifest| {}).unwrap();
        let mut replay = Replay::open(&Trace::open(&dir).unwrap(), 1).unwrap();
        assert_eq!(replay.at_ns, DAY);
        replay.pass().unwrap();
        assert_eq!(
            replay
                .live
                .picture()
                .kernels
                .iter()
                .map(|kernel| kernel.count)
                .sum::<u64>(),
            10
        );
    }
}
