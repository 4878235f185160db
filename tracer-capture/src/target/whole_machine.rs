//! Tracing of the whole machine. tracer attaches to processes that already use a GPU; those that begin to use one later enter by
//! themselves, in eBPF (`tracer-ebpf/src/system.rs`).

use std::{collections::BTreeSet, io, path::Path, time::Duration};

use aya::maps::MapError;

use crate::{
    CaptureError, examination,
    session::{self, Session},
    sys,
    target::{attach::Attached, candidate::Candidate, elsewhere, process_stat},
};

/// The KFD's device, by the name under which a process opened it.
const DEVICE: &str = "/dev/kfd";
/// Start of the file names of runtimes, in any folder.
const RUNTIME: &str = "libhsa-runtime64";
/// How long tracer reads the mappings of a process.
const PATIENCE: Duration = Duration::from_millis(500);
/// BPF_NOEXIST of include/uapi/linux/bpf.h.
const NOEXIST: u64 = 1;

impl Session {
    /// Traces every process of the machine: those that use a GPU from now on, others from their first use of one.
    ///
    /// A process that tracer cannot attach to becomes a warning of the inventory.
    ///
    /// # Errors
    /// Returns [`CaptureError::System`] if there are too many processes.
    pub fn trace_all(&mut self) -> Result<Vec<Attached>, CaptureError> {
        let mut known = BTreeSet::new();
        let mut has_runtime = BTreeSet::new();
        self.attach_users(&mut known, &mut has_runtime)?;
        // The second search finds processes that opened the device after the first; later processes enter by themselves.
        self.ebpf()?.counting.admit();
        self.attach_users(&mut known, &mut has_runtime)?;
        self.count(known, has_runtime)
    }

    /// Attaches to processes that use a GPU and are not `known` yet. Their submissions do not count yet.
    fn attach_users(&mut self, known: &mut BTreeSet<u32>, has_runtime: &mut BTreeSet<u32>) -> Result<(), CaptureError> {
        let mut candidates = Vec::new();
        for pid in &self.gpu_users() - known {
            match Candidate::of(pid) {
                Ok(candidate) => candidates.push(candidate),
                // This process has exited and uses nothing any more.
                Err(_) if !process_stat::is_alive(pid) => {}
                Err(error) => examination::lock(&self.inventory).warn(error.to_string()),
            }
        }
        let mut new = Vec::new();
        for candidate in candidates {
            // A process that has entered by itself in between was paused for its probes.
            if !self.insert_new(candidate.pid)? {
                continue;
            }
            // The id may have belonged to another process by the time that it was entered.
            if sys::has_ended(&candidate.pidfd) {
                // The process exit may have removed it.
                let _ = self.ebpf()?.traced.remove(&candidate.pid);
                continue;
            }
            self.insert_user(candidate.pid)?;
            new.push(candidate.pid);
        }
        known.extend(&new);
        has_runtime.extend(self.scan(new)?);
        Ok(())
    }

    /// Returns processes that have the KFD's device open, by their descriptors or the driver's own files, or have mapped a runtime.
    fn gpu_users(&self) -> BTreeSet<u32> {
        let mut users: BTreeSet<u32> = process_stat::all()
            .filter(|&pid| has_device(pid) || self.has_runtime(pid))
            .collect();
        users.extend(elsewhere::listed());
        users.remove(&std::process::id());
        users
    }

    fn has_runtime(&self, pid: u32) -> bool {
        let examine = self.work.examine(pid, PATIENCE);
        let mappings = examine.and_then(|examine| examine.mappings()).unwrap_or_default();
        let name = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with(RUNTIME));
        mappings.iter().any(|mapping| name(&mapping.path))
    }

    /// Enters a process among the traced ones, unless it has entered by itself; returns whether it had not.
    fn insert_new(&mut self, pid: u32) -> Result<bool, CaptureError> {
        match self.ebpf()?.traced.insert(pid, session::GENERATION, NOEXIST) {
            Ok(()) => Ok(true),
            Err(MapError::SyscallError(error)) if error.io_error.raw_os_error() == Some(libc::EEXIST) => Ok(false),
            Err(error) => Err(CaptureError::system("tracing a process", io::Error::other(error))),
        }
    }
}

fn has_device(pid: u32) -> bool {
    process_stat::open_files(pid).any(|file| file == Path::new(DEVICE))
}
