//! Work without a runtime: this program opens /dev/kfd, creates an AQL queue, and stores to its doorbell, as tinygrad does.
//!
//! No function of a library runs for a submission, so no probe can see one. The kernels have no code and no effect, which only a
//! simulated GPU accepts.

mod driver;

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::cli::Cli;
use crate::clock::{self, Deadline};
use crate::error::{Error, Result};
use crate::hsa::executable::Kernel;
use crate::packet::{Grid, PACKET_BYTES, Packet};
use crate::producer::Submission;
use crate::report::{self, AgentInfo, Outcome, QueueReport, RuntimeInfo, Summary};
use crate::workloads::Workload;
use crate::{line, log};
use driver::Driver;

/// Packets in the ring.
const RING: u32 = 1024;
/// Offsets of the indexes in an `amd_queue_t` (`amd_hsa_queue.h`).
const WRITE_INDEX: usize = 0x38;
const READ_INDEX: usize = 0x80;
const PAGE: usize = 4096;

/// A queue of this program.
struct Queue {
    handle: *mut u8,
    ring: *mut Packet,
    doorbell: *mut u64,
    id: u32,
    kernel: Kernel,
    kernarg: u64,
    log: Vec<Submission>,
}

impl Queue {
    /// Creates a queue, in the GPU's memory if `device_memory`.
    fn create(driver: &Driver, device_memory: bool) -> Result<Self> {
        let place = |bytes| {
            if device_memory {
                driver.map_device(bytes)
            } else {
                driver.map(bytes)
            }
        };
        let ring = place(RING as usize * PACKET_BYTES)?;
        let handle = place(PAGE)?;
        let kernel = driver.map(PAGE)?;
        let at = |memory: *mut u8, offset: usize| memory.expose_provenance() as u64 + offset as u64;
        let created = driver.create_queue(
            at(ring, 0),
            RING * PACKET_BYTES as u32,
            at(handle, WRITE_INDEX),
            at(handle, READ_INDEX),
        )?;
        Ok(Self {
            handle,
            ring: ring.cast(),
            doorbell: created.doorbell,
            id: created.id,
            kernel: Kernel {
                object: at(kernel, 0),
                kernarg_bytes: 0,
                group_bytes: 0,
                private_bytes: 0,
            },
            kernarg: at(kernel, PAGE / 2),
            log: Vec::new(),
        })
    }

    fn index(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the queue's page, which stays mapped. Others access it atomically.
        unsafe { &*self.handle.add(offset).cast::<AtomicU64>() }
    }

    /// Submits a dispatch and rings its doorbell.
    fn submit(&mut self, deadline: Duration) -> Result<()> {
        let index = self.index(WRITE_INDEX).load(Ordering::Relaxed);
        self.wait_for(index.saturating_sub(u64::from(RING) - 1), deadline)?;
        let reserve_ns = clock::now();
        self.index(WRITE_INDEX).store(index + 1, Ordering::Release);
        let packet = Packet::dispatch(
            &self.kernel,
            Grid {
                items: 64,
                workgroup: 64,
            },
            self.kernarg,
        );
        // SAFETY: the slot is in the ring, and the GPU has passed it. The header comes last.
        unsafe {
            let slot = self.ring.add(index as usize % RING as usize).cast::<u32>();
            let body = packet.body();
            slot.add(1).copy_from_nonoverlapping(body.as_ptr(), body.len());
            AtomicU32::from_ptr(slot).store(packet.header(), Ordering::Release);
            self.doorbell.write_volatile(index);
        }
        self.log.push(Submission {
            packet,
            index,
            doorbell: index,
            reserve_ns,
            time_ns: clock::now(),
            direct: true,
        });
        Ok(())
    }

    /// Waits until the GPU has taken every packet below `index`.
    fn wait_for(&self, index: u64, timeout: Duration) -> Result<()> {
        let deadline = Deadline::after(timeout);
        while self.index(READ_INDEX).load(Ordering::Acquire) < index {
            if deadline.passed() {
                return Err(Error::Timeout {
                    what: format!("packet {index}"),
                    seconds: timeout.as_secs(),
                    state: format!("read index {}", self.index(READ_INDEX).load(Ordering::Relaxed)),
                });
            }
            thread::yield_now();
        }
        Ok(())
    }

    fn report(&self) -> QueueReport {
        let count = self.log.len() as u64;
        QueueReport {
            handle: format!("{:#x}", self.handle.addr()),
            id: self.id.into(),
            size: RING,
            dispatches: count,
            barriers: 0,
            other_packets: 0,
            doorbells: count,
            direct_doorbells: count,
            first_index: self.log.first().map(|first| first.index),
            last_index: self.log.last().map(|last| last.index),
        }
    }
}

/// Runs a workload without a runtime, and writes a report of it.
///
/// # Errors
/// Fails if the workload needs a runtime, if there is no GPU, or if the driver refuses a call.
pub fn run(cli: &Cli) -> Result<()> {
    let options = &cli.options;
    let timeout = Duration::from_secs(options.timeout.get());
    // Loaded, but not used: a process with a runtime that is not the one that submits.
    let library = options.library.as_deref().map(load).transpose()?;
    let driver = Driver::open()?;
    let mut queue = Queue::create(&driver, options.device_memory)?;
    let start = clock::now();
    match &cli.workload {
        Workload::DirectDoorbell(workload) => {
            for _ in 0..workload.n {
                queue.submit(timeout)?;
            }
        }
        Workload::Steady(steady) => {
            while queue.log.len() < steady.n as usize && !steady.until.exists() {
                for _ in 0..steady.round {
                    queue.submit(timeout)?;
                }
                steady.report_progress(queue.log.len() as u64)?;
                thread::sleep(Duration::from_micros(steady.pause));
            }
        }
        other => {
            return Err(Error::OtherApi {
                workload: other.name(),
                api: "hsa",
            });
        }
    }
    queue.wait_for(queue.log.len() as u64, timeout)?;
    let mut outcome = Outcome::default();
    outcome.set_times(start, clock::now());
    let report = queue.report();
    outcome.dispatches = report.dispatches;
    outcome.doorbells = report.doorbells;
    outcome.direct_doorbells = report.direct_doorbells;
    outcome.queues.push(report);
    let handle = queue.handle.addr() as u64;
    let submissions = queue
        .log
        .iter()
        .map(|submission| (handle, queue.id.into(), *submission));
    outcome.log.extend(submissions);
    if let Some(path) = &options.log {
        log::write(path, None, &outcome.log)?;
    }
    let summary = Summary {
        api: "kfd",
        workload: cli.workload.name(),
        runtime: RuntimeInfo {
            library: options
                .library
                .as_deref()
                .map_or_else(String::new, |path| path.display().to_string()),
            version: String::new(),
        },
        agent: AgentInfo {
            name: String::new(),
            gfx: String::new(),
        },
        kernels: String::new(),
        pid: std::process::id(),
        outcome: outcome.summarised(),
        results: "ok".to_owned(),
    };
    report::print(&summary, &options.json, || line(&summary))?;
    drop(library);
    if let Some(leave) = options.leave {
        leave.now();
    }
    Ok(())
}

fn load(path: &Path) -> Result<libloading::Library> {
    // SAFETY: the runtime's initializers run; nothing else of it is used.
    unsafe { libloading::Library::new(path) }.map_err(|source| Error::Library {
        library: path.to_owned(),
        source,
    })
}
