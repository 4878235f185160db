//! The records of the buffers, with what their events mean.

use std::{os::fd::OwnedFd, sync::Arc};

use tracer_core::{event::Origin, losses::PERF_RING};

use super::{
    buffers::{Buffers, write_losses},
    probes::Probes,
    record::{PerfRecord, call, raw, registers},
};
use crate::{
    samples::{Input, Lost, Place, Program, Record},
    sys,
};

/// The records of perf events.
pub struct PerfInput {
    buffers: Buffers,
    /// The processors that were online when this was last looked at.
    processors: Vec<u32>,
    probes: Arc<Probes>,
    lost: u64,
    _events: Vec<OwnedFd>,
}

impl PerfInput {
    /// Takes the buffers of these processors, and the events that write there from the beginning.
    pub fn new(buffers: Buffers, processors: Vec<u32>, probes: Arc<Probes>, events: Vec<OwnedFd>) -> Self {
        Self {
            buffers,
            processors,
            probes,
            lost: 0,
            _events: events,
        }
    }
}

impl Input for PerfInput {
    fn look(&mut self) {
        self.buffers.look();
    }

    fn list(&mut self, until_ns: u64) {
        self.buffers.list(until_ns);
    }

    fn each(&mut self, take: &mut dyn FnMut(Origin, Record<'_>)) {
        let places = self.probes.places.get();
        let (buffers, lost) = (&mut self.buffers, &mut self.lost);
        buffers.each(|origin, record| match record {
            PerfRecord::Lost(count) => *lost = lost.saturating_add(count),
            PerfRecord::Sample(number, body) => {
                if let Some(place) = places.get(&number) {
                    take(origin, sample(*place, body).unwrap_or(Record::Unknown));
                }
            }
            PerfRecord::Other(record) => take(origin, record),
        });
    }

    fn release(&mut self) {
        self.buffers.release();
    }

    fn settle(&mut self) {
        write_losses();
    }

    fn take_lost(&mut self) -> Lost {
        // A processor that came later has no buffer, and what happens there is not seen.
        if let Ok(online) = sys::online_processors()
            && online.iter().any(|processor| !self.processors.contains(processor))
        {
            self.processors = online;
            self.lost += 1;
        }
        Lost {
            source: PERF_RING,
            dropped: std::mem::take(&mut self.lost),
            undecoded: std::mem::take(&mut self.buffers.undecoded),
        }
    }
}

/// Returns the record in the body of a sample; `None` if it is not understood.
fn sample(place: Place, body: &[u8]) -> Option<Record<'_>> {
    Some(match place.program {
        Program::IoctlEnter => Record::IoctlEnter(call(body)?),
        Program::IoctlExit => Record::IoctlExit(call(body)?),
        Program::Ring(step) => Record::Job(step, raw(body)?.0),
        Program::Doorbell | Program::DoorbellBySignal | Program::CodeObject => Record::Hit(place, registers(body)?),
        // Samples of system calls have their arguments.
        Program::IoctlArgument(_) => Record::Other,
    })
}
