//! The truth log: one JSON object per line for everything that the device saw.
//!
//! Rare events are formatted by the thread that saw them. Packets and doorbells are passed in batches to the log's own thread and
//! formatted there, so that a burst of packets costs its queue little more than a copy.

mod format;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::aql::packet::RawPacket;
use crate::clock::monotonic_ns;

pub use self::format::hex;

/// An observation of a queue's thread, with its `CLOCK_MONOTONIC` time.
#[derive(Clone, Debug)]
pub enum Seen {
    /// The doorbell's value changed.
    Doorbell { time_ns: u64, value: u64 },
    /// A packet that the processor took, as it was before its header was invalidated.
    Packet { time_ns: u64, index: u64, bytes: RawPacket },
    /// The kernel of the packet at this index has a name in a code object that the client has loaded.
    Kernel {
        time_ns: u64,
        index: u64,
        kernel_object: u64,
        name: String,
    },
    /// A packet completed, and its completion signal gets its times, in ticks of the GPU's clock.
    Timed {
        time_ns: u64,
        index: u64,
        start: u64,
        end: u64,
    },
    /// A PM4 packet.
    Pm4 {
        time_ns: u64,
        op: &'static str,
        address: u64,
        offset: u64,
        /// The buffer that it is in; 0 if it is in the ring.
        buffer: u64,
        /// Of a dispatch: the code, the work-groups, and the threads of each.
        dispatch: Option<(u64, [u32; 3], [u32; 3])>,
    },
    /// A copy-engine packet.
    Sdma {
        time_ns: u64,
        op: &'static str,
        src: u64,
        dst: u64,
        bytes: u64,
        offset: u64,
    },
}

enum Message {
    Line(Value),
    Batch { pid: i32, queue_id: u32, seen: Vec<Seen> },
    Stop,
}

/// The totals, for the last line.
#[derive(Debug, Default)]
pub struct Counts {
    /// Answered ioctls.
    pub ioctls: AtomicU64,
    /// Created queues.
    pub queues: AtomicU64,
    /// Observed changes of doorbells.
    pub doorbells: AtomicU64,
    /// Processed AQL packets.
    pub packets: AtomicU64,
    /// Kernel dispatches among them.
    pub dispatches: AtomicU64,
    /// Dispatches of ROCr's own copy and fill kernels.
    pub blits: AtomicU64,
    /// Dispatches of unknown kernels, which therefore had no effect.
    pub unknown_kernels: AtomicU64,
    /// Processed copy-engine packets.
    pub sdma: AtomicU64,
    /// Processed PM4 packets.
    pub pm4: AtomicU64,
    /// Dispatches among them.
    pub pm4_dispatches: AtomicU64,
    /// Queues put into error.
    pub queue_errors: AtomicU64,
}

impl Counts {
    fn to_json(&self) -> Value {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        json!({
            "ev": "end", "time_ns": monotonic_ns(), "ioctls": of(&self.ioctls), "queues": of(&self.queues),
            "doorbells": of(&self.doorbells), "packets": of(&self.packets), "dispatches": of(&self.dispatches),
            "blits": of(&self.blits), "unknown_kernels": of(&self.unknown_kernels), "sdma": of(&self.sdma),
            "pm4": of(&self.pm4), "pm4_dispatches": of(&self.pm4_dispatches), "queue_errors": of(&self.queue_errors),
        })
    }
}

/// The log, or nothing if none was requested. The counts are kept either way.
pub struct Truth {
    /// Totals for the end line.
    pub counts: Counts,
    sender: Option<Sender<Message>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Truth {
    /// Starts the log's thread if there is a file to write.
    pub fn start(path: Option<&Path>) -> Result<Self> {
        let mut truth = Self {
            counts: Counts::default(),
            sender: None,
            writer: Mutex::new(None),
        };
        if let Some(path) = path {
            let file = File::create(path).with_context(|| format!("create {}", path.display()))?;
            let (sender, receiver) = channel();
            let writer = std::thread::Builder::new()
                .name("truth".into())
                .spawn(move || write_all(file, &receiver))?;
            truth.sender = Some(sender);
            truth.writer = Mutex::new(Some(writer));
        }
        Ok(truth)
    }

    /// Returns whether anything is written. Hot paths skip their work if not.
    pub fn is_on(&self) -> bool {
        self.sender.is_some()
    }

    /// Writes one line. `line` is called only if there is a log.
    pub fn line(&self, line: impl FnOnce() -> Value) {
        if let Some(sender) = &self.sender {
            // The receiver lives until `finish`. A line after that is discarded.
            let _ = sender.send(Message::Line(line()));
        }
    }

    /// Passes on a queue's observations, in order.
    pub fn batch(&self, pid: i32, queue_id: u32, seen: &mut Vec<Seen>) {
        if seen.is_empty() {
            return;
        }
        let seen = std::mem::take(seen);
        if let Some(sender) = &self.sender {
            // As in `line`.
            let _ = sender.send(Message::Batch { pid, queue_id, seen });
        }
    }

    /// Writes the end line and closes the file.
    pub fn finish(&self) {
        self.line(|| self.counts.to_json());
        if let Some(sender) = &self.sender {
            // A writer that has exited has already closed the file.
            let _ = sender.send(Message::Stop);
        }
        if let Some(writer) = self.writer.lock().ok().and_then(|mut writer| writer.take())
            && writer.join().is_err()
        {
            log::error!("the truth log's thread panicked");
        }
    }
}

fn write_all(file: File, receiver: &Receiver<Message>) {
    let mut out = BufWriter::with_capacity(1 << 20, file);
    let mut text = Vec::new();
    loop {
        let message = match receiver.try_recv() {
            Ok(message) => message,
            Err(_) => match receiver.recv_timeout(Duration::from_millis(20)) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => {
                    if out.flush().is_err() {
                        break;
                    }
                    match receiver.recv() {
                        Ok(message) => message,
                        Err(_) => break,
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
            },
        };
        text.clear();
        match message {
            Message::Line(value) => {
                text.extend_from_slice(value.to_string().as_bytes());
                text.push(b'\n');
            }
            Message::Batch { pid, queue_id, seen } => format::push_batch(&mut text, pid, queue_id, &seen),
            Message::Stop => break,
        }
        if let Err(error) = out.write_all(&text) {
            log::error!("the truth log cannot be written: {error}");
            return;
        }
    }
    if let Err(error) = out.flush() {
        log::error!("the truth log cannot be written: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_json_and_in_order() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let truth = Truth::start(Some(file.path())).unwrap();
        truth.line(|| json!({"ev": "start"}));
        let mut bytes = [0; 64];
        bytes[0] = 2;
        bytes[0x20..0x28].copy_from_slice(&0x1234u64.to_le_bytes());
        bytes[0x38..0x40].copy_from_slice(&0x5678u64.to_le_bytes());
        let mut seen = vec![
            Seen::Doorbell { time_ns: 1, value: 0 },
            Seen::Packet {
                time_ns: 2,
                index: 0,
                bytes,
            },
            Seen::Kernel {
                time_ns: 2,
                index: 0,
                kernel_object: 0x1234,
                name: "a\"b\n".to_owned(),
            },
            Seen::Sdma {
                time_ns: 3,
                op: "copy",
                src: 1,
                dst: 2,
                bytes: 3,
                offset: 4,
            },
        ];
        truth.batch(7, 1, &mut seen);
        assert!(seen.is_empty());
        truth.finish();
        let text = std::fs::read_to_string(file.path()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<_> = lines.iter().map(|line| line["ev"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["start", "doorbell", "packet", "kernel", "sdma", "end"]);
        assert_eq!(lines[2]["kind"], "kernel_dispatch");
        assert_eq!(lines[2]["kernel_object"], 0x1234);
        assert_eq!(lines[2]["completion_signal"], 0x5678);
        assert_eq!(lines[2]["bytes"].as_str().unwrap().len(), 128);
        assert_eq!((&lines[3]["queue_id"], &lines[3]["index"]), (&json!(1), &json!(0)));
        assert_eq!(lines[3]["name"], "a\"b\n");
    }

    #[test]
    fn without_a_file_nothing_is_formatted() {
        let truth = Truth::start(None).unwrap();
        truth.line(|| panic!("formatted"));
        truth.finish();
    }
}
