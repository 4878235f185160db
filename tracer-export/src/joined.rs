//! Dispatches with their times of the GPU: the row of a time has the time of the doorbell, as that of its dispatch.

use std::collections::HashMap;

use tracer_core::tables::{Dispatch, Fact, GpuTime};

/// A row, or two that belong together.
#[derive(Debug)]
pub enum Joined {
    /// A dispatch, with its time of the GPU if there is one.
    Dispatch(Box<Dispatch>, Option<Box<GpuTime>>),
    /// A time whose dispatch has no row of its own: it is in a run.
    Alone(Box<GpuTime>),
    /// Any other row.
    Other(Box<Fact>),
}

/// Collects the rows of one time.
#[derive(Debug, Default)]
pub struct Group {
    facts: Vec<Fact>,
    time_ns: u64,
    last_ns: u64,
}

impl Group {
    /// Takes a row. Returns those of the time before it, if this is the first of its time.
    pub fn push(&mut self, fact: Fact) -> Vec<Joined> {
        let time_ns = fact.time_ns();
        self.last_ns = self.last_ns.max(time_ns);
        let before = if time_ns == self.time_ns {
            Vec::new()
        } else {
            self.take()
        };
        self.time_ns = time_ns;
        self.facts.push(fact);
        before
    }

    /// Returns the latest time of a row so far, ns.
    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Returns the rows of the last time.
    pub fn take(&mut self) -> Vec<Joined> {
        let mut times = HashMap::new();
        let mut others = Vec::with_capacity(self.facts.len());
        for fact in self.facts.drain(..) {
            match fact {
                Fact::GpuTime(time) => drop(times.insert((time.queue, time.index), Box::new(time))),
                fact => others.push(fact),
            }
        }
        let mut joined: Vec<Joined> = others
            .into_iter()
            .map(|fact| match fact {
                Fact::Dispatch(dispatch) => {
                    let time = times.remove(&(dispatch.queue, dispatch.index));
                    Joined::Dispatch(Box::new(dispatch), time)
                }
                fact => Joined::Other(Box::new(fact)),
            })
            .collect();
        let mut alone: Vec<_> = times.into_values().collect();
        alone.sort_by_key(|time| (time.queue, time.index));
        joined.extend(alone.into_iter().map(Joined::Alone));
        joined
    }
}
