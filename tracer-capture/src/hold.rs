//! The holder: a thread that hears of held processes, puts their probes in and lets them go on.

use std::{
    os::fd::{AsRawFd, BorrowedFd},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use aya::maps::{MapData, RingBuf};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracer_common::record::{Hold, hold_reason};

use crate::{
    decode, devices,
    guardian::{self, Guardian},
    inventory::{Inventory, Probe},
    library::{Libraries, Look},
    probes::{Prober, Target, doorbell, mapping, reserve, sdma},
    proc_maps, sys,
};

/// How long a stop that was asked for may take to show. Beyond it the process is told to go on all the same.
const STOP_TIMEOUT_NS: u64 = 100_000_000;
/// How often the holder looks up when nothing happens: to end, and to find what it may have left stopped.
const IDLE: Duration = Duration::from_millis(50);

/// What the holder works with.
pub struct Holder {
    /// Where held processes are announced.
    pub ring: RingBuf<MapData>,
    /// Attaches probes.
    pub prober: Prober,
    /// Told of every process before it can be stopped a second time.
    pub guardian: Option<Guardian>,
    /// Shared with the session.
    pub inventory: Arc<Mutex<Inventory>>,
    /// Whether reserve functions are probed.
    pub reserves: bool,
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
        let mut libraries = Libraries::default();
        let mut recent: Vec<(u32, u64)> = Vec::new();
        loop {
            let ended = self.stop.load(Ordering::Acquire);
            while let Some(hold) = self.ring.next().and_then(|item| decode::hold(&item)) {
                self.serve(&mut libraries, &hold);
                recent.push((hold.header.tgid, sys::monotonic_ns()));
            }
            release_stragglers(&mut recent);
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

    fn serve(&mut self, libraries: &mut Libraries, hold: &Hold) {
        let pid = hold.header.tgid;
        if let Some(guardian) = &mut self.guardian {
            guardian.watch(pid);
        }
        match hold.header.flags {
            hold_reason::MAPPED => self.mapped(libraries, pid),
            _ => self.initialising(libraries, pid),
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

    /// The process mapped a file: are there runtimes among its files that have no probes yet?
    fn mapped(&mut self, libraries: &mut Libraries, pid: u32) {
        for mapping in proc_maps::executable(pid).unwrap_or_default() {
            match libraries.look(pid, &mapping) {
                Look::Nothing => {}
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
                    if self.reserves {
                        probes.extend(mapping::attach_init(&mut self.prober, &target, &runtime.resolution));
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
    }

    /// The process enters `hsa_init`: API tables can be read.
    fn initialising(&mut self, libraries: &mut Libraries, pid: u32) {
        let mappings = proc_maps::executable(pid).unwrap_or_default();
        for mapping in &mappings {
            let Some(runtime) = libraries.runtime(&mapping.file).filter(|r| !r.initialised) else {
                continue;
            };
            runtime.initialised = true;
            let target = Target {
                file: &runtime.file,
                path: &runtime.path,
            };
            let mut probes = reserve::attach(
                &mut self.prober,
                &target,
                &runtime.resolution,
                pid,
                &mapping.file,
                &mappings,
            );
            told(&runtime.path, &probes);
            lock(&self.inventory).probes.append(&mut probes);
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

/// A stop that showed only after its SIGCONT: looked for until well after it could.
fn release_stragglers(recent: &mut Vec<(u32, u64)>) {
    recent.retain(|&(pid, released)| {
        if sys::monotonic_ns().saturating_sub(released) < STOP_TIMEOUT_NS {
            return true;
        }
        if guardian::state(pid) == Some('T') {
            log::debug!("process {pid} was still stopped after its hold");
            let _ = sys::signal(pid, libc::SIGCONT);
        }
        false
    });
}
