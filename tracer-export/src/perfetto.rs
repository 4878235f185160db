//! Perfetto's own format: packets of protocol buffers, written by hand, because a dozen messages suffice.
//!
//! Everything is on one sequence, whose first packet says that nothing came before it. Times are CLOCK_MONOTONIC, which is also the
//! trace's primary clock: no viewer converts them. The snapshot of clocks lets a viewer place the trace beside others.

mod gpu;
mod intern;
mod metadata;
pub mod proto;
mod wire;

use std::collections::HashMap;
use std::io::{self, Write};

use tracer_core::tables::Datum;

use crate::lanes::Lanes;
use crate::timeline::{Args, Canvas, Event, Gpu, Timeline, Track};
use crate::{About, ExportError};
use intern::{Interned, Kind};
use proto::{
    clock_snapshot as clock, counter_descriptor as counter, debug_annotation as annotation, process_descriptor,
    thread_descriptor, trace, trace_packet as packet, track_descriptor as descriptor, track_event as event,
};
use wire::Message;

/// The only sequence of packets. Any number but 0.
const SEQUENCE: u64 = 1;

/// Writes Perfetto traces.
#[derive(Debug)]
pub struct Perfetto<W> {
    out: W,
    interned: Interned,
    tracks: HashMap<Line, u64>,
    names: HashMap<Track, String>,
    lanes: HashMap<Track, Lanes>,
    /// What ids of tracks begin with: traces that are shown together need different ones.
    seed: u64,
    /// GPUs by the KFD's ids, in the order of the manifest.
    gpus: Vec<u32>,
    gpu_events: u64,
    begin_ns: u64,
}

/// A line of the viewer: a track, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Line {
    Track(Track),
    /// Spans of a track that overlap those of its other lanes.
    Lane(Track, usize),
    Counter(Track, String),
}

impl<W: Write> Perfetto<W> {
    /// Returns an exporter that writes to `out`.
    ///
    /// # Errors
    /// If the output cannot be written.
    pub fn exporter(out: W, about: &About) -> Result<Timeline<Self>, ExportError> {
        let mut perfetto = Self {
            out,
            interned: Interned::default(),
            tracks: HashMap::new(),
            names: HashMap::new(),
            lanes: HashMap::new(),
            seed: (about.identity() >> 64) as u64,
            gpus: about.gpus.iter().map(|gpu| gpu.gpu_id).collect(),
            gpu_events: 0,
            begin_ns: about.window.from_ns.unwrap_or(about.started.monotonic_ns),
        };
        perfetto.begin_sequence(about)?;
        Ok(Timeline::new(perfetto, about))
    }

    fn begin_sequence(&mut self, about: &About) -> io::Result<()> {
        let mut first = Message::default();
        first
            .uint(packet::SEQUENCE_FLAGS, packet::CLEARED)
            .uint(packet::FIRST_PACKET_ON_SEQUENCE, 1)
            .message(packet::TRACE_PACKET_DEFAULTS, |defaults| {
                defaults.uint(proto::defaults::TIMESTAMP_CLOCK_ID, clock::MONOTONIC);
            })
            .message(packet::CLOCK_SNAPSHOT, |snapshot| {
                let started = about.started;
                let clocks = [
                    (clock::MONOTONIC, started.monotonic_ns),
                    (clock::BOOTTIME, started.boottime_ns),
                    (clock::REALTIME, started.realtime_ns),
                ];
                // The text that a trace was imported from names no other clock.
                for (id, time) in clocks
                    .into_iter()
                    .filter(|&(id, time)| id == clock::MONOTONIC || time != 0)
                {
                    snapshot.message(clock::CLOCKS, |of| {
                        of.uint(clock::CLOCK_ID, id).uint(clock::CLOCK_TIMESTAMP, time);
                    });
                }
                snapshot.uint(clock::PRIMARY_TRACE_CLOCK, clock::MONOTONIC);
            });
        self.write(first)
    }

    /// Writes a packet, with the names that it needs.
    fn write(&mut self, mut packet: Message) -> io::Result<()> {
        packet.uint(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
        if let Some(names) = self.interned.take_new() {
            packet.raw(packet::INTERNED_DATA, names.bytes());
        }
        let mut whole = Message::default();
        whole.raw(trace::PACKET, packet.bytes());
        self.out.write_all(whole.bytes())
    }

    /// Writes an event of a track at a time.
    fn event(&mut self, at: u64, kind: u64, track: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        let mut message = Message::default();
        message
            .uint(packet::TIMESTAMP, at)
            .uint(packet::SEQUENCE_FLAGS, packet::NEEDED)
            .message(packet::TRACK_EVENT, |body| {
                body.uint(event::TYPE, kind).uint(event::TRACK_UUID, track);
                fill(body);
            });
        self.write(message)
    }

    /// Writes the beginning of a slice, or an instant, with everything that is known of it.
    fn named(&mut self, at: u64, kind: u64, track: u64, of: &Event) -> io::Result<()> {
        self.named_with(at, kind, track, of, |_| {})
    }

    /// Does the same; `fill` adds more fields.
    fn named_with(
        &mut self,
        at: u64,
        kind: u64,
        track: u64,
        of: &Event,
        fill: impl FnOnce(&mut Message),
    ) -> io::Result<()> {
        let category = self.interned.number(Kind::Category, of.category);
        let name = self.interned.number(Kind::Event, &of.name);
        let mut arguments = Message::default();
        self.annotate(&mut arguments, &of.args);
        // The flow of a call passes through all that it submitted.
        let flow = of.submits.or(of.submitted_by);
        self.event(at, kind, track, |body| {
            body.uint(event::CATEGORY_IIDS, category).uint(event::NAME_IID, name);
            if let Some(flow) = flow {
                body.fixed64(event::FLOW_IDS, flow);
            }
            body.append(&arguments);
            fill(body);
        })
    }

    /// Adds arguments. One that is unknown is absent: the format has no null.
    fn annotate(&mut self, body: &mut Message, args: &Args) {
        for (column, datum) in args.each() {
            if datum == Datum::Missing {
                continue;
            }
            let name = self.interned.number(Kind::Argument, column.name);
            body.message(event::DEBUG_ANNOTATIONS, |of| {
                of.uint(annotation::NAME_IID, name);
                match datum {
                    Datum::Unsigned(n) if column.unit == "address" => {
                        of.uint(annotation::POINTER_VALUE, n);
                    }
                    Datum::Unsigned(n) => {
                        of.uint(annotation::UINT_VALUE, n);
                    }
                    Datum::Signed(n) => {
                        of.int(annotation::INT_VALUE, n);
                    }
                    Datum::Bool(is) => {
                        of.uint(annotation::BOOL_VALUE, is.into());
                    }
                    Datum::Text(text) => {
                        of.text(annotation::STRING_VALUE, &text);
                    }
                    Datum::Missing => {}
                }
            });
        }
    }

    /// Returns the id of a line.
    fn id(&mut self, line: Line) -> u64 {
        let next = self.seed.wrapping_add(self.tracks.len() as u64 + 1);
        // 0 is the track of everything that has none.
        *self.tracks.entry(line).or_insert(next.max(1))
    }

    fn describe(&mut self, line: Line, fill: impl FnOnce(&mut Message)) -> io::Result<u64> {
        let around = match &line {
            Line::Track(track) => track.around(),
            Line::Lane(track, _) => Some(*track),
            Line::Counter(track, _) => Some(track.around().unwrap_or(*track)),
        };
        let parent = around.map(|track| self.id(Line::Track(track)));
        let id = self.id(line);
        let mut message = Message::default();
        message.message(packet::TRACK_DESCRIPTOR, |of| {
            of.uint(descriptor::UUID, id);
            if let Some(parent) = parent {
                of.uint(descriptor::PARENT_UUID, parent);
            }
            fill(of);
        });
        self.write(message)?;
        Ok(id)
    }
}

impl<W: Write> Canvas for Perfetto<W> {
    fn track(&mut self, track: Track, name: &str) -> io::Result<()> {
        self.names.insert(track, name.to_owned());
        self.describe(Line::Track(track), |of| match track {
            Track::Process { pid } => {
                of.message(descriptor::PROCESS, |process| {
                    process
                        .int(process_descriptor::PID, pid.into())
                        .text(process_descriptor::PROCESS_NAME, name);
                });
            }
            Track::Thread { pid, tid } => {
                of.message(descriptor::THREAD, |thread| {
                    thread
                        .int(thread_descriptor::PID, pid.into())
                        .int(thread_descriptor::TID, tid.into())
                        .text(thread_descriptor::THREAD_NAME, name);
                });
            }
            _ => {
                of.text(descriptor::NAME, name);
            }
        })
        .map(drop)
    }

    fn begin(&mut self, track: Track, at: u64, _end: Option<u64>, of: &Event) -> io::Result<()> {
        let track = self.id(Line::Track(track));
        self.named(at, event::SLICE_BEGIN, track, of)
    }

    fn end(&mut self, track: Track, at: u64, finished: bool) -> io::Result<()> {
        let track = self.id(Line::Track(track));
        let name = (!finished).then(|| self.interned.number(Kind::Argument, "unfinished"));
        self.event(at, event::SLICE_END, track, |body| {
            if let Some(name) = name {
                body.message(event::DEBUG_ANNOTATIONS, |of| {
                    of.uint(annotation::NAME_IID, name).uint(annotation::BOOL_VALUE, 1);
                });
            }
        })
    }

    fn instant(&mut self, track: Track, at: u64, of: &Event) -> io::Result<()> {
        let track = self.id(Line::Track(track));
        self.named(at, event::INSTANT, track, of)
    }

    fn span(&mut self, track: Track, begin: u64, end: u64, of: &Event) -> io::Result<()> {
        let lane = self.lanes.entry(track).or_default().take(begin, end);
        let line = Line::Lane(track, lane);
        let id = match self.tracks.get(&line) {
            Some(id) => *id,
            // Viewers draw tracks of the same name and parent as one.
            None => {
                let name = self.names.get(&track).cloned().unwrap_or_default();
                self.describe(line, |of| {
                    of.text(descriptor::NAME, &name);
                })?
            }
        };
        self.named(begin, event::SLICE_BEGIN, id, of)?;
        self.event(end, event::SLICE_END, id, |_| {})
    }

    fn dispatch(&mut self, track: Track, doorbell: Option<u64>, gpu: Option<&Gpu>, of: &Event) -> io::Result<()> {
        let number = gpu.map(|_| self.gpu_events + 1);
        if let Some(at) = doorbell {
            let track = self.id(Line::Track(track));
            self.named_with(at, event::INSTANT, track, of, |body| {
                if let Some(number) = number {
                    // The work on the GPU that this submission caused.
                    body.message(event::GPU_CORRELATION, |ids| {
                        ids.uint(event::RENDER_STAGE_SUBMISSION_EVENT_IDS, number);
                    });
                }
            })?;
        }
        gpu.map_or(Ok(()), |gpu| self.gpu(track, gpu, of))
    }

    fn counter(&mut self, track: Track, name: &str, at: u64, value: u64) -> io::Result<()> {
        let line = Line::Counter(track, name.to_owned());
        let id = match self.tracks.get(&line) {
            Some(id) => *id,
            None => self.describe(line, |of| {
                of.text(descriptor::NAME, name).message(descriptor::COUNTER, |of| {
                    of.uint(counter::UNIT, counter::UNIT_COUNT);
                });
            })?,
        };
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.event(at, event::COUNTER, id, |body| {
            body.int(event::COUNTER_VALUE, value);
        })
    }

    fn finish(&mut self, about: &About, damage: &[String]) -> io::Result<()> {
        self.metadata(about, damage)?;
        self.out.flush()
    }
}
