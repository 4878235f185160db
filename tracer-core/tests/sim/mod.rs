//! A reference AQL queue: producers, a GPU and a tracer that take turns in any order, and the truth about every packet.

pub mod config;
pub mod next;
pub mod walk;

use std::collections::BTreeSet;

use tracer_common::aql::{Packet, packet_type};
use tracer_core::event::{Doorbell, Event, Lost, Occasion, Origin, Packets, Progress, Reserve, ReserveOp};

use config::{Config, LastSample, packet};
use next::Next;
use walk::{State, Walk};

pub const PID: u32 = 7;
pub const HANDLE: u64 = 0x7000_0000;
pub const FIRST_TID: u32 = 100;

/// What a walk could learn of an index, according to the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readable {
    Header,
    Body,
    Consumed,
}

/// The truth about a reserved index.
#[derive(Clone, Debug)]
pub struct Truth {
    pub packet: Packet,
    pub tid: u32,
    /// Time of entry of its reserve; `None` before tracer attached.
    pub reserved_ns: Option<u64>,
    /// Time at which the write index passed it.
    pub advanced_ns: u64,
    /// Whether its own doorbell was rung before tracer attached.
    pub rung_before: bool,
    /// Whether the GPU took it before any observed doorbell named it.
    pub unrung: bool,
    /// What the first delivered record that could show it contained.
    pub readable: Option<Readable>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// The index of the packet in the slot.
    owner: Option<u64>,
    packet: Packet,
}

enum Phase {
    Idle,
    /// In the reserve function, before the addition.
    Entered {
        n: u64,
        time_ns: u64,
    },
    /// Writing index `at`. `body`: the body is written, the header is not.
    Writing {
        at: u64,
        last: u64,
        body: bool,
    },
    /// In the doorbell function, on the program's short way.
    Next(Next),
    Ringing(Walk),
}

struct Producer {
    tid: u32,
    phase: Phase,
    last_value: Option<u64>,
}

/// A record on its way to the model.
#[derive(Clone, Debug)]
pub enum Record {
    Packets {
        walk: Packets<'static>,
        packets: Vec<Packet>,
    },
    Doorbell(Doorbell),
    Reserve(Reserve),
    Look(Progress),
    Lost,
}

impl Record {
    pub fn event(&self) -> Event<'_> {
        match self {
            Self::Packets { walk, packets } => Event::Packets(Packets { packets, ..*walk }),
            Self::Doorbell(doorbell) => Event::Doorbell(*doorbell),
            Self::Reserve(reserve) => Event::Reserve(*reserve),
            Self::Look(look) => Event::Progress(*look),
            Self::Lost => Event::Lost(Lost {
                time_ns: 0,
                source: "doorbell-ring",
                count: 1,
            }),
        }
    }
}

pub struct Sim {
    pub config: Config,
    pub log: Vec<Record>,
    /// The indexes from `config.first` on.
    pub truth: Vec<Truth>,
    /// Indexes that doorbells published while tracer watched, whether their records were dropped or not.
    pub published: Option<(u64, u64)>,
    /// Values of doorbells rung while tracer watched that the GPU had not passed.
    pub named: BTreeSet<u64>,
    /// Read and write index when the first record of a walk was delivered.
    pub looked: Option<(u64, u64)>,
    /// One past the highest index published by observed doorbells, whether their records were dropped or not.
    pub seen_end: u64,
    /// Indexes that a tracer without losses can report as unseen.
    pub unseen: BTreeSet<u64>,
    doorbell_dropped: bool,
    /// Read index at the last sample.
    last_read: u64,
    slots: Vec<Slot>,
    read: u64,
    write: u64,
    /// One past the last index that the GPU may take.
    rung: u64,
    consuming: bool,
    time_ns: u64,
    attached: bool,
    bpf: Option<State>,
    /// The read index that the program knows from the last doorbell.
    known_read: Option<u64>,
}

impl Sim {
    /// Runs a configuration to its end.
    pub fn run(config: Config) -> Self {
        let empty = Slot {
            owner: None,
            packet: packet(packet_type::INVALID, 0),
        };
        let mut producers: Vec<Producer> = (0..config.producers as u32)
            .map(|k| Producer {
                tid: FIRST_TID + k,
                phase: Phase::Idle,
                last_value: None,
            })
            .collect();
        let first = config.first;
        let mut sim = Self {
            attached: config.attach_after.is_none(),
            bpf: config.attach_after.is_none().then(|| State::at(0)),
            known_read: None,
            slots: vec![empty; config.ring as usize],
            log: Vec::new(),
            truth: Vec::new(),
            published: None,
            named: BTreeSet::new(),
            looked: None,
            seen_end: first,
            unseen: BTreeSet::new(),
            doorbell_dropped: false,
            last_read: first,
            read: first,
            write: first,
            rung: first,
            consuming: false,
            time_ns: 1000,
            config,
        };
        let schedule = std::mem::take(&mut sim.config.schedule);
        for (step, &(actor, choice)) in schedule.iter().enumerate() {
            sim.time_ns += 1;
            sim.attached |= Some(step) == sim.config.attach_after;
            match producers.get_mut(usize::from(actor) % (sim.config.producers + 1)) {
                Some(producer) => sim.produce(producer, choice),
                None if choice == 255 => sim.sample(Occasion::Sample, None),
                None => sim.consume(),
            }
        }
        // Complete the walks that have begun.
        for producer in &mut producers {
            while matches!(producer.phase, Phase::Next(_) | Phase::Ringing(_)) {
                sim.time_ns += 1;
                sim.produce(producer, 255);
            }
        }
        sim.config.schedule = schedule;
        sim.end();
        sim
    }

    /// Lets the GPU continue a little, and takes the last sample.
    fn end(&mut self) {
        for _ in 0..self.config.schedule.len() % 50 {
            self.consume();
        }
        self.time_ns += 1;
        match (self.config.last_look, self.bpf) {
            (LastSample::Nobody, _) => {}
            (LastSample::Collector, _) => self.sample(Occasion::TraceEnd, None),
            (LastSample::Program, state) => self.sample(Occasion::Destroyed, state.map(|state| state.max)),
        }
        self.unseen.extend(self.seen_end..self.last_read);
        if self.doorbell_dropped {
            self.log.push(Record::Lost);
        }
    }

    fn sample(&mut self, occasion: Occasion, rung_end: Option<u64>) {
        if self.attached {
            self.last_read = self.read;
            self.log.push(Record::Look(Progress {
                origin: Origin {
                    time_ns: self.time_ns,
                    pid: PID,
                    tid: 0,
                },
                after_ns: self.time_ns,
                handle: HANDLE,
                read_index: self.read,
                write_index: self.write,
                rung_end,
                occasion,
            }));
        }
    }

    pub fn truth_of(&self, index: u64) -> Option<&Truth> {
        self.truth
            .get(usize::try_from(index.checked_sub(self.config.first)?).ok()?)
    }

    fn truth_mut(&mut self, index: u64) -> Option<&mut Truth> {
        let at = usize::try_from(index.checked_sub(self.config.first)?).ok()?;
        self.truth.get_mut(at)
    }

    /// Returns whether a producer stored to the doorbell for an index past every probe, if the GPU took the index.
    pub fn rung_past_probes(&self, index: u64) -> bool {
        self.truth_of(index).is_some_and(|truth| truth.unrung)
    }

    fn slot(&mut self, index: u64) -> &mut Slot {
        let at = (index % self.config.ring) as usize;
        &mut self.slots[at]
    }

    fn consume(&mut self) {
        let read = self.read;
        if self.consuming {
            self.consuming = false;
            self.read += 1;
        } else if read < self.rung && self.slot(read).packet.kind() != packet_type::INVALID {
            assert_eq!(
                self.slot(read).owner,
                Some(read),
                "the simulated GPU took a stale packet"
            );
            self.slot(read).packet.bytes[0] = packet_type::INVALID;
            self.consuming = true;
            let at = (read - self.config.first) as usize;
            self.truth[at].unrung = self.attached && read >= self.seen_end;
        }
    }

    fn produce(&mut self, producer: &mut Producer, choice: u8) {
        let origin = Origin {
            time_ns: self.time_ns,
            pid: PID,
            tid: producer.tid,
        };
        producer.phase = match std::mem::replace(&mut producer.phase, Phase::Idle) {
            Phase::Idle => match (choice % 16, producer.last_value) {
                (0, Some(value)) => self.ring(origin, value),
                (1, _) if self.config.garbage => self.ring(origin, self.write + u64::from(choice)),
                // A producer may reserve ahead of the ring, and waits then; but the distance is limited.
                _ if self.write - self.read > 3 * self.config.ring => Phase::Idle,
                _ => {
                    let n = 1 + u64::from(choice >> 4) % 4;
                    if self.attached {
                        let op = ReserveOp::Add { n };
                        let reserve = Reserve {
                            origin,
                            handle: HANDLE,
                            op,
                            write_index: Some(self.write),
                        };
                        self.log.push(Record::Reserve(reserve));
                    }
                    Phase::Entered {
                        n,
                        time_ns: self.time_ns,
                    }
                }
            },
            Phase::Entered { n, time_ns } => {
                let at = self.write;
                self.write += n;
                let reserved_ns = Some(time_ns).filter(|_| self.attached && self.log_has_reserve(time_ns));
                for index in at..self.write {
                    let kind = match (index ^ u64::from(choice)) % 8 {
                        0 => packet_type::BARRIER_AND,
                        1 => packet_type::VENDOR,
                        _ => packet_type::KERNEL_DISPATCH,
                    };
                    let packet = packet(kind, index);
                    self.truth.push(Truth {
                        packet,
                        tid: producer.tid,
                        reserved_ns,
                        advanced_ns: self.time_ns,
                        rung_before: false,
                        unrung: false,
                        readable: None,
                    });
                }
                Phase::Writing {
                    at,
                    last: self.write - 1,
                    body: false,
                }
            }
            // The former packet of the slot is not consumed yet.
            phase @ Phase::Writing { at, body: false, .. } if at >= self.read + self.config.ring => phase,
            Phase::Writing { at, last, body: false } => {
                let mut packet = self.truth_of(at).expect("reserved").packet;
                packet.bytes[0] = packet_type::INVALID;
                *self.slot(at) = Slot {
                    owner: Some(at),
                    packet,
                };
                Phase::Writing { at, last, body: true }
            }
            Phase::Writing { at, last, body: true } => {
                self.slot(at).packet = self.truth_of(at).expect("reserved").packet;
                if at < last {
                    Phase::Writing {
                        at: at + 1,
                        last,
                        body: false,
                    }
                } else {
                    producer.last_value = Some(last);
                    self.rung_by_its_producer(last);
                    self.ring(origin, last)
                }
            }
            Phase::Next(next) => self.step_next(next, choice),
            Phase::Ringing(walk) => self.step(walk, choice),
        };
    }

    /// Notes that the producer has written its packets up to `last`, and is about to ring for them.
    fn rung_by_its_producer(&mut self, last: u64) {
        if !self.attached {
            let owner = self.truth_of(last).map(|truth| (truth.tid, truth.advanced_ns));
            for truth in &mut self.truth {
                truth.rung_before |= Some((truth.tid, truth.advanced_ns)) == owner;
            }
        }
    }

    fn log_has_reserve(&self, time_ns: u64) -> bool {
        self.log
            .iter()
            .rev()
            .any(|record| matches!(record, Record::Reserve(r) if r.origin.time_ns == time_ns))
    }
}
