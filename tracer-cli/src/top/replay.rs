//! A stored trace, fact by fact, at any speed.

use std::{iter::Peekable, time::Instant};

use anyhow::bail;
use tracer_core::live::{Live, Picture, time_of};
use tracer_core::tables::Table;
use tracer_store::{Facts, StoreError, Trace};
use tracer_tui::{Action, Status};

use super::{blind, screen};
use crate::record::manifest;

/// The highest speed.
pub const FASTEST: u32 = 1 << 10;

/// A trace and the current position in it.
pub struct Replay {
    facts: Peekable<Facts>,
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
        for fact in trace.facts(&whole)?.skip_damaged() {
            live.apply(&fact?);
        }
        let events: Vec<Table> = Table::ALL.into_iter().filter(|table| !whole.contains(table)).collect();
        let mut facts = trace.facts(&events)?.skip_damaged().peekable();
        let began = facts.peek().and_then(|fact| fact.as_ref().ok()).and_then(time_of);
        let saved = trace.manifest();
        Ok(Self {
            facts,
            live,
            at_ns: began.unwrap_or(0),
            advanced: Instant::now(),
            last_ns: 0,
            status: Status {
                source: trace.dir().display().to_string(),
                simulated: saved.simulated.is_some(),
                blind: blind(&manifest::parse(&saved.capabilities)),
                ..Status::default()
            },
            speed: speed.clamp(1, FASTEST),
        })
    }

    /// Returns the picture at the end of the trace.
    pub fn end(&mut self) -> Result<Picture, StoreError> {
        while self.step(u64::MAX)? {}
        self.live.advance(self.last_ns);
        Ok(self.live.picture())
    }

    /// Takes the next fact if its time is not after `until_ns`. Returns whether there was one.
    fn step(&mut self, until_ns: u64) -> Result<bool, StoreError> {
        let due = |fact: &Result<_, _>| fact.as_ref().ok().and_then(time_of).is_none_or(|time| time <= until_ns);
        let Some(fact) = self.facts.next_if(due) else {
            return Ok(false);
        };
        let fact = fact?;
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
        if self.facts.peek().is_none() {
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
