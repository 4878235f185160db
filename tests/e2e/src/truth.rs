//! The simulator's truth log: what the device saw.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use serde::Deserialize;

/// A line of the log, of the kinds that are compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
enum Line {
    QueueCreate {
        pid: u32,
        queue_id: u32,
        gpu_id: u32,
        #[serde(rename = "type")]
        kind: u32,
        ring_base: u64,
        ring_size: u64,
        wptr: u64,
        doorbell_offset: u64,
        priority: u32,
    },
    QueueError {
        pid: u32,
        queue_id: u32,
    },
    Doorbell {
        pid: u32,
        queue_id: u32,
        value: u64,
    },
    Packet {
        pid: u32,
        queue_id: u32,
        #[serde(flatten)]
        packet: Packet,
    },
    Sdma {
        pid: u32,
        queue_id: u32,
        #[serde(flatten)]
        command: Sdma,
    },
    Timed {
        pid: u32,
        queue_id: u32,
        index: u64,
        start_ticks: u64,
        end_ticks: u64,
    },
    Kernel {
        kernel_object: u64,
        name: String,
    },
    Ioctl(Ioctl),
    #[serde(other)]
    Other,
}

/// A queue and what went through it.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Process.
    pub pid: u32,
    /// KFD queue id; reused after the queue's end.
    pub queue_id: u32,
    /// KFD gpu id.
    pub gpu_id: u32,
    /// `queue_type` of CREATE_QUEUE.
    pub kind: u32,
    /// Ring's address.
    pub ring_base: u64,
    /// Ring's bytes.
    pub ring_size: u64,
    /// Write pointer's address.
    pub wptr: u64,
    /// What the device answered.
    pub doorbell_offset: u64,
    /// 0 to 15.
    pub priority: u32,
    /// Whether the device gave the queue up.
    pub failed: bool,
    /// Doorbell values, as the device noticed them: it polls, and may miss one that was overwritten at once.
    pub doorbells: Vec<u64>,
    /// Packets taken, in order.
    pub packets: Vec<Packet>,
    /// When packets ran that told it to their completion signals, by index: ticks of the GPU's clock, start and end.
    pub times: BTreeMap<u64, (u64, u64)>,
    /// SDMA commands taken, in order.
    pub commands: Vec<Sdma>,
}

/// An SDMA command that the device took.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Sdma {
    /// `copy`, `copy_rect`, `fill`, `fence`, ...
    pub op: String,
    /// Where in the command stream.
    pub offset: u64,
    /// Of a copy: what is read.
    pub src: u64,
    /// What is written.
    pub dst: u64,
    /// Of a copy or a fill: how much.
    pub bytes: u64,
}

/// An AQL packet that the device took, with the simulator's own decoding.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Packet {
    /// Index in its queue.
    pub index: u64,
    /// `kernel_dispatch`, `barrier_and`, ...
    pub kind: String,
    /// 64 bytes in hexadecimal.
    pub bytes: String,
    /// Of a dispatch: its kernel descriptor.
    #[serde(default)]
    pub kernel_object: u64,
    /// Of a dispatch: its arguments.
    #[serde(default)]
    pub kernarg_address: u64,
    /// Of a dispatch: work items.
    #[serde(default)]
    pub grid: [u32; 3],
    /// Of a dispatch: work items a workgroup.
    #[serde(default)]
    pub workgroup: [u16; 3],
    /// Handle, or 0.
    pub completion_signal: u64,
    /// When the device took it.
    pub time_ns: u64,
}

/// An ioctl that the device answered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ioctl {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// `kfd`, or the render node's name.
    pub dev: String,
    /// The command.
    pub cmd: u32,
    /// Its name.
    pub name: Option<String>,
    /// The argument before.
    pub arg_in: String,
    /// The argument after.
    pub arg_out: String,
    /// 0 or a negative errno.
    pub ret: i64,
    /// When the device heard of it.
    pub enter_ns: u64,
}

/// The whole log.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Queues in the order of creation.
    pub queues: Vec<Queue>,
    /// Ioctls in the order of their answers.
    pub ioctls: Vec<Ioctl>,
    /// Bytes of the copies that the copy engines made.
    copied: u64,
    /// Names of kernels that the simulator read from the program's memory: those of HIP's own, by descriptor.
    names: HashMap<u64, String>,
}

impl Truth {
    /// Reads a log.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut truth = Self::default();
        // Ids are reused: the queue meant is always the last one of that id.
        let mut latest: HashMap<(u32, u32), usize> = HashMap::new();
        for line in text.lines() {
            let line = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"));
            match line {
                Line::QueueCreate {
                    pid,
                    queue_id,
                    gpu_id,
                    kind,
                    ring_base,
                    ring_size,
                    wptr,
                    doorbell_offset,
                    priority,
                } => {
                    latest.insert((pid, queue_id), truth.queues.len());
                    truth.queues.push(Queue {
                        pid,
                        queue_id,
                        gpu_id,
                        kind,
                        ring_base,
                        ring_size,
                        wptr,
                        doorbell_offset,
                        priority,
                        ..Queue::default()
                    });
                }
                Line::QueueError { pid, queue_id } => truth.queues[latest[&(pid, queue_id)]].failed = true,
                Line::Doorbell { pid, queue_id, value } => {
                    truth.queues[latest[&(pid, queue_id)]].doorbells.push(value);
                }
                Line::Packet { pid, queue_id, packet } => {
                    truth.queues[latest[&(pid, queue_id)]].packets.push(packet);
                }
                Line::Timed {
                    pid,
                    queue_id,
                    index,
                    start_ticks,
                    end_ticks,
                } => {
                    let times = &mut truth.queues[latest[&(pid, queue_id)]].times;
                    times.insert(index, (start_ticks, end_ticks));
                }
                Line::Kernel { kernel_object, name } => {
                    truth.names.insert(kernel_object, name);
                }
                Line::Sdma { pid, queue_id, command } => {
                    if command.op == "copy" {
                        truth.copied += command.bytes;
                    }
                    truth.queues[latest[&(pid, queue_id)]].commands.push(command);
                }
                Line::Ioctl(ioctl) => truth.ioctls.push(ioctl),
                Line::Other => {}
            }
        }
        truth
    }

    /// Bytes of the copies that the copy engines made.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Name of a kernel that is none of the project's own.
    #[must_use]
    pub fn kernel_name(&self, kernel_object: u64) -> Option<&str> {
        self.names.get(&kernel_object).map(String::as_str)
    }

    /// Kernel dispatches of every queue.
    #[must_use]
    pub fn dispatches(&self) -> u64 {
        let of = |queue: &Queue| queue.packets.iter().filter(|p| p.kind == "kernel_dispatch").count();
        self.queues.iter().map(of).sum::<usize>() as u64
    }
}

impl Queue {
    /// Whether its packets are AQL packets.
    #[must_use]
    pub fn is_aql(&self) -> bool {
        self.kind == 2
    }
}
