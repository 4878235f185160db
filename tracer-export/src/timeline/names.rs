//! Names of tracks, from the rows that describe them.

use std::collections::HashMap;

use tracer_core::tables::{Process, Proxy, Queue};

use super::Track;
use crate::About;

/// Names of what the trace describes.
#[derive(Debug)]
pub(super) struct Names {
    about: About,
    processes: HashMap<u32, String>,
    exits: HashMap<u32, u64>,
    queues: HashMap<u32, String>,
    proxies: HashMap<u32, String>,
    rings: HashMap<(Option<String>, Option<String>), u32>,
    ring_names: Vec<String>,
}

impl Names {
    pub(super) fn new(about: &About) -> Self {
        Self {
            about: about.clone(),
            processes: HashMap::new(),
            exits: HashMap::new(),
            queues: HashMap::new(),
            proxies: HashMap::new(),
            rings: HashMap::new(),
            ring_names: Vec::new(),
        }
    }

    pub(super) fn process(&mut self, row: &Process) {
        let name = if row.comm.is_empty() { "process" } else { &row.comm };
        self.processes.insert(row.pid, name.to_owned());
        match row.exit_ns {
            Some(exit) => self.exits.insert(row.pid, exit),
            None => self.exits.remove(&row.pid),
        };
    }

    pub(super) fn queue(&mut self, row: &Queue) {
        let mut name = format!("queue {}: {}", row.queue, row.kind);
        if let Some(id) = row.queue_id {
            name.push_str(&format!(", KFD queue {id}"));
        }
        if let Some(gpu) = row.gpu_id {
            name.push_str(&format!(", GPU {gpu}"));
        }
        if row.internal == Some(true) {
            name.push_str(", internal");
        }
        self.queues.insert(row.queue, name);
    }

    pub(super) fn proxy(&mut self, row: &Proxy) {
        let name = format!("proxy {}: {:#x}", row.proxy, row.handle);
        self.proxies.insert(row.proxy, name);
    }

    /// Returns the number of a ring in the export.
    pub(super) fn ring(&mut self, device: Option<&str>, ring: Option<&str>) -> u32 {
        let key = (device.map(str::to_owned), ring.map(str::to_owned));
        let number = u32::try_from(self.ring_names.len()).unwrap_or(u32::MAX);
        *self.rings.entry(key).or_insert_with(|| {
            let name = ring.unwrap_or("unknown ring");
            let of = device.map(|device| format!(" ({device})")).unwrap_or_default();
            self.ring_names.push(format!("{name}{of}"));
            number
        })
    }

    /// Returns the exit of a track's process, if it was seen.
    pub(super) fn exit_of(&self, track: Track) -> Option<u64> {
        match track {
            Track::Thread { pid, .. } => self.exits.get(&pid).copied(),
            _ => None,
        }
    }

    pub(super) fn of(&self, track: Track) -> String {
        match track {
            Track::Trace => self.about.named("tracer: the recording"),
            Track::Rings => self.about.named("rings of the kernel driver"),
            Track::Ring { ring } => self.ring_names.get(ring as usize).cloned().unwrap_or_default(),
            Track::Process { pid } => {
                let name = self.processes.get(&pid).map_or("process", String::as_str);
                self.about.named(name)
            }
            Track::Thread { tid, .. } => format!("thread {tid}"),
            Track::Queue { queue, .. } => {
                let name = self.queues.get(&queue).cloned();
                self.about.named(&name.unwrap_or_else(|| format!("queue {queue}")))
            }
            Track::Proxy { proxy, .. } => {
                let name = self.proxies.get(&proxy).cloned();
                name.unwrap_or_else(|| format!("proxy {proxy}"))
            }
        }
    }
}

/// Returns the name of a kernel, or its address if the name is unknown.
pub(super) fn kernel(name: Option<&str>, kernel_object: u64) -> String {
    name.map_or_else(|| format!("kernel {kernel_object:#x}"), str::to_owned)
}
