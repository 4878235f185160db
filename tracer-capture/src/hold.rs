//! The holder: a thread that hears of held processes, puts their probes in and lets them go on.

mod scan;

use std::{
    collections::HashMap,
    os::fd::{AsRawFd, BorrowedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::Duration,
};

use aya::maps::{MapData, RingBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracer_common::{
    api::Layer,
    record::{Hold, hold_reason},
};

use tracer_core::event::Origin;

use crate::{
    code_object::lists::Lists,
    decode, devices,
    findings::{Finder, Finding},
    guardian::{self, Guardian},
    inventory::{Inventory, Probe},
    library::{Hip, Libraries, Look},
    probes::{
        Prober, Target,
        api::{self, Api},
        code_object, doorbell, hsa_queue, mapping, proxy, reserve, sdma,
    },
    proc_maps::{self, Mapping},
    resolver::Resolution,
    sys, thunk,
};

pub use scan::Ask;

/// How long a stop that was asked for may take to show. Beyond it the process is told to go on all the same.
const STOP_TIMEOUT_NS: u64 = 100_000_000;
/// How often the holder looks up when nothing happens: to end, and to find what it may have left stopped.
const IDLE: Duration = Duration::from_millis(50);

/// A process that was let go lately.
struct Released {
    pid: u32,
    time_ns: u64,
    /// `hold_reason`.
    reason: u16,
}

/// What the holder works with.
pub struct Holder {
    /// Where held processes are announced.
    pub ring: RingBuf<MapData>,
    /// Attaches probes.
    pub prober: Prober,
    /// Told of every process before it can be stopped a second time.
    pub guardian: Option<Guardian>,
    /// Where it puts what it finds.
    pub finder: Finder,
    /// Follows the lists of code objects.
    pub code_objects: Lists,
    /// Processes of which it is told whether they hand doorbells over: with their generations, and how many runtimes were known.
    pub thunks: HashMap<u32, (u32, usize)>,
    /// Shared with the session.
    pub inventory: Arc<Mutex<Inventory>>,
    /// Whether reserve functions are probed.
    pub reserves: bool,
    /// Whether debug files may come from the network.
    pub debuginfod: bool,
    /// Which functions' calls are captured.
    pub api: Api,
    /// What the session asks.
    pub asked: mpsc::Receiver<Ask>,
    /// Whether processes enter by themselves, which are nobody's own either.
    pub system: bool,
    /// Set when the session ends.
    pub stop: Arc<AtomicBool>,
}

/// The inventory, also after a panic elsewhere: it is plain data.
pub fn lock(inventory: &Mutex<Inventory>) -> MutexGuard<'_, Inventory> {
    inventory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Holder {
    /// Works until the session ends; returns the prober, whose end detaches the probes.
    pub fn run(mut self) -> Prober {
        let mut libraries = Libraries::new(self.debuginfod, self.api);
        let mut recent: Vec<Released> = Vec::new();
        let mut attached = self.system;
        loop {
            let ended = self.stop.load(Ordering::Acquire);
            while let Ok(ask) = self.asked.try_recv() {
                attached = true;
                self.answer(&mut libraries, &mut recent, ask);
            }
            self.serve_all(&mut libraries, &mut recent, attached);
            self.release_stragglers(&mut libraries, &mut recent, attached);
            if ended && recent.is_empty() {
                let inventory = lock(&self.inventory);
                let longest = Duration::from_nanos(inventory.longest_hold_ns);
                log::info!("processes were held {} times, {longest:?} at most", inventory.holds);
                drop(inventory);
                return self.prober;
            }
            self.wait();
        }
    }

    fn wait(&self) {
        // SAFETY: the ring outlives the borrow, which ends with this function.
        let fd = unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) };
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(IDLE.subsec_nanos()),
        };
        // An interrupted or failed wait is an early look.
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout));
    }

    fn serve_all(&mut self, libraries: &mut Libraries, recent: &mut Vec<Released>, attached: bool) {
        while let Some(hold) = self.ring.next().and_then(|item| decode::hold(&item)) {
            self.serve(libraries, &hold, attached);
            recent.push(Released {
                pid: hold.header.tgid,
                time_ns: sys::monotonic_ns(),
                reason: hold.header.flags,
            });
        }
    }

    fn serve(&mut self, libraries: &mut Libraries, hold: &Hold, attached: bool) {
        let pid = hold.header.tgid;
        match &mut self.guardian {
            Some(guardian) if attached => {
                if hold.header.flags == hold_reason::ENTERED {
                    guardian.attach(pid);
                }
                guardian.held(pid);
            }
            Some(guardian) => guardian.watch(pid),
            None => {}
        }
        match hold.header.flags {
            hold_reason::MAPPED => drop(self.mapped(libraries, pid)),
            hold_reason::ENTERED => drop(self.scan(libraries, pid, hold.generation)),
            hold_reason::CODE_OBJECTS => {
                let origin = Origin {
                    time_ns: hold.header.time_ns,
                    pid,
                    tid: hold.header.tid,
                };
                self.code_objects.changed(origin, hold.generation, hold.address);
                // Its runtime is initialised by now, and it has dispatched nothing of its own.
                self.thunk(libraries, origin, hold.generation);
            }
            hold_reason::PROXY => {
                let mappings = proc_maps::executable(pid).unwrap_or_default();
                let mut probes = proxy::attach(&mut self.prober, libraries, (pid, hold.address), &mappings);
                told("a proxy", &probes);
                let mut inventory = lock(&self.inventory);
                let failed = probes.iter().filter(|probe| !probe.attached());
                let warnings = failed.map(|probe| format!("what programs ask of a tool's queues is not seen: {probe}"));
                let warnings: Vec<String> = warnings
                    .filter(|warning| !inventory.warnings.contains(warning))
                    .collect();
                inventory.warnings.extend(warnings);
                // A program may be given any number of proxies.
                probes.retain(|probe| !inventory.probes.contains(probe));
                inventory.probes.append(&mut probes);
            }
            _ => self.initialising(libraries, pid, &proc_maps::executable(pid).unwrap_or_default()),
        }
        if hold.stopped == 0 {
            let_go(pid);
        }
        let mut inventory = lock(&self.inventory);
        inventory.holds += 1;
        inventory.longest_hold_ns = inventory
            .longest_hold_ns
            .max(sys::monotonic_ns().saturating_sub(hold.header.time_ns));
    }

    /// Are there runtimes among the files of the process that have no probes yet? Gives its mappings.
    fn mapped(&mut self, libraries: &mut Libraries, pid: u32) -> Vec<Mapping> {
        let mappings = proc_maps::executable(pid).unwrap_or_default();
        for mapping in &mappings {
            match libraries.look(pid, mapping) {
                Look::Nothing => {}
                Look::Hip(hip) => self.hip(*hip),
                Look::Broken(warning) => lock(&self.inventory).warnings.push(warning),
                Look::Runtime(library) => {
                    let Some(runtime) = libraries.runtime(&mapping.file) else {
                        continue;
                    };
                    let target = Target {
                        file: &runtime.file,
                        path: &runtime.path,
                    };
                    let mut probes = doorbell::attach(&mut self.prober, &target, &runtime.resolution);
                    probes.extend(sdma::attach(&mut self.prober, &target, &runtime.resolution));
                    probes.extend(hsa_queue::attach(&mut self.prober, &target, &runtime.resolution));
                    probes.extend(code_object::attach(&mut self.prober, &target, &runtime.resolution));
                    let last_resort = !runtime.resolution.last_resort().is_empty();
                    probes.extend(api::attach(&mut self.prober, &target, &runtime.entries));
                    if self.needs_tables(&runtime.resolution) {
                        probes.extend(mapping::attach_init(&mut self.prober, &target, &runtime.resolution));
                    }
                    if last_resort {
                        let unseen = doorbell::unseen_by_last_resort(&library.path);
                        lock(&self.inventory).warnings.push(unseen);
                        // Else they are placed where `hsa_init` begins.
                        if !probes.iter().any(|probe| probe.family == "mapping" && probe.attached()) {
                            let resolution = &runtime.resolution;
                            probes.extend(doorbell::attach_last_resort(
                                &mut self.prober,
                                &target,
                                resolution,
                                None,
                            ));
                        }
                    }
                    told(&library.path, &probes);
                    let mut inventory = lock(&self.inventory);
                    inventory.devices.get_or_insert_with(|| devices::of_process(pid));
                    let notes = runtime
                        .resolution
                        .notes
                        .iter()
                        .map(|note| format!("{}: {note}", library.path));
                    inventory.warnings.extend(notes);
                    inventory.probes.append(&mut probes);
                    inventory.libraries.push(library);
                }
            }
        }
        mappings
    }

    /// Whether anything is probed behind the API tables of this runtime.
    fn needs_tables(&self, resolution: &Resolution) -> bool {
        self.reserves || !resolution.last_resort().is_empty() || self.api.wants(Layer::Hsa)
    }

    /// Tells whether a program's runtimes hand doorbells over: once, and again if another runtime has come. Nothing, as long as
    /// one of them is not initialised; that it is unknown, if one is not understood, or they differ.
    fn thunk(&mut self, libraries: &mut Libraries, origin: Origin, generation: u32) {
        let told_by = (generation, libraries.runtimes());
        if self.thunks.get(&origin.pid) == Some(&told_by) {
            return;
        }
        let (mut hands_over, mut is_known) = (None, true);
        for mapping in proc_maps::executable(origin.pid).unwrap_or_default() {
            let Some(runtime) = libraries.runtime(&mapping.file) else {
                continue;
            };
            let resolution = &runtime.resolution;
            if resolution.doorbells.is_empty() {
                is_known = false;
                continue;
            }
            // Another piece of the library's file.
            if mapping.bias(resolution).is_none() {
                continue;
            }
            let told = if resolution.may_hand_over() {
                is_known &= resolution.thunk_flags().is_some();
                thunk::hands_over(origin.pid, &mapping, resolution)
            } else {
                Some(false)
            };
            match told {
                Some(told) => {
                    // Of which one a doorbell is, its record does not say.
                    is_known &= hands_over.is_none_or(|other| other == told);
                    hands_over = Some(told);
                }
                None if is_known => return,
                None => {}
            }
        }
        if hands_over.is_some() || !is_known {
            self.thunks.insert(origin.pid, told_by);
            self.finder
                .tell(origin, Finding::HandsOver(hands_over.filter(|_| is_known)));
        }
    }

    /// The process mapped HIP's library.
    fn hip(&mut self, hip: Hip) {
        let target = Target {
            file: &hip.file,
            path: &hip.library.path,
        };
        let mut probes = api::attach(&mut self.prober, &target, &hip.entries);
        told(&hip.library.path, &probes);
        let mut inventory = lock(&self.inventory);
        inventory.probes.append(&mut probes);
        inventory.libraries.push(hip.library);
    }

    /// The process enters `hsa_init`, or has done so: API tables can be read.
    fn initialising(&mut self, libraries: &mut Libraries, pid: u32, mappings: &[Mapping]) {
        for mapping in mappings {
            let Some(runtime) = libraries.runtime(&mapping.file).filter(|r| !r.initialised) else {
                continue;
            };
            runtime.initialised = true;
            let target = Target {
                file: &runtime.file,
                path: &runtime.path,
            };
            let process = Some((pid, &mapping.file, mappings));
            let mut probes = doorbell::attach_last_resort(&mut self.prober, &target, &runtime.resolution, process);
            if self.reserves {
                probes.extend(reserve::attach(
                    &mut self.prober,
                    &target,
                    &runtime.resolution,
                    pid,
                    &mapping.file,
                    mappings,
                ));
            }
            probes.extend(api::attach_behind_table(
                &mut self.prober,
                &target,
                &runtime.entries,
                pid,
                &mapping.file,
                mappings,
            ));
            told(&runtime.path, &probes);
            lock(&self.inventory).probes.append(&mut probes);
        }
    }

    /// A stop that showed only after its SIGCONT: looked for until well after it could.
    fn release_stragglers(&mut self, libraries: &mut Libraries, recent: &mut Vec<Released>, attached: bool) {
        let now = sys::monotonic_ns();
        let (old, young) = std::mem::take(recent)
            .into_iter()
            .partition(|released: &Released| now.saturating_sub(released.time_ns) >= STOP_TIMEOUT_NS);
        *recent = young;
        let is_stopped = |released: &Released| guardian::state(released.pid) == Some('T');
        let (stopped, mut over): (Vec<Released>, Vec<Released>) = old.into_iter().partition(is_stopped);
        if !stopped.is_empty() {
            // Perhaps for another hold: its record was there before its stop showed.
            self.serve_all(libraries, recent, attached);
        }
        for released in stopped {
            let pid = released.pid;
            let held_again = recent.iter().any(|other| other.pid == pid);
            // Somebody else may have stopped a process that was there before.
            let ours = !attached
                || match released.reason {
                    hold_reason::MAPPED => guardian::is_stopped_at_mapping(pid),
                    hold_reason::ENTERED => guardian::is_stopped_at_entering(pid),
                    _ => true,
                };
            if !held_again && ours {
                log::debug!("process {pid} was still stopped after its hold");
                let _ = sys::signal(pid, libc::SIGCONT);
            }
            over.push(released);
        }
        if let Some(guardian) = self.guardian.as_mut().filter(|_| attached) {
            over.retain(|released| recent.iter().all(|other| other.pid != released.pid));
            over.into_iter().for_each(|released| guardian.free(released.pid));
        }
    }
}

/// Says which probes were put into a library, and how each place was found.
fn told(path: &str, probes: &[Probe]) {
    let attached = probes.iter().filter(|probe| probe.attached()).count();
    log::info!("{path}: {attached} of {} probes attached", probes.len());
    for probe in probes {
        log::debug!("{path}: {probe}");
    }
}

/// Lets a held process go on, once its stop shows: SIGCONT before SIGSTOP would leave it stopped.
fn let_go(pid: u32) {
    let began = sys::monotonic_ns();
    while guardian::state(pid).is_some_and(|state| !matches!(state, 'T' | 't' | 'Z' | 'X')) {
        if sys::monotonic_ns().saturating_sub(began) > STOP_TIMEOUT_NS {
            break;
        }
        std::thread::sleep(Duration::from_micros(20));
    }
    let _ = sys::signal(pid, libc::SIGCONT);
}
