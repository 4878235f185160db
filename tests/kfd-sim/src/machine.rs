//! The simulated machine: its GPUs, their memory, and the processes that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use crate::asic::Asic;
use crate::dmabuf::Exports;
use crate::ioctl::failure::Failure;
use crate::kernels::Kernels;
use crate::memory::{PAGE, SharedFile};
use crate::process::{Identity, Process};
use crate::queue::bell::BellWatch;
use crate::topology;
use crate::truth::Truth;

/// Size of the device memory of all GPUs, and of the host memory that they map. The file is sparse: only touched pages take space.
const VRAM_FILE: u64 = 4 << 40;

/// The memory of the mock kernel module.
const DRIVER_MEMORY: &str = "/sys/kernel/debug/drm-sched-mock/memory";

/// Space for 256 doorbell pages that are 4 GiB apart.
const DOORBELL_FILE: u64 = 1 << 40;

/// The distance between doorbell pages. libhsakmt 5.2.3 masks the offset before it knows the page's size; only multiples of 4 GiB
/// survive this. (With the real driver, whose offsets differ above, the mask happens to be harmless.)
const DOORBELL_STRIDE: u64 = 1 << 32;

/// The state that does not change while the simulator runs.
pub struct Machine {
    /// The kind of all GPUs.
    pub asic: &'static Asic,
    /// The number of GPUs.
    pub gpus: usize,
    /// The memory behind the render nodes.
    pub vram: Arc<SharedFile>,
    /// The doorbells and registers behind /dev/kfd.
    pub doorbells: Doorbells,
    /// The watch over the doorbells of idle queues.
    pub bells: Arc<BellWatch>,
    /// Kernels with effects.
    pub kernels: Kernels,
    /// The shortest duration of a dispatch.
    pub dispatch_time: Duration,
    /// Failures to inject.
    pub failures: Vec<Failure>,
    /// The log.
    pub truth: Arc<Truth>,
    /// The location of the driver's per-process files (`/sys/class/kfd/kfd/proc`).
    pub sysfs_proc: PathBuf,
    /// Whether clients map the memory files themselves. Set when the kernel has opened the FUSE session.
    pub passthrough: OnceLock<bool>,
    /// Whether the memory of the render nodes is the mock kernel module's.
    pub driver_memory: bool,
    /// Buffers that processes share.
    pub exports: Exports,
    processes: Mutex<BTreeMap<i32, Arc<Process>>>,
}

impl Machine {
    /// Starts the machine.
    pub fn new(
        (asic, gpus): (&'static Asic, usize),
        kernels: Kernels,
        dispatch_time: Duration,
        failures: Vec<Failure>,
        truth: Arc<Truth>,
        sysfs_proc: PathBuf,
        driver_memory: bool,
    ) -> Result<Self> {
        let vram = if driver_memory {
            let file = File::options().read(true).write(true).open(DRIVER_MEMORY);
            let file = file.with_context(|| format!("open {DRIVER_MEMORY} of drm-sched-mock"))?;
            SharedFile::of(file, VRAM_FILE)
        } else {
            SharedFile::new("kfd-sim-vram", VRAM_FILE)
        };
        Ok(Self {
            asic,
            gpus,
            vram: Arc::new(vram.context("the memory file of the render nodes")?),
            driver_memory,
            doorbells: Doorbells::new().context("the memory file of the doorbells")?,
            bells: BellWatch::start()?,
            kernels,
            dispatch_time,
            failures,
            truth,
            sysfs_proc,
            passthrough: OnceLock::new(),
            exports: Exports::default(),
            processes: Mutex::default(),
        })
    }

    /// Returns the index of the GPU with that KFD id.
    pub fn gpu_index(&self, gpu_id: u32) -> Option<usize> {
        (0..self.gpus).find(|&index| topology::gpu_id(index) == gpu_id)
    }

    /// Returns the process `pid`, which is known from its first open of /dev/kfd on. Creates a new one if the process has executed
    /// another program since.
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

    /// Returns the process `pid`, if it has opened /dev/kfd.
    pub fn known_process(&self, pid: i32) -> Option<Arc<Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&pid)
            .cloned()
    }

    /// Returns all processes.
    pub fn processes(&self) -> Vec<Arc<Process>> {
        self.processes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }

    /// Answers waits that are over, and removes processes that have exited.
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

/// The file behind /dev/kfd: a doorbell page for each process on each GPU, and the register pages.
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

    /// Returns the file.
    pub fn file(&self) -> Arc<SharedFile> {
        Arc::clone(&self.file)
    }

    /// Returns a free doorbell page.
    pub fn take_page(&self) -> Option<u64> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop_first()
    }

    /// Frees a page that is not used any more.
    pub fn give_page(&self, offset: u64) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).insert(offset);
    }

    /// Returns a GPU's page of registers that user space may write (HDP flush).
    pub fn register_page(gpu: usize) -> u64 {
        PAGE * (gpu as u64 + 1)
    }
}
