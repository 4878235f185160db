//! The simulated machine: its GPUs, their memory, and the processes that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::asic::Asic;
use crate::ioctl::failure::Failure;
use crate::kernels::Kernels;
use crate::memory::{PAGE, SharedFile};
use crate::process::{Identity, Process};
use crate::queue::bell::BellWatch;
use crate::topology;
use crate::truth::Truth;

/// Device memory of all GPUs, and host memory mapped by them. Sparse: only what is touched takes room.
const VRAM_FILE: u64 = 4 << 40;

/// Room for 256 doorbell pages that are 4 GiB apart.
const DOORBELL_FILE: u64 = 1 << 40;

/// Distance of doorbell pages. libhsakmt 5.2.3 masks the offset before it knows the page's size, which only
/// multiples of 4 GiB survive (with the real driver, whose offsets differ above, it happens to be harmless).
const DOORBELL_STRIDE: u64 = 1 << 32;

/// What does not change while the simulator runs.
pub struct Machine {
    /// What all GPUs are.
    pub asic: &'static Asic,
    /// How many there are.
    pub gpus: usize,
    /// The memory behind the render nodes.
    pub vram: Arc<SharedFile>,
    /// The doorbells and registers behind /dev/kfd.
    pub doorbells: Doorbells,
    /// The watch over idle queues' doorbells.
    pub bells: Arc<BellWatch>,
    /// Kernels with effects.
    pub kernels: Kernels,
    /// Least duration of a dispatch.
    pub dispatch_time: Duration,
    /// Failures to inject.
    pub failures: Vec<Failure>,
    /// The log.
    pub truth: Arc<Truth>,
    /// Where the driver's per-process files would be (`/sys/class/kfd/kfd/proc`).
    pub sysfs_proc: PathBuf,
    /// Whether clients map the memory files themselves; set when the kernel has opened the FUSE session.
    pub passthrough: OnceLock<bool>,
    processes: Mutex<BTreeMap<i32, Arc<Process>>>,
}

impl Machine {
    /// Switches the machine on.
    pub fn new(
        (asic, gpus): (&'static Asic, usize),
        kernels: Kernels,
        dispatch_time: Duration,
        failures: Vec<Failure>,
        truth: Arc<Truth>,
        sysfs_proc: PathBuf,
    ) -> Result<Self> {
        Ok(Self {
            asic,
            gpus,
            vram: Arc::new(SharedFile::new("kfd-sim-vram", VRAM_FILE).context("the memory file of the render nodes")?),
            doorbells: Doorbells::new().context("the memory file of the doorbells")?,
            bells: BellWatch::start()?,
            kernels,
            dispatch_time,
            failures,
            truth,
            sysfs_proc,
            passthrough: OnceLock::new(),
            processes: Mutex::default(),
        })
    }

    /// The index of the GPU with that KFD id.
    pub fn gpu_index(&self, gpu_id: u32) -> Option<usize> {
        (0..self.gpus).find(|&index| topology::gpu_id(index) == gpu_id)
    }

    /// The process `pid`, known from its first open of /dev/kfd on; a new one if it has executed another program since.
    pub fn process(self: &Arc<Self>, pid: i32) -> std::io::Result<Arc<Process>> {
        let identity = Identity::of(pid)?;
        let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        let stale = match processes.get(&pid) {
            Some(known) if known.identity == identity => return Ok(Arc::clone(known)),
            Some(_) => processes.remove(&pid),
            None => None,
        };
        let process = Arc::new(Process::new(pid, identity, self)?);
        processes.insert(pid, Arc::clone(&process));
        drop(processes);
        if let Some(stale) = stale {
            stale.tear_down(self);
        }
        self.truth
            .line(|| json!({"ev": "process", "pid": pid, "time_ns": crate::clock::monotonic_ns()}));
        Ok(process)
    }

    /// The process `pid`, if it has opened /dev/kfd.
    pub fn known_process(&self, pid: i32) -> Option<Arc<Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&pid)
            .cloned()
    }

    /// All processes.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Answers waits that are over, and clears away processes that have ended.
    pub fn reap(&self) {
        for process in self.processes() {
            if process.has_ended() {
                self.processes
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&process.pid);
                process.tear_down(self);
            } else {
                process.events.reap();
            }
        }
    }
}

/// The file behind /dev/kfd: a doorbell page for each process on each GPU, and the pages of registers.
pub struct Doorbells {
    file: Arc<SharedFile>,
    free: Mutex<BTreeSet<u64>>,
}

impl Doorbells {
    fn new() -> std::io::Result<Self> {
        let file = Arc::new(SharedFile::new("kfd-sim-doorbells", DOORBELL_FILE)?);
        let free = (1..DOORBELL_FILE / DOORBELL_STRIDE)
            .map(|slot| slot * DOORBELL_STRIDE)
            .collect();
        Ok(Self {
            file,
            free: Mutex::new(free),
        })
    }

    /// The file.
    pub fn file(&self) -> Arc<SharedFile> {
        Arc::clone(&self.file)
    }

    /// A free doorbell page.
    pub fn take_page(&self) -> Option<u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    /// A page that is not used any more.
    pub fn give_page(&self, offset: u64) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).insert(offset);
    }

    /// The page of registers that user space may write (HDP flush) of a GPU.
    pub fn register_page(gpu: usize) -> u64 {
        PAGE * (gpu as u64 + 1)
    }
}
