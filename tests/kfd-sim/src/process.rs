//! A client process as KFD sees it: its memory, events and queues.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::asic::Asic;
use crate::dmabuf::Shared;
use crate::events::Events;
use crate::machine::Machine;
use crate::memory::Extent;
use crate::queue::Queue;
use crate::vm::AddressSpace;

/// The identity of a program in a process. It distinguishes two programs with the same process id: an exec changes the second
/// field, and a reuse of the id changes the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    start_time: String,
    stack: String,
}

impl Identity {
    /// Returns the current identity of the process `pid`.
    pub fn of(pid: i32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // The name, in parentheses, may contain any characters. Fields 3 and later follow it.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied().unwrap_or("").to_owned();
        Ok(Self {
            start_time: field(22),
            stack: field(28),
        })
    }
}

/// Returns the process that a thread belongs to, because FUSE and seccomp report thread ids.
pub fn thread_group(tid: u32, guess: Option<i32>) -> i32 {
    let tid = tid as i32;
    if let Some(pid) = guess
        && Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
    {
        return pid;
    }
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    line.and_then(|pid| pid.trim().parse().ok()).unwrap_or(tid)
}

/// A buffer created by ALLOC_MEMORY_OF_GPU.
#[derive(Clone)]
pub struct Buffer {
    /// Its address in the client.
    pub va: u64,
    /// Its size in bytes.
    pub size: u64,
    /// Its part of the render node's memory file, if it is there.
    pub memory: Option<Arc<Extent>>,
    /// The index of its GPU.
    pub gpu: usize,
    /// Whether it counts as device memory.
    pub vram: bool,
    /// The flags it was allocated with.
    pub flags: u32,
}

impl Buffer {
    /// Returns the buffer as other processes see it, if they can.
    pub fn shared(&self) -> Option<Shared> {
        Some(Shared {
            memory: Arc::clone(self.memory.as_ref()?),
            gpu: self.gpu,
            flags: self.flags,
        })
    }
}

/// The state that ioctls change.
#[derive(Default)]
pub struct State {
    /// Buffers by handle.
    pub buffers: BTreeMap<u64, Buffer>,
    /// Objects of the render nodes by handle.
    pub objects: BTreeMap<u32, Shared>,
    /// Queues by id.
    pub queues: BTreeMap<u32, Queue>,
    /// For each GPU with queues: the doorbell page and the doorbells in use.
    pub doorbells: BTreeMap<usize, DoorbellPage>,
    /// Whether page-fault retry is enabled.
    pub xnack: bool,
    /// Whether the runtime has announced itself.
    pub runtime_enabled: bool,
}

impl State {
    /// Returns whether device memory is at that address.
    pub fn is_vram(&self, va: u64) -> bool {
        let holds = |buffer: &&Buffer| buffer.va <= va && va - buffer.va < buffer.size;
        self.buffers.values().find(holds).is_some_and(|buffer| buffer.vram)
    }

    /// Returns the device memory in use on a GPU.
    pub fn vram_used(&self, gpu: usize) -> u64 {
        self.buffers
            .values()
            .filter(|buffer| buffer.vram && buffer.gpu == gpu)
            .map(|buffer| buffer.size)
            .sum()
    }
}

/// The doorbells of one process on one GPU.
#[derive(Debug)]
pub struct DoorbellPage {
    /// Its offset in the file behind /dev/kfd.
    pub offset: u64,
    used: Vec<bool>,
}

impl DoorbellPage {
    /// Returns a page without queues.
    pub fn new(offset: u64) -> Self {
        Self {
            offset,
            used: vec![false; (Asic::DOORBELL_PAGE / 8) as usize],
        }
    }

    /// Takes a free doorbell and returns its place.
    pub fn take(&mut self) -> Option<u64> {
        let index = self.used.iter().position(|used| !used)?;
        self.used[index] = true;
        Some(self.offset + index as u64 * 8)
    }

    /// Frees the doorbell at that place.
    pub fn give(&mut self, doorbell: u64) {
        if let Some(used) = self.used.get_mut(((doorbell - self.offset) / 8) as usize) {
            *used = false;
        }
    }
}

/// A client process.
pub struct Process {
    /// Thread-group id, in the simulator's pid namespace.
    pub pid: i32,
    /// The identity of the program in that process.
    pub identity: Identity,
    /// Its memory.
    pub space: Arc<AddressSpace>,
    /// Its events.
    pub events: Events,
    state: Mutex<State>,
    alive: AtomicBool,
    pidfd: OwnedFd,
}

impl Process {
    /// Returns a process that has just opened /dev/kfd.
    pub fn new(pid: i32, identity: Identity, machine: &Machine) -> io::Result<Self> {
        // SAFETY: pidfd_open takes integers; the result is checked.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            pid,
            identity,
            space: Arc::new(AddressSpace::new(pid, Arc::clone(&machine.vram))),
            events: Events::default(),
            state: Mutex::default(),
            alive: AtomicBool::new(true),
            // SAFETY: the descriptor was just created and has no other owner.
            pidfd: unsafe { OwnedFd::from_raw_fd(fd as i32) },
        })
    }

    /// Locks the state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the process's memory may still be written.
    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::SeqCst) && self.space.exists()
    }

    /// Returns whether the process has exited.
    pub fn has_ended(&self) -> bool {
        let mut poll = libc::pollfd {
            fd: self.pidfd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: `poll` is one valid pollfd; a timeout of 0 does not block.
        unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
    }

    /// Stops all queues and releases all memory.
    pub fn tear_down(&self, machine: &Machine) {
        self.alive.store(false, Ordering::SeqCst);
        self.events.abandon();
        let state = std::mem::take(&mut *self.state());
        drop(state.queues);
        for page in state.doorbells.into_values() {
            machine.doorbells.give_page(page.offset);
        }
        for buffer in state.buffers.into_values() {
            self.space.remove(buffer.va);
        }
        // The folder is there only if the process had queues.
        let _ = fs::remove_dir_all(machine.sysfs_proc.join(self.pid.to_string()));
        machine.truth.line(
            || serde_json::json!({"ev": "process_end", "pid": self.pid, "time_ns": crate::clock::monotonic_ns()}),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doorbells_are_reused() {
        let mut page = DoorbellPage::new(1 << 32);
        let first = page.take().unwrap();
        assert_eq!(first, 1 << 32);
        assert_eq!(page.take(), Some((1 << 32) + 8));
        page.give(first);
        assert_eq!(page.take(), Some(first));
        for _ in 2..1024 {
            assert!(page.take().is_some());
        }
        assert_eq!(page.take(), None);
    }

    #[test]
    fn identity_of_a_running_process_is_stable() {
        let pid = std::process::id() as i32;
        assert_eq!(Identity::of(pid).unwrap(), Identity::of(pid).unwrap());
        assert!(Identity::of(1 << 30).is_err());
    }
}
