//! The simulator's truth log: everything that the device saw.

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
};

use serde::Deserialize;

/// A line of the log, of a kind that is compared.
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
        ring_in_vram: bool,
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
        pid: u32,
        queue_id: u32,
        index: u64,
        kernel_object: u64,
        name: String,
    },
    Pm4 {
        op: String,
    },
    Ioctl(Ioctl),
    #[serde(other)]
    Other,
}

/// A queue and everything that went through it.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The process.
    pub pid: u32,
    /// The KFD queue id, which is reused after the queue is destroyed.
    pub queue_id: u32,
    /// The KFD gpu id.
    pub gpu_id: u32,
    /// `queue_type` of CREATE_QUEUE.
    pub kind: u32,
    /// The ring's address.
    pub ring_base: u64,
    /// The ring's size in bytes.
    pub ring_size: u64,
    /// Whether the ring is in the GPU's memory.
    pub ring_in_vram: bool,
    /// The write pointer's address.
    pub wptr: u64,
    /// The doorbell offset that the device returned.
    pub doorbell_offset: u64,
    /// The priority, 0 to 15.
    pub priority: u32,
    /// Whether the device gave up the queue.
    pub failed: bool,
    /// Doorbell values as the device noticed them. The device polls, and may miss a value that was overwritten at once.
    pub doorbells: Vec<u64>,
    /// The packets taken, in order.
    pub packets: Vec<Packet>,
    /// The times at which packets ran that wrote them to their completion signals, by index: ticks of the GPU's clock, start and
    /// end.
    pub times: BTreeMap<u64, (u64, u64)>,
    /// The SDMA commands taken, in order.
    pub commands: Vec<Sdma>,
}

/// An SDMA command that the device took.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Sdma {
    /// `copy`, `copy_rect`, `fill`, `fence`, ...
    pub op: String,
    /// The offset in the command stream.
    pub offset: u64,
    /// The source of a copy.
    pub src: u64,
    /// The destination.
    pub dst: u64,
    /// The number of bytes of a copy or a fill.
    pub bytes: u64,
}

/// An AQL packet that the device took, with the simulator's own decoding.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Packet {
    /// The index in its queue.
    pub index: u64,
    /// `kernel_dispatch`, `ext_kernel_dispatch`, `barrier_and`, ...
    pub kind: String,
    /// The 64 bytes, in hexadecimal.
    pub bytes: String,
    /// The kernel descriptor of a dispatch.
    #[serde(default)]
    pub kernel_object: u64,
    /// The arguments of a dispatch.
    #[serde(default)]
    pub kernarg_address: u64,
    /// The work-items of a dispatch.
    #[serde(default)]
    pub grid: [u32; 3],
    /// The work-items per workgroup of a dispatch.
    #[serde(default)]
    pub workgroup: [u16; 3],
    /// The signal's handle, or 0.
    pub completion_signal: u64,
    /// The time at which the device took it.
    pub time_ns: u64,
    /// The name of its kernel then, which the simulator read from the program's memory; `None` for kernels that it executes by their
    /// machine code.
    #[serde(skip)]
    pub kernel: Option<String>,
}

impl Packet {
    /// Returns whether it runs a kernel, in either form.
    #[must_use]
    pub fn is_dispatch(&self) -> bool {
        ["kernel_dispatch", "ext_kernel_dispatch"].contains(&self.kind.as_str())
    }
}

/// An ioctl that the device answered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Ioctl {
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// `kfd`, or the render node's name.
    pub dev: String,
    /// The command.
    pub cmd: u32,
    /// Its name.
    pub name: Option<String>,
    /// The argument before the call.
    pub arg_in: String,
    /// The argument after the call.
    pub arg_out: String,
    /// 0 or a negative errno.
    pub ret: i64,
    /// The time at which the device received it.
    pub enter_ns: u64,
}

/// The whole log.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// The queues, in the order of creation.
    pub queues: Vec<Queue>,
    /// The ioctls, in the order of their answers.
    pub ioctls: Vec<Ioctl>,
    /// The number of bytes that the copy engines copied.
    copied: u64,
    /// The number of dispatches among PM4 commands.
    pm4_dispatches: u64,
    /// Names of kernels that the simulator read from a process's memory, by process and descriptor: of all kernels that it does not
    /// execute by their machine code. The last ones at these addresses.
    names: HashMap<(u32, u64), String>,
}

impl Truth {
    /// Reads a log.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut truth = Self::default();
        // Ids are reused: an id means the last queue with that id.
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
                    ring_in_vram,
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
                        ring_in_vram,
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
                Line::Kernel {
                    pid,
                    queue_id,
                    index,
                    kernel_object,
                    name,
                } => {
                    // It follows its packet. By the index, because later code objects reuse the addresses of earlier ones.
                    let packets = truth.queues[latest[&(pid, queue_id)]].packets.iter_mut();
                    let packet = packets.rev().find(|packet| packet.index == index);
                    packet
                        .unwrap_or_else(|| panic!("no packet {index} before its kernel {name}"))
                        .kernel = Some(name.clone());
                    truth.names.insert((pid, kernel_object), name);
                }
                Line::Sdma { pid, queue_id, command } => {
                    if command.op == "copy" {
                        truth.copied += command.bytes;
                    }
                    truth.queues[latest[&(pid, queue_id)]].commands.push(command);
                }
                Line::Pm4 { op } => truth.pm4_dispatches += u64::from(op == "dispatch_direct"),
                Line::Ioctl(ioctl) => truth.ioctls.push(ioctl),
                Line::Other => {}
            }
        }
        truth
    }

    /// Returns the number of bytes that the copy engines copied.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.copied
    }

    /// Returns the name of a process's kernel that is not one of the project's own.
    #[must_use]
    pub fn kernel_name(&self, pid: u32, kernel_object: u64) -> Option<&str> {
        self.names.get(&(pid, kernel_object)).map(String::as_str)
    }

    /// Returns the number of kernel dispatches by PM4 commands, which are in no AQL packet.
    #[must_use]
    pub fn pm4_dispatches(&self) -> u64 {
        self.pm4_dispatches
    }

    /// Returns the kernel dispatches of all queues, by AQL packets.
    #[must_use]
    pub fn dispatches(&self) -> u64 {
        let of = |queue: &Queue| queue.packets.iter().filter(|p| p.is_dispatch()).count();
        self.queues.iter().map(of).sum::<usize>() as u64
    }
}

impl Queue {
    /// Returns whether its packets are AQL packets.
    #[must_use]
    pub fn is_aql(&self) -> bool {
        self.kind == 2
    }
}
