//! What records mean: the events that they become, and the processes that are paused for them.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, mpsc},
};

use tracer_common::{
    kfd,
    record::{Header, Hold, LossSource, hold_reason, kind},
};
use tracer_core::{
    event::{Event, Origin},
    losses::UNDECODED,
};

use super::{
    changes::{Changed, Changes, Pause},
    ioctls::Ioctls,
    places::{ArgumentOf, Place, Program},
    processes::{End, Processes},
    queues::{At, Queues},
    record::{Argument, Call, File, Record, Registers},
    rings::Rings,
};
use crate::{decode::fetch::Fetch, pause::keeper::Pauses, sys};

/// Most mapped files that are remembered. Without room, files are examined again.
const MAX_MAPPED: usize = 1 << 16;

/// The time after the start of a mapping by which it is there, ns.
const MAPPING_NS: u64 = 2_000_000;

/// Part of the file names of runtimes.
const RUNTIME: &[u8] = b"hsa-runtime";

/// What the records said so far.
pub struct Reader {
    /// The traced processes.
    pub processes: Processes,
    ioctls: Option<Ioctls>,
    rings: Option<Rings>,
    queues: Queues,
    /// Lists of code objects that change.
    pub changes: Changes,
    pauses: Arc<Pauses>,
    holds: mpsc::SyncSender<Hold>,
    /// Files that traced processes mapped, by process, device and inode: each is examined once.
    mapped: HashSet<(u32, (u32, u32), u64)>,
    /// Processes that have mapped some file, and the first time of it.
    mapping: HashMap<u32, Origin>,
    /// Doorbells and ioctls count from the first moment on, and before the second one.
    pub counts: (u64, u64),
    /// The time of the last doorbell.
    pub rung_ns: u64,
    pauses_no_more: bool,
    undecoded: u64,
    unpaused: u64,
}

impl Reader {
    /// Traces nothing yet, and nothing counts.
    pub fn new(
        (ioctls, rings): (Option<Ioctls>, Option<Rings>),
        follow: bool,
        pauses: Arc<Pauses>,
        holds: mpsc::SyncSender<Hold>,
    ) -> Self {
        Self {
            processes: Processes::new(follow),
            ioctls,
            rings,
            queues: Queues::default(),
            changes: Changes::new(Arc::clone(&pauses)),
            pauses,
            holds,
            mapped: HashSet::new(),
            mapping: HashMap::new(),
            counts: (u64::MAX, u64::MAX),
            rung_ns: 0,
            pauses_no_more: false,
            undecoded: 0,
            unpaused: 0,
        }
    }

    /// Pauses no process any more.
    pub fn pause_no_more(&mut self) {
        self.pauses_no_more = true;
        self.changes.give_up();
    }

    /// Takes a record.
    pub fn take(
        &mut self,
        origin: Origin,
        record: Record<'_>,
        memory: &mut impl Fetch,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        let pid = origin.pid;
        match record {
            Record::Hit(place, registers) => self.hit(origin, place, registers, memory, sink),
            Record::IoctlEnter(call) => self.ioctl_enter(origin, &call, sink),
            Record::IoctlExit(call) => self.ioctl_exit(origin, &call, memory, sink),
            Record::Argument(of, argument) => self.argument(origin, of, &argument, sink),
            Record::Job(step, raw) => {
                let traced = self.processes.get(pid).is_some();
                if let Some(rings) = &self.rings {
                    self.undecoded += u64::from(!rings.step(step, origin, raw, traced, sink));
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
            Record::Mapped(file) => self.mapped(origin, file.as_ref()),
            Record::Unknown => self.undecoded += 1,
            Record::Exec(_) | Record::Other => {}
        }
    }

    fn hit(
        &mut self,
        origin: Origin,
        place: Place,
        Registers { si, di, ip }: Registers,
        memory: &mut impl Fetch,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        let displacement = i64::from(place.displacement);
        match place.program {
            Program::Doorbell => self.doorbell(origin, At::Pointer(di.wrapping_add_signed(displacement)), si),
            Program::DoorbellBySignal => self.doorbell(origin, At::Signal(di), si),
            Program::CodeObject => self.code_objects(origin, ip.wrapping_add_signed(displacement), memory, sink),
            Program::IoctlEnter | Program::IoctlExit | Program::IoctlArgument(_) | Program::Ring(_) => {}
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
    pub fn flush(&mut self, pid: u32, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        let changes = &self.changes;
        self.queues.flush(memory, sink, |of| of != pid && changes.holds(of));
    }

    /// Reads the queues again whose last packets the GPU was taking.
    pub fn finish(&mut self, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        self.queues.finish_all(memory, sink);
    }

    /// Reads what is left of a program that ends.
    fn ends(&mut self, origin: Origin, memory: &mut impl Fetch, sink: &mut impl FnMut(&Event<'_>)) {
        self.flush(origin.pid, memory, sink);
        self.queues.finish(origin.pid, memory, sink);
        self.queues.forget(origin.pid);
        self.changes.forget(origin.pid);
        self.mapped.retain(|(pid, ..)| *pid != origin.pid);
    }

    fn ioctl_enter(&mut self, origin: Origin, call: &Call<'_>, sink: &mut impl FnMut(&Event<'_>)) {
        let counts = self.counts(origin);
        let (Some(process), Some(ioctls)) = (self.processes.get(origin.pid), &mut self.ioctls) else {
            return;
        };
        let begins = ioctls.enter(origin, call, counts, sink).is_some_and(kfd::begins);
        if begins && !process.is_user {
            process.is_user = true;
            self.pause(origin);
        }
    }

    fn ioctl_exit(
        &mut self,
        origin: Origin,
        call: &Call<'_>,
        memory: &mut impl Fetch,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        let entered = self.ioctls.as_ref().and_then(|ioctls| ioctls.entered(origin));
        if entered.is_some_and(destroys_queue) {
            // The queue was rung before, and its memory is about to go.
            self.flush(origin.pid, memory, sink);
            self.queues.finish(origin.pid, memory, sink);
        }
        let done = self.ioctls.as_mut().and_then(|ioctls| ioctls.exit(origin, call, sink));
        if let Some(write_pointer) = done.and_then(|done| done.created()) {
            self.queues.begin(origin.pid, write_pointer);
        }
    }

    fn argument(&mut self, origin: Origin, of: ArgumentOf, argument: &Argument<'_>, sink: &mut impl FnMut(&Event<'_>)) {
        if let (Some(_), Some(ioctls)) = (self.processes.get(origin.pid), &mut self.ioctls) {
            ioctls.argument(origin, of, argument, sink);
        }
    }

    /// Has a process examined that maps a file for the first time. It is stopped if the file is named like a runtime. A process that
    /// uses no KFD is examined at its first ioctl, which comes before its first queue.
    fn mapped(&mut self, origin: Origin, file: Option<&File<'_>>) {
        let sees_ioctls = self.ioctls.is_some();
        let Some(process) = self.processes.get(origin.pid) else {
            return;
        };
        let (is_user, generation) = (process.is_user, process.generation);
        if sees_ioctls && !is_user {
            return;
        }
        if let Some(file) = file {
            if file.inode == 0 {
                return;
            }
            if self.mapped.len() >= MAX_MAPPED {
                self.mapped.clear();
            }
            if !self.mapped.insert((origin.pid, file.device, file.inode)) {
                return;
            }
            if file.path.windows(RUNTIME.len()).any(|part| part == RUNTIME) {
                return self.pause(origin);
            }
        }
        if !is_user {
            return;
        }
        if file.is_some() {
            self.announce(origin, (hold_reason::ENTERED, 0), 0, generation, None);
        } else {
            // Which file is unknown, and it may not be mapped yet: what follows soon is examined with it.
            self.mapping.entry(origin.pid).or_insert(origin);
        }
    }

    /// Has the processes examined that have mapped some file.
    fn examine_mapping(&mut self) {
        if self.mapping.is_empty() {
            return;
        }
        let now_ns = sys::monotonic_ns();
        let is_due = |origin: &Origin| now_ns.saturating_sub(origin.time_ns) > MAPPING_NS;
        let due: Vec<Origin> = self
            .mapping
            .extract_if(|_, origin| is_due(origin))
            .map(|(_, origin)| origin)
            .collect();
        for origin in due {
            if let Some(process) = self.processes.get(origin.pid) {
                let generation = process.generation;
                self.announce(origin, (hold_reason::ENTERED, 0), 0, generation, None);
            }
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

    /// Has the lists read whose processes stand still by now. Records up to `drained_ns` were taken.
    pub fn advance(&mut self, drained_ns: u64, memory: &mut impl Fetch) {
        self.examine_mapping();
        let mut ready = Vec::new();
        self.changes
            .advance(drained_ns, memory, |changed, pause| ready.push((changed, pause)));
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
        for (source, count) in [
            (LossSource::SignalUnread.name(), &mut self.queues.signals_unread),
            (UNDECODED, &mut self.undecoded),
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
