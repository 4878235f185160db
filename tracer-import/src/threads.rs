//! Which process a thread belongs to, by what the text says of either, and by what created them.

use std::collections::HashMap;

/// Threads that are kept. Beyond it, threads have no process.
const MAX_THREADS: usize = 1 << 16;

/// The threads whose process is known.
#[derive(Debug, Default)]
pub struct Threads {
    processes: HashMap<u32, u32>,
}

impl Threads {
    /// Returns the process of a thread; `None` if the text does not show it.
    pub fn process(&self, tid: u32) -> Option<u32> {
        self.processes.get(&tid).copied()
    }

    /// Notes that a thread is of a process.
    pub fn is_of(&mut self, tid: u32, process: u32) {
        self.insert(tid, process);
    }

    /// Notes a program's start: the thread is the first one of its process from then on.
    pub fn exec(&mut self, tid: u32) {
        self.insert(tid, tid);
    }

    /// Notes that a thread created a thread or a process. Returns the parent of a process that was created, if it is known.
    pub fn created(&mut self, tid: u32, child: u32, is_thread: bool) -> Option<u32> {
        let process = self.process(tid);
        if !is_thread {
            self.insert(child, child);
            return process;
        }
        match process {
            Some(process) => self.insert(child, process),
            // A former thread may have had its number.
            None => {
                self.processes.remove(&child);
            }
        }
        None
    }

    /// Notes the end of a thread. Returns the process that ended, if it was its first thread.
    pub fn exit(&mut self, tid: u32) -> Option<u32> {
        self.processes.remove(&tid).filter(|&process| process == tid)
    }

    fn insert(&mut self, tid: u32, process: u32) {
        if tid != 0 && (self.processes.len() < MAX_THREADS || self.processes.contains_key(&tid)) {
            self.processes.insert(tid, process);
        }
    }
}
