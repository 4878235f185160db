//! The whole path of one packet: the calls around its launch, the index, the doorbell, and when the GPU took and finished it, each
//! with its evidence.
//!
//! A reader needs the trace twice. [`Packet::of`] finds the packet among the rows of `dispatches`, `dispatch_runs` and `packets`.
//! [`PacketPath`] then takes the rows of [`PacketPath::TABLES`], in the order of their times.

use serde::Serialize;

use crate::tables::{
    ApiCall, Dispatch, DispatchRun, Doorbell, Fact, GpuTime, Ioctl, OtherPacket, Progress, Queue, Record, Stack, Table,
};

/// The row that has a packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Packet {
    /// A kernel dispatch.
    Dispatch(Box<Dispatch>),
    /// A dispatch that the trace has only as a part of a run.
    InRun(DispatchRun),
    /// Another packet, or an index whose packet is unread.
    Other(OtherPacket),
}

impl Packet {
    /// The tables that have packets.
    pub const TABLES: [Table; 3] = [Table::Dispatches, Table::DispatchRuns, Table::Packets];

    /// Returns the packet with this index of this queue, if the row has it.
    #[must_use]
    pub fn of(fact: &Fact, queue: u32, index: u64) -> Option<Self> {
        match fact {
            Fact::Dispatch(row) if row.queue == queue && row.index == index => {
                Some(Self::Dispatch(Box::new(row.clone())))
            }
            Fact::DispatchRun(row) if row.queue == queue && (row.first_index..=row.last_index).contains(&index) => {
                Some(Self::InRun(row.clone()))
            }
            Fact::Packet(row)
                if row.queue == queue && index.checked_sub(row.index).is_some_and(|at| at < row.count) =>
            {
                Some(Self::Other(row.clone()))
            }
            _ => None,
        }
    }

    /// Returns the queue.
    #[must_use]
    pub const fn queue(&self) -> u32 {
        match self {
            Self::Dispatch(row) => row.queue,
            Self::InRun(row) => row.queue,
            Self::Other(row) => row.queue,
        }
    }

    /// Returns the thread that published it; `None` if unknown.
    fn thread(&self) -> Option<(u32, u32)> {
        let (pid, tid) = match self {
            Self::Dispatch(row) => (row.pid, row.tid),
            Self::InRun(_) => return None,
            Self::Other(row) => (row.pid, row.tid),
        };
        (tid != 0).then_some((pid, tid))
    }

    /// Returns the time of its doorbell; of a packet in a run, of the run's last one.
    const fn time_ns(&self) -> u64 {
        match self {
            Self::Dispatch(row) => row.time_ns,
            Self::InRun(row) => row.end_ns,
            Self::Other(row) => row.time_ns,
        }
    }
}

/// A sample of the queue's indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Look {
    /// Time before the sample, ns.
    pub time_ns: u64,
    /// Time after it, ns.
    pub until_ns: u64,
    /// The read index that it found.
    pub read_index: u64,
}

impl Look {
    const fn of(row: &Progress) -> Self {
        Self {
            time_ns: row.time_ns,
            until_ns: row.until_ns,
            read_index: row.read_index,
        }
    }
}

/// The path of a packet. What the trace does not have is `None`.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketPath {
    /// Index of the packet in its queue.
    pub index: u64,
    /// Its row.
    pub packet: Packet,
    /// Its queue.
    pub queue: Option<Box<Queue>>,
    /// The API calls around its doorbell, the outermost first.
    pub calls: Vec<ApiCall>,
    /// Ioctls of its thread between the entry of the outermost call (without one, the reserve) and the doorbell.
    pub ioctls: Vec<Ioctl>,
    /// Whether there were earlier ones, beyond the limit.
    pub more_ioctls: bool,
    /// The doorbell that published it.
    pub doorbell: Option<Doorbell>,
    /// The stack of its thread at that doorbell.
    pub stack: Option<Stack>,
    /// The last sample that found it not taken by the GPU.
    pub not_taken: Option<Look>,
    /// The first sample that found it taken.
    pub taken: Option<Look>,
    /// When it ran, by the GPU's clock.
    pub gpu: Option<GpuTime>,
    /// Calls of the thread that may be around the doorbell.
    open: Vec<ApiCall>,
    /// Ioctls of the thread before the doorbell, the last ones.
    recent: Vec<Ioctl>,
    /// Entry of the last ioctl that did not fit there.
    dropped_ns: Option<u64>,
}

/// Number of ioctls that are kept.
const MAX_IOCTLS: usize = 64;
/// Number of calls of a thread that are kept.
const MAX_CALLS: usize = 64;

impl PacketPath {
    /// The tables that have the steps.
    pub const TABLES: [Table; 7] = [
        Table::Queues,
        Table::Ioctls,
        Table::Stacks,
        Table::Doorbells,
        Table::Progress,
        Table::ApiCalls,
        Table::GpuTimes,
    ];

    /// Returns the path of a packet, without any step.
    #[must_use]
    pub const fn new(index: u64, packet: Packet) -> Self {
        Self {
            index,
            packet,
            queue: None,
            calls: Vec::new(),
            ioctls: Vec::new(),
            more_ioctls: false,
            doorbell: None,
            stack: None,
            not_taken: None,
            taken: None,
            gpu: None,
            open: Vec::new(),
            recent: Vec::new(),
            dropped_ns: None,
        }
    }

    /// Takes a row.
    pub fn add(&mut self, fact: &Fact) {
        let (queue, time_ns) = (self.packet.queue(), self.packet.time_ns());
        match fact {
            Fact::Queue(row) if row.queue == queue => self.queue = Some(Box::new(row.clone())),
            Fact::Doorbell(row)
                if row.queue == Some(queue) && row.indexes().is_some_and(|indexes| indexes.contains(&self.index)) =>
            {
                self.doorbell = Some(row.clone());
            }
            Fact::Stack(row) if self.packet.thread() == Some((row.pid, row.tid)) && row.time_ns == time_ns => {
                self.stack = Some(row.clone());
            }
            Fact::Progress(row) if row.queue == queue => {
                if row.read_index <= self.index {
                    self.not_taken = Some(Look::of(row));
                } else {
                    self.taken.get_or_insert(Look::of(row));
                }
            }
            Fact::GpuTime(row) if (row.queue, row.index) == (queue, self.index) => self.gpu = Some(row.clone()),
            Fact::ApiCall(row) if self.packet.thread() == Some((row.pid, row.tid)) && row.enter_ns <= time_ns => {
                self.open
                    .retain(|call| call.exit_ns.is_none_or(|exit| exit > row.enter_ns));
                if self.open.len() >= MAX_CALLS {
                    self.open.remove(0);
                }
                self.open.push(row.clone());
            }
            Fact::Ioctl(row) if self.packet.thread() == Some((row.pid, row.tid)) && row.enter_ns < time_ns => {
                if self.recent.len() >= MAX_IOCTLS {
                    self.dropped_ns = Some(self.recent.remove(0).enter_ns);
                }
                self.recent.push(row.clone());
            }
            _ => {}
        }
    }

    /// Returns the path with its steps in order.
    #[must_use]
    pub fn finish(mut self) -> Self {
        let mut next = match &self.packet {
            Packet::Dispatch(row) => row.api_call,
            _ => None,
        };
        while let Some(call) = next {
            let found = self.open.iter().find(|open| open.call == call);
            self.calls.extend(found.cloned());
            next = found.and_then(|found| found.parent).filter(|&parent| parent < call);
        }
        self.calls.reverse();
        let since = self.begin_ns();
        let is_since = |enter_ns: u64| since.is_some_and(|since| enter_ns >= since);
        let recent = std::mem::take(&mut self.recent);
        self.ioctls = recent.into_iter().filter(|ioctl| is_since(ioctl.enter_ns)).collect();
        self.more_ioctls = self.dropped_ns.is_some_and(is_since);
        self.open.clear();
        self
    }

    /// Returns the time at which the launch began: the entry of the outermost call, else the reserve; `None` if neither is known.
    #[must_use]
    pub fn begin_ns(&self) -> Option<u64> {
        let reserve = match &self.packet {
            Packet::Dispatch(row) => row.reserve_ns,
            _ => None,
        };
        self.calls.first().map(|call| call.enter_ns).or(reserve)
    }
}

impl Serialize for PacketPath {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Steps {
            queue: u32,
            index: u64,
            packet: Option<Record>,
            of_queue: Option<Record>,
            calls: Vec<Record>,
            ioctls: Vec<Record>,
            more_ioctls: bool,
            doorbell: Option<Record>,
            stack: Option<Record>,
            not_taken: Option<Look>,
            taken: Option<Look>,
            gpu: Option<Record>,
        }
        Steps {
            queue: self.packet.queue(),
            index: self.index,
            packet: match &self.packet {
                Packet::Dispatch(row) => Record::of_row(&**row),
                Packet::InRun(row) => Record::of_row(row),
                Packet::Other(row) => Record::of_row(row),
            },
            of_queue: self.queue.as_deref().and_then(Record::of_row),
            calls: self.calls.iter().filter_map(Record::of_row).collect(),
            ioctls: self.ioctls.iter().filter_map(Record::of_row).collect(),
            more_ioctls: self.more_ioctls,
            doorbell: self.doorbell.as_ref().and_then(Record::of_row),
            stack: self.stack.as_ref().and_then(Record::of_row),
            not_taken: self.not_taken,
            taken: self.taken,
            gpu: self.gpu.as_ref().and_then(Record::of_row),
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
