//! Processes and threads, by trace events. A record names its thread only: this knows the process of each.

use std::{collections::HashMap, fs};

use tracer_core::event::Origin;

use crate::{
    CaptureError,
    probes::tracefs::{self, Format},
    samples::{Record, half, string, word},
    target::process_stat::status_field,
};

/// The event of a new thread or process: group, name, filter.
pub const NEW: Watched = ("task", "task_newtask", None);
/// The event of a new program.
pub const EXEC: Watched = ("sched", "sched_process_exec", None);
/// The event of a thread that exits.
pub const EXIT: Watched = ("sched", "sched_process_exit", None);
/// The event of a file that is about to be mapped, executable (`PROT_EXEC` is 4, and `MAP_ANONYMOUS` is 0x20).
pub const MMAP: Watched = ("syscalls", "sys_enter_mmap", Some("(prot & 4) && !(flags & 0x20)"));

/// An event that is enabled: group, name, filter.
pub type Watched = (&'static str, &'static str, Option<&'static str>);

/// Flag of clone: the new task is a thread of the same process (include/uapi/linux/sched.h).
const CLONE_THREAD: u64 = 0x1_0000;
/// Longest name of a process, bytes: that of its program is cut (`TASK_COMM_LEN`, with a 0).
const COMM: usize = 15;
/// Most threads whose process is remembered. Without room, all are looked up again.
const MAX_TASKS: usize = 1 << 16;

/// Most threads that are looked up at once: each takes some microseconds.
const MAX_LOOKS: usize = 4096;

/// Which events these are, and where their fields are.
#[derive(Clone, Copy, Debug)]
struct Layout {
    new: u64,
    new_pid: usize,
    new_flags: usize,
    exec: u64,
    exec_file: usize,
    exec_old_pid: usize,
    exit: u64,
    mmap: u64,
}

/// The processes of threads.
#[derive(Debug)]
pub struct Tasks {
    layout: Layout,
    processes: HashMap<u32, u32>,
}

impl Tasks {
    /// Reads the formats of the events. The calling thread must see tracefs.
    ///
    /// # Errors
    /// Fails with [`CaptureError::NoEvent`] if an event or a field is absent.
    pub fn read() -> Result<Self, CaptureError> {
        let number = |(group, event, _): Watched| tracefs::number(group, event);
        let new = Format::read(NEW.0, NEW.1)?;
        let exec = Format::read(EXEC.0, EXEC.1)?;
        let layout = Layout {
            new: number(NEW)?,
            new_pid: new.require("pid", 4)? as usize,
            new_flags: new.require("clone_flags", 8)? as usize,
            exec: number(EXEC)?,
            exec_file: exec.require_string("filename")? as usize,
            exec_old_pid: exec.require("old_pid", 4)? as usize,
            exit: number(EXIT)?,
            mmap: number(MMAP)?,
        };
        Ok(Self::of(layout))
    }

    fn of(layout: Layout) -> Self {
        Self {
            layout,
            processes: HashMap::new(),
        }
    }

    /// Notes the threads of a process that runs already. Its later threads have records.
    pub fn watch(&mut self, pid: u32) {
        for tid in threads_of(pid) {
            self.add(tid, pid);
        }
    }

    /// Looks again which process each thread belongs to: records of ends and beginnings were lost. A thread that is gone may have
    /// records that were not read.
    pub fn look_again(&mut self) {
        for (&tid, pid) in self.processes.iter_mut().take(MAX_LOOKS) {
            if let Some(now) = process_of(tid) {
                *pid = now;
            }
        }
    }

    /// Returns where a record of this thread comes from.
    pub fn origin(&mut self, tid: u32, time_ns: u64) -> Origin {
        let pid = match self.processes.get(&tid) {
            Some(&pid) => pid,
            // A thread that is gone belongs to a process that is not watched.
            None => process_of(tid).map_or(tid, |pid| self.add(tid, pid)),
        };
        Origin { time_ns, pid, tid }
    }

    fn add(&mut self, tid: u32, pid: u32) -> u32 {
        if self.processes.len() >= MAX_TASKS {
            self.processes.clear();
        }
        self.processes.insert(tid, pid);
        pid
    }

    /// Returns the meaning of a record of one of these events; `None` for another event.
    pub fn take<'a>(&mut self, origin: &mut Origin, number: u64, raw: &'a [u8]) -> Option<Record<'a>> {
        let layout = self.layout;
        let record = if number == layout.new {
            self.new_task(*origin, raw)
        } else if number == layout.exec {
            self.exec(origin, raw)
        } else if number == layout.exit {
            // Its id may be another thread's next.
            self.processes.remove(&origin.tid);
            Some(Record::Exit)
        } else if number == layout.mmap {
            Some(Record::Mapped(None))
        } else {
            return None;
        };
        Some(record.unwrap_or(Record::Unknown))
    }

    fn new_task(&mut self, parent: Origin, raw: &[u8]) -> Option<Record<'static>> {
        let tid = half(raw, self.layout.new_pid)?;
        let is_thread = word(raw, self.layout.new_flags)? & CLONE_THREAD != 0;
        let pid = self.add(tid, if is_thread { parent.pid } else { tid });
        Some(Record::Fork(pid, tid))
    }

    /// A thread that runs a new program becomes the first thread of its process, under the id of the process.
    fn exec<'a>(&mut self, origin: &mut Origin, raw: &'a [u8]) -> Option<Record<'a>> {
        self.processes.remove(&half(raw, self.layout.exec_old_pid)?);
        self.add(origin.tid, origin.tid);
        origin.pid = origin.tid;
        let path = string(raw, self.layout.exec_file)?;
        let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        Some(Record::Exec(&name[..name.len().min(COMM)]))
    }
}

/// Returns the threads of a process.
fn threads_of(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let names = tasks.into_iter().flatten().flatten().map(|task| task.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).collect()
}

/// Returns the process of a thread that runs.
fn process_of(tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status_field(&status, "Tgid")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Tasks {
        Tasks::of(Layout {
            new: 1,
            new_pid: 8,
            new_flags: 16,
            exec: 2,
            exec_file: 8,
            exec_old_pid: 12,
            exit: 3,
            mmap: 4,
        })
    }

    fn new_task(tid: u32, flags: u64) -> Vec<u8> {
        let mut raw = vec![0; 8];
        raw.extend(u64::from(tid).to_ne_bytes());
        raw.extend(flags.to_ne_bytes());
        raw
    }

    /// No thread has such an id, so /proc knows none of them.
    const TID: u32 = u32::MAX - 10;

    #[test]
    fn threads_belong_to_the_process_that_created_them() {
        let mut tasks = tasks();
        let mut parent = tasks.origin(TID, 5);
        assert_eq!((parent.pid, parent.time_ns), (TID, 5));
        let thread = new_task(TID + 1, CLONE_THREAD | 0x100);
        assert_eq!(tasks.take(&mut parent, 1, &thread), Some(Record::Fork(TID, TID + 1)));
        assert_eq!(tasks.origin(TID + 1, 6).pid, TID);
        let mut child = tasks.origin(TID + 1, 6);
        let process = new_task(TID + 2, 0x100);
        assert_eq!(
            tasks.take(&mut child, 1, &process),
            Some(Record::Fork(TID + 2, TID + 2))
        );
        // Its id is free again.
        assert_eq!(tasks.take(&mut child, 3, &[]), Some(Record::Exit));
        assert_eq!(tasks.origin(TID + 1, 7).pid, TID + 1);
        assert_eq!(tasks.take(&mut parent, 1, &thread[..12]), Some(Record::Unknown));
        assert_eq!(tasks.take(&mut parent, 9, &thread), None);
    }

    #[test]
    fn threads_that_ran_before_belong_to_their_process() {
        let mut tasks = tasks();
        let own = std::process::id();
        tasks.watch(own);
        assert_eq!(tasks.processes.get(&own), Some(&own));
        tasks.add(TID, own);
        // It is gone, and still known. This thread's id was another one's.
        tasks.add(own, TID);
        tasks.look_again();
        assert_eq!((tasks.origin(TID, 1).pid, tasks.origin(own, 1).pid), (own, own));
    }

    #[test]
    fn a_new_program_has_the_name_of_its_file() {
        let mut tasks = tasks();
        let mut parent = tasks.origin(TID, 1);
        tasks.take(&mut parent, 1, &new_task(TID + 1, CLONE_THREAD));
        let mut raw = vec![0; 8];
        raw.extend((16_u32 | 40 << 16).to_ne_bytes());
        raw.extend((TID + 1).to_ne_bytes());
        raw.extend(b"/usr/bin/a-name-longer-than-that\0");
        // The second thread runs it, and is the first one from then on.
        let mut origin = tasks.origin(TID, 2);
        assert_eq!(tasks.take(&mut origin, 2, &raw), Some(Record::Exec(b"a-name-longer-t")));
        assert_eq!((origin.pid, tasks.origin(TID + 1, 3).pid), (TID, TID + 1));
    }
}
