//! Passes over the buffers: samples and side band, in the order of their times, as events.

use std::{
    collections::HashSet,
    io,
    os::fd::OwnedFd,
    sync::{Arc, mpsc},
    time::Duration,
};

use tracer_common::{
    kfd,
    record::{Header, Hold, LossSource, hold_reason, kind},
};
use tracer_core::{
    event::{Event, Origin},
    losses::{PERF_RING, UNDECODED},
};

use super::{
    buffers::{Buffers, write_losses},
    changes::{Changed, Changes, Pause},
    ioctls::Ioctls,
    probes::{Place, Places, Probes, Program},
    processes::{End, Processes},
    queues::{At, Queues},
    record::{File, Record, Registers, registers},
    rings::Rings,
};
use crate::{CaptureError, decode::fetch::Fetch, pause::keeper::Pauses, sys};

/// The time within which a record is written after its time was taken, ns.
const WRITING_NS: u64 = 1_000_000;
/// A reader naps shortly for this time after a doorbell, ns.
const BUSY_NS: u64 = 200_000_000;
/// The nap while there are doorbells.
const BUSY_NAP: Duration = Duration::from_micros(100);
/// The nap while there are none.
const IDLE_NAP: Duration = Duration::from_millis(1);

/// Most mapped files that are remembered. Without room, files are examined again.
const MAX_MAPPED: usize = 1 << 16;

/// Part of the file names of runtimes.
const RUNTIME: &[u8] = b"hsa-runtime";

/// The buffers, and what they said so far.
pub struct Source {
    buffers: Buffers,
    probes: Arc<Probes>,
    /// The processors that were online when this was last looked at.
    processors: Vec<u32>,
    processes: Processes,
    /// `None` if the trace events of system calls cannot be used.
    ioctls: Option<Ioctls>,
    /// `None` if this kernel has no DRM scheduler, or if its events cannot be used.
    rings: Option<Rings>,
    queues: Queues,
    changes: Changes,
    pauses: Arc<Pauses>,
    holds: mpsc::SyncSender<Hold>,
    /// Files that traced processes mapped, by process, device and inode: each is examined once.
    mapped: HashSet<(u32, (u32, u32), u64)>,
    /// Doorbells and ioctls count from the first moment on, and before the second one.
    counts: (u64, u64),
    /// Records up to this moment were handed over.
    drained_ns: u64,
    /// The time of the last doorbell.
    rung_ns: u64,
    /// Set while losses may not have been written to the buffers.
    is_unsettled: bool,
    pauses_no_more: bool,
    lost: u64,
    undecoded: u64,
    unpaused: u64,
}

/// The buffers and the events that write to them.
pub struct Opened {
    buffers: Buffers,
    /// Attaches probes.
    pub probes: Arc<Probes>,
    processors: Vec<u32>,
    ioctls: Option<Ioctls>,
    rings: Option<Rings>,
}

impl Opened {
    /// Opens the buffers, with `bytes` for all processors together, and the events of every process. The calling thread must see
    /// tracefs for ioctls to be captured; `not_seen` takes the reason if they are not.
    ///
    /// # Errors
    /// Fails with the kernel's error.
    pub fn open(bytes: usize, not_seen: impl FnOnce(CaptureError)) -> Result<Self, CaptureError> {
        let failed = |error| CaptureError::system("opening perf events", error);
        let processors = sys::online_processors().map_err(failed)?;
        let buffers = Buffers::open(&processors, bytes).map_err(failed)?;
        let shared = buffers.rings.iter().map(|ring| ring.event.try_clone());
        let shared: Vec<OwnedFd> = shared.collect::<io::Result<_>>().map_err(failed)?;
        let probes = Probes::new(processors.iter().copied().zip(shared).collect()).map_err(failed)?;
        let probes = Arc::new(probes);
        let ioctls = Ioctls::open(&probes).map_err(not_seen).ok();
        let rings = Rings::open(&probes)?;
        Ok(Self {
            buffers,
            probes,
            processors,
            ioctls,
            rings,
        })
    }

    /// Returns the names of the scheduler's events; `None` if rings are not watched.
    #[must_use]
    pub fn ring_events(&self) -> Option<[&'static str; 3]> {
        self.rings.as_ref().map(|rings| rings.names)
    }

    /// Returns the source. It announces processes that it pauses to `holds`; `follow` is whether child processes are traced too.
    #[must_use]
    pub fn source(self, follow: bool, pauses: Arc<Pauses>, holds: mpsc::SyncSender<Hold>) -> Source {
        Source {
            buffers: self.buffers,
            probes: self.probes,
            processors: self.processors,
            processes: Processes::new(follow),
            ioctls: self.ioctls,
            rings: self.rings,
            queues: Queues::default(),
            changes: Changes::new(Arc::clone(&pauses)),
            pauses,
            holds,
            mapped: HashSet::new(),
            counts: (u64::MAX, u64::MAX),
            drained_ns: 0,
            rung_ns: 0,
            is_unsettled: false,
            pauses_no_more: false,
            lost: 0,
            undecoded: 0,
            unpaused: 0,
        }
    }
}

impl Source {
    /// Traces a process from now on.
    pub fn insert(&mut self, pid: u32, generation: u32) {
        self.processes.insert(pid, generation);
    }

    /// Notes that a traced process uses the KFD already: it is not paused at its next ioctl.
    pub fn insert_user(&mut self, pid: u32) {
        if let Some(process) = self.processes.get(pid) {
            process.is_user = true;
        }
    }

    /// Makes submissions of traced processes count from now on.
    pub fn begin(&mut self) {
        self.counts.0 = sys::monotonic_ns();
    }

    /// Makes no submission count from now on.
    pub fn stop_counting(&mut self) {
        self.counts.1 = self.counts.1.min(sys::monotonic_ns());
        self.is_unsettled = true;
    }

    /// Pauses no process any more.
    pub fn pause_no_more(&mut self) {
        self.pauses_no_more = true;
        self.changes.give_up();
    }

    /// Returns whether the records of the time before `mark_ns` were handed over.
    #[must_use]
    pub fn is_drained_to(&self, mark_ns: u64) -> bool {
        !self.is_unsettled && self.drained_ns >= mark_ns.saturating_add(WRITING_NS)
    }

    /// Returns the time for which a reader that found no record may sleep: a short one while there are doorbells, because their
    /// packets are still to be read.
    #[must_use]
    pub fn nap(&self) -> Duration {
        if self.drained_ns.saturating_sub(self.rung_ns) < BUSY_NS || !self.changes.is_empty() {
            BUSY_NAP
        } else {
            IDLE_NAP
        }
    }

    /// Hands over what has arrived. `discoveries` is called first: what a process did after tracer discovered something about it
    /// comes after the discovery.
    pub fn drain<S: FnMut(&Event<'_>)>(
        &mut self,
        memory: &mut impl Fetch,
        sink: &mut S,
        mut discoveries: impl FnMut(&mut S),
    ) {
        self.pass(memory, sink, &mut discoveries);
        if self.is_unsettled {
            // The buffers have room again.
            write_losses();
            self.is_unsettled = false;
            self.pass(memory, sink, &mut discoveries);
        }
    }

    fn pass<S: FnMut(&Event<'_>)>(
        &mut self,
        memory: &mut impl Fetch,
        sink: &mut S,
        discoveries: &mut impl FnMut(&mut S),
    ) {
        let until_ns = sys::monotonic_ns();
        let mut buffers = std::mem::take(&mut self.buffers);
        buffers.look();
        self.advance(memory);
        discoveries(sink);
        buffers.list(until_ns);
        let probes = Arc::clone(&self.probes);
        let places = probes.places();
        buffers.each(|origin, record| self.take(origin, record, &places, memory, sink));
        drop(places);
        self.flush(0, memory, sink);
        buffers.release();
        self.buffers = buffers;
        self.drained_ns = until_ns;
    }

    fn take(
        &mut self,
        origin: Origin,
        record: Record<'_>,
        places: &Places,
        memory: &mut impl Fetch,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        let pid = origin.pid;
        match record {
            Record::Lost(count) => self.lost = self.lost.saturating_add(count),
            Record::Sample(number, body) => {
                if let Some(place) = places.get(&number) {
                    self.sample(origin, *place, body, memory, sink);
                }
            }
            Record::Fork(child, _) => {
                if let Some(child) = self.processes.forked(origin, child) {
                    sink(&Event::Fork(origin, child));
                }
            }
            Record::Exec(comm) if self.processes.get(pid).is_some() => {
                self.ends(origin, memory, sink);
                self.processes.executed(pid, origin.time_ns);
                sink(&Event::Exec(origin, comm));
            }
            Record::Exit => {
                if self.processes.get(pid).is_some()
                    && let Some(ioctls) = &mut self.ioctls
                {
                    ioctls.thread_exits(origin, sink);
                }
                if self.processes.exited(origin) == Some(End::Process) {
                    self.ends(origin, memory, sink);
                    sink(&Event::Exit(origin));
                }
            }
            Record::Mapped(file) => self.mapped(origin, &file),
            Record::Exec(_) | Record::Other => {}
        }
    }

    fn sample(
        &mut self,
        origin: Origin,
        place: Place,
        body: &[u8],
        memory: &mut impl Fetch,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        match place.program {
            Program::IoctlEnter => return self.ioctl_enter(origin, body),
            Program::IoctlExit => return self.ioctl_exit(origin, body, memory, sink),
            Program::Ring(step) => {
                let traced = self.processes.get(origin.pid).is_some();
                if let Some(rings) = &self.rings {
                    self.undecoded += u64::from(!rings.step(step, origin, body, traced, sink));
                }
                return;
            }
            Program::Doorbell | Program::DoorbellBySignal | Program::CodeObject => {}
        }
        let Some(Registers { si, di, ip }) = registers(body) else {
            self.undecoded += 1;
            return;
        };
        let displacement = i64::from(place.displacement);
        match place.program {
            Program::Doorbell => self.doorbell(origin, At::Pointer(di.wrapping_add_signed(displacement)), si),
            Program::DoorbellBySignal => self.doorbell(origin, At::Signal(di), si),
            _ => self.code_objects(origin, ip.wrapping_add_signed(displacement), memory, sink),
        }
    }

    fn counts(&self, origin: Origin) -> bool {
        (self.counts.0..self.counts.1).contains(&origin.time_ns)
    }

    fn doorbell(&mut self, origin: Origin, at: At, value: u64) {
        if self.counts(origin) && self.processes.get(origin.pid).is_some() {
            self.rung_ns = origin.time_ns;
            self.queues.ring(origin, at, value);
        }
    }

    /// Hands over the doorbells so far, except those that wait for a list of code objects; those of the process `pid` wait for
    /// nothing any more.
    fn flush(&mut self, pid: u32, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        let changes = &self.changes;
        self.queues.flush(memory, sink, |of| of != pid && changes.holds(of));
    }

    /// Reads what is left of a program that ends.
    fn ends(&mut self, origin: Origin, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        self.flush(origin.pid, memory, sink);
        self.queues.forget(origin.pid);
        self.changes.forget(origin.pid);
        self.mapped.retain(|(pid, ..)| *pid != origin.pid);
    }

    fn ioctl_enter(&mut self, origin: Origin, body: &[u8]) {
        let counts = self.counts(origin);
        let (Some(process), Some(ioctls)) = (self.processes.get(origin.pid), &mut self.ioctls) else {
            return;
        };
        let begins = ioctls.enter(origin, body, counts).is_some_and(kfd::begins);
        if begins && !process.is_user {
            process.is_user = true;
            self.pause(origin);
        }
    }

    fn ioctl_exit(&mut self, origin: Origin, body: &[u8], memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        let entered = self.ioctls.as_ref().and_then(|ioctls| ioctls.entered(origin));
        if entered.is_some_and(destroys_queue) {
            // The queue was rung before, and its memory is about to go.
            self.flush(origin.pid, memory, sink);
        }
        let done = self.ioctls.as_mut().and_then(|ioctls| ioctls.exit(origin, body, sink));
        if let Some(write_pointer) = done.and_then(|done| done.created()) {
            self.queues.begin(origin.pid, write_pointer);
        }
    }

    /// Has a process examined that maps a file for the first time. It is stopped if the file is named like a runtime. A process that
    /// uses no KFD is examined at its first ioctl, which comes before its first queue.
    fn mapped(&mut self, origin: Origin, file: &File<'_>) {
        let sees_ioctls = self.ioctls.is_some();
        let Some(process) = self.processes.get(origin.pid) else {
            return;
        };
        let is_runtime = file.path.windows(RUNTIME.len()).any(|part| part == RUNTIME);
        if sees_ioctls && !process.is_user || file.inode == 0 {
            return;
        }
        if self.mapped.len() >= MAX_MAPPED {
            self.mapped.clear();
        }
        if !self.mapped.insert((origin.pid, file.device, file.inode)) {
            return;
        }
        if is_runtime {
            self.pause(origin);
        } else if process.is_user {
            let generation = process.generation;
            self.announce(origin, (hold_reason::ENTERED, 0), 0, generation, None);
        }
    }

    /// Notes that a process calls the function around changes of its list of code objects.
    fn code_objects(&mut self, origin: Origin, debug: u64, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        let Some(process) = self.processes.get(origin.pid).filter(|_| !self.pauses_no_more) else {
            return;
        };
        let generation = process.generation;
        // What it rang for before has the names of the list before.
        self.flush(0, memory, sink);
        if let Some(changed) = self.changes.called(origin, debug, generation) {
            self.read_list(&changed, None);
        }
    }

    fn advance(&mut self, memory: &mut impl Fetch) {
        let mut ready = Vec::new();
        self.changes
            .advance(self.drained_ns, memory, |changed, pause| ready.push((changed, pause)));
        for (changed, pause) in ready {
            self.read_list(&changed, pause);
        }
    }

    /// Has a list read. A process that was not stopped for it runs ahead, which counts as a loss.
    fn read_list(&mut self, changed: &Changed, pause: Option<Pause>) {
        self.unpaused += u64::from(pause.is_none());
        let (reason, site) = match changed.behind_ns {
            Some(ns) => (hold_reason::CODE_OBJECTS_BEHIND, u32::try_from(ns).unwrap_or(u32::MAX)),
            None => (hold_reason::CODE_OBJECTS, 0),
        };
        self.announce(changed.origin, (reason, site), changed.debug, changed.generation, pause);
    }

    /// Stops a process, and has it examined. A process that could not be stopped runs ahead of its probes, which counts as a loss.
    fn pause(&mut self, origin: Origin) {
        let Some(process) = self.processes.get(origin.pid).filter(|_| !self.pauses_no_more) else {
            return;
        };
        let generation = process.generation;
        let thread = (origin.pid, origin.tid);
        let stopped = self.pauses.stop(thread, origin.time_ns, hold_reason::ENTERED);
        self.unpaused += u64::from(stopped.is_none());
        self.announce(origin, (hold_reason::ENTERED, 0), 0, generation, stopped);
    }

    fn announce(
        &mut self,
        origin: Origin,
        (reason, site): (u16, u32),
        address: u64,
        generation: u32,
        stopped: Option<Pause>,
    ) {
        let (slot, token) = stopped.unwrap_or_default();
        let hold = Hold {
            header: Header {
                kind: kind::HOLD,
                flags: reason,
                site,
                tgid: origin.pid,
                tid: origin.tid,
                time_ns: origin.time_ns,
            },
            address,
            stopped: if stopped.is_some() { 0 } else { -i64::from(libc::ESRCH) },
            generation,
            slot,
            token,
            file: Default::default(),
        };
        // There is no room, or the receiver is gone at the end of the session.
        if self.holds.try_send(hold).is_err() {
            self.unpaused += 1;
            if let Some((slot, token)) = stopped {
                self.pauses.serve(slot, token);
            }
        }
    }

    /// Hands over the losses since the last call: source, count.
    pub fn take_losses(&mut self, lost: &mut impl FnMut(&'static str, u64)) {
        // A processor that came later has no buffer, and what happens there is not seen.
        if let Ok(online) = sys::online_processors()
            && online.iter().any(|processor| !self.processors.contains(processor))
        {
            self.processors = online;
            self.lost += 1;
        }
        for (source, count) in [
            (LossSource::SignalUnread.name(), &mut self.queues.signals_unread),
            (PERF_RING, &mut self.lost),
            (UNDECODED, &mut self.undecoded),
            (UNDECODED, &mut self.buffers.undecoded),
            (LossSource::HoldFailed.name(), &mut self.unpaused),
        ] {
            if *count > 0 {
                lost(source, std::mem::take(count));
            }
        }
    }

    /// Hands over the calls that are open now, as calls without a result.
    pub fn report_open_calls(&self, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(ioctls) = &self.ioctls {
            ioctls.report_open(sys::monotonic_ns(), sink);
        }
    }
}

/// Returns whether an ioctl destroys a queue.
fn destroys_queue(cmd: u32) -> bool {
    kfd::ioc_type(cmd) == kfd::IOC_TYPE_KFD && kfd::ioc_nr(cmd) == kfd::NR_DESTROY_QUEUE
}
