//! The records of an instance, in the order of their times.

use std::{
    io::{self, Read},
    os::unix::fs::FileExt,
    sync::Arc,
};

use tracer_common::record::IOCTL_ARG_LEN;
use tracer_core::{event::Origin, losses::FTRACE_RING, trace_page};

use super::{
    instance::{Instance, Pipe},
    tasks::Tasks,
};
use crate::{
    CaptureError,
    samples::{Argument, Call, Input, Lost, Place, Program, Record, Registers, half, word},
    sys,
};

/// Bytes before the fields of a record: its event's number, flags, and thread.
const COMMON: usize = 8;
/// Where the record of a uprobe has the address of its instruction, and then its fetch arguments (`uprobe_trace_entry_head` of
/// kernel/trace/trace_probe.h, `store_trace_args`).
const UPROBE: usize = COMMON;
const ARGUMENTS: usize = UPROBE + 8;

/// A record that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    time_ns: u64,
    at: usize,
    size: usize,
}

/// The records of an instance.
pub struct FtraceInput {
    pipes: Vec<Pipe>,
    page: Vec<u8>,
    /// The data of the records that wait.
    data: Vec<u8>,
    waiting: Vec<Waiting>,
    /// How many of them are listed.
    listed: usize,
    /// Space for the data that stays after a pass.
    later: Vec<u8>,
    tasks: Tasks,
    /// Dropped records that were reported.
    reported: u64,
    undecoded: u64,
    /// Comes after its files.
    instance: Arc<Instance>,
}

impl FtraceInput {
    /// Opens the files of an instance. The calling thread must see tracefs.
    ///
    /// # Errors
    /// Fails with the kernel's error.
    pub fn open(instance: Arc<Instance>) -> Result<Self, CaptureError> {
        let failed = |error| CaptureError::system("opening the buffers of tracefs", error);
        let header = instance.read("events/header_page").map_err(failed)?;
        let size = page_size(&header).ok_or_else(|| CaptureError::BadFormat {
            event: "header_page".to_owned(),
            what: "it has no size of a page".to_owned(),
        })?;
        Ok(Self {
            pipes: instance.pipes().map_err(failed)?,
            page: vec![0; size],
            data: Vec::new(),
            waiting: Vec::new(),
            listed: 0,
            later: Vec::new(),
            tasks: Tasks::read()?,
            reported: 0,
            undecoded: 0,
            instance,
        })
    }
}

impl Input for FtraceInput {
    fn watch(&mut self, pid: u32) {
        self.tasks.watch(pid);
    }

    fn look(&mut self) {
        // A read takes what there is, if it is one record. So a thread that writes all the time would never let the reader finish.
        let began_ns = sys::monotonic_ns();
        for pipe in &self.pipes {
            loop {
                let length = match (&pipe.records).read(&mut self.page) {
                    Ok(length) if length > 0 => length,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(_) | Err(_) => break,
                };
                let page = &self.page[..length];
                let start = self.data.len();
                self.data.extend_from_slice(page);
                let mut last_ns = 0;
                let whole = trace_page::records(page, |time_ns, at, size| {
                    let at = start + at;
                    self.waiting.push(Waiting { time_ns, at, size });
                    last_ns = time_ns;
                });
                self.undecoded += u64::from(!whole);
                if last_ns > began_ns {
                    break;
                }
            }
        }
    }

    fn list(&mut self, until_ns: u64) {
        // Stable: records of one processor stay in their order.
        self.waiting.sort_by_key(|waiting| waiting.time_ns);
        self.listed = self.waiting.partition_point(|waiting| waiting.time_ns <= until_ns);
    }

    fn each(&mut self, take: &mut dyn FnMut(Origin, Record<'_>)) {
        let places = self.instance.places.get();
        for waiting in self.waiting.iter().take(self.listed) {
            let raw = self.data.get(waiting.at..waiting.at + waiting.size).unwrap_or_default();
            let (Some(kind), Some(tid)) = (half(raw, 0), half(raw, 4)) else {
                self.undecoded += 1;
                continue;
            };
            // The number of the event is in the lower half.
            let number = u64::from(kind & 0xffff);
            let mut origin = self.tasks.origin(tid, waiting.time_ns);
            if let Some(record) = self.tasks.take(&mut origin, number, raw) {
                take(origin, record);
            } else if let Some(place) = places.get(&number) {
                of_place(*place, raw, |record| take(origin, record));
            }
        }
    }

    fn release(&mut self) {
        self.waiting.drain(..self.listed);
        self.listed = 0;
        self.later.clear();
        for waiting in &mut self.waiting {
            let at = self.later.len();
            let range = waiting.at..waiting.at + waiting.size;
            self.later.extend_from_slice(self.data.get(range).unwrap_or_default());
            waiting.at = at;
        }
        std::mem::swap(&mut self.data, &mut self.later);
    }

    fn take_lost(&mut self) -> Lost {
        let dropped: u64 = self.pipes.iter().map(dropped).sum();
        let before = std::mem::replace(&mut self.reported, dropped);
        // Somebody who empties the buffers makes the kernel forget its counts: at least one record is gone.
        let dropped = dropped.checked_sub(before).unwrap_or(dropped + 1);
        if dropped > 0 {
            // The end of a thread may be among them, and its id may be another thread's now.
            self.tasks.look_again();
        }
        Lost {
            source: FTRACE_RING,
            dropped,
            undecoded: std::mem::take(&mut self.undecoded),
        }
    }
}

/// Passes on the record of an event that means something.
fn of_place(place: Place, raw: &[u8], take: impl FnOnce(Record<'_>)) {
    let call = Call {
        raw,
        stack_pointer: 0,
        stack: &[],
    };
    let argument = |at: usize| word(raw, ARGUMENTS + at * 8);
    take(match place.program {
        Program::IoctlEnter => Record::IoctlEnter(call),
        Program::IoctlExit => Record::IoctlExit(call),
        Program::Ring(step) => Record::Job(step, raw),
        Program::IoctlArgument(of) => {
            let bytes = raw
                .get(ARGUMENTS + 24..)
                .and_then(|rest| rest.first_chunk::<IOCTL_ARG_LEN>());
            match (argument(1), argument(2), bytes) {
                (Some(cmd), Some(address), Some(bytes)) => Record::Argument(
                    of,
                    Argument {
                        cmd: cmd as u32,
                        address,
                        bytes,
                    },
                ),
                _ => Record::Unknown,
            }
        }
        Program::Doorbell | Program::DoorbellBySignal | Program::CodeObject => {
            match (argument(0), argument(1), word(raw, UPROBE)) {
                (Some(si), Some(di), Some(ip)) => Record::Hit(place, Registers { si, di, ip }),
                _ => Record::Unknown,
            }
        }
    });
}

/// Returns the size of a page, by its format: the place and the size of its data.
fn page_size(format: &str) -> Option<usize> {
    let line = format.lines().find(|line| line.contains(" data;"))?;
    let value = |name: &str| {
        let text = line.split(';').find_map(|part| part.trim().strip_prefix(name))?;
        text.parse::<usize>().ok()
    };
    value("offset:")?
        .checked_add(value("size:")?)
        .filter(|&size| size <= 1 << 20)
}

/// Returns how many records of a processor had no room so far.
fn dropped(pipe: &Pipe) -> u64 {
    let mut bytes = [0; 1024];
    let length = pipe.stats.read_at(&mut bytes, 0).unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..length]);
    let counts = text.lines().filter_map(|line| line.split_once(": "));
    let losses = counts.filter(|(name, _)| ["overrun", "commit overrun", "dropped events"].contains(name));
    losses.filter_map(|(_, count)| count.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_page_is_in_its_format() {
        let format = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
        assert_eq!((page_size(format), page_size("")), (Some(4096), None));
    }
}
