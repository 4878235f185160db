//! The cost of a recorded doorbell here and now: the programs of a recording at functions of this very binary, which are called with
//! an AQL queue in its memory.
//!
//! Next to them, a program that does nothing is called as often. No program can cost less, so this is the floor of the method.

mod functions;
mod queue;

use std::{
    fs::File,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use aya::{
    EbpfLoader,
    maps::{HashMap, MapData, RingBuf},
};
use serde::Serialize;
use tracer_core::{event::Event, family::Family};

use crate::{
    CaptureError,
    api_choice::Api,
    decode,
    kernel::{btf::Btf, ebpf_object::Object},
    probes::{Prober, Site, Target, driver, driver_event, mapping, multi::Multi, process, ring},
    runtime::resolver::{InstructionKind, ProbePoint},
    session::{EBPF_NAP, GENERATION, Loading, see_tracefs},
    shared_maps::counting::Counting,
};
use functions::{Function, Functions, functions};
use queue::Queue;

/// Rounds, in which the functions take turns. The fastest round of each counts.
const ROUNDS: u64 = 15;
/// Doorbells of a function in a round.
const DOORBELLS: u64 = 4_000;
/// Packets of each doorbell of the function that rings for several.
const SEVERAL: u64 = 9;
/// Size of the buffer of records, bytes: that of a recording.
const BUFFER: u32 = 32 << 20;
/// The programs.
const PROGRAMS: [&str; 3] = ["doorbell", "empty", "reserve"];

/// What recording adds to a call of a function that rings a doorbell. It is a measurement of this machine at this moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DoorbellCost {
    /// Why nothing was measured; `None` if the measurement succeeded. The numbers are 0 otherwise.
    pub error: Option<String>,
    /// Doorbells of each kind.
    pub doorbells: u64,
    /// By a program that does nothing, ns.
    pub empty_ns: u64,
    /// By the recording of a doorbell for one packet, ns.
    pub doorbell_ns: u64,
    /// By each further packet of the same doorbell, ns.
    pub packet_ns: u64,
    /// By the recording of an advance of the write index (`--detail full`), ns.
    pub reserve_ns: u64,
}

impl DoorbellCost {
    /// Returns that nothing was measured.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            error: Some(error.into()),
            ..Self::default()
        }
    }
}

/// Measures the cost. Must run on a thread that may get a mount namespace of its own.
pub fn measure() -> DoorbellCost {
    try_measure().unwrap_or_else(DoorbellCost::failed)
}

fn try_measure() -> Result<DoorbellCost, String> {
    let functions = functions().ok_or("there are no such functions for this architecture")?;
    let Programs {
        prober: _attached,
        counting,
        events,
    } = Programs::attach(&functions).map_err(|error| error.to_string())?;
    counting.open();
    let stop = AtomicBool::new(false);
    let (times, read) = thread::scope(|scope| {
        let reader = scope.spawn(|| read(events, &stop));
        let times = Times::take(&functions);
        stop.store(true, Ordering::Release);
        (times, reader.join())
    });
    let read = read.map_err(|_| "the reader of the records panicked")?;
    let expected = Read {
        packets: ROUNDS * DOORBELLS * (1 + SEVERAL),
        reserves: ROUNDS * DOORBELLS,
    };
    if read != expected {
        return Err(format!("of {expected:?} the programs recorded {read:?}"));
    }
    Ok(times.cost())
}

/// The loaded programs, at their functions; and their maps.
struct Programs {
    prober: Prober,
    counting: Counting,
    events: RingBuf<MapData>,
}

impl Programs {
    fn attach(functions: &Functions) -> Result<Self, CaptureError> {
        see_tracefs()?;
        let btf = Btf::of_kernel(&[]);
        let loading = Loading {
            object: Object::Plain,
            follow: false,
            system: false,
            api: Api::NONE,
            stacks: 0,
            buffer_bytes: Some(BUFFER),
            layout: &process::Layout::read()?,
            tasks: &mapping::tasks(btf.as_ref()),
            rings: None::<&ring::Plan>,
            driver_events: &driver_event::Plan::read(),
        };
        let ebpf = loading.open(EbpfLoader::new())?;
        let multi = Object::Plain
            .bytes()
            .ok()
            .and_then(|object| Multi::load(object, &ebpf, &PROGRAMS, &[]).ok());
        let mut prober = Prober::load(ebpf, multi.unwrap_or_default(), |name| PROGRAMS.contains(&name))?;
        let mut traced: HashMap<MapData, u32, u32> = prober.take_map("TRACED")?;
        let inserted = traced.insert(std::process::id(), GENERATION, 0);
        inserted.map_err(|error| CaptureError::system("tracing this process", std::io::Error::other(error)))?;
        let programs = Self {
            counting: Counting::new(&prober.take_map("COUNTING")?)?,
            events: prober.take_map("EVENTS")?,
            prober,
        };
        programs.at(functions)
    }

    fn at(mut self, functions: &Functions) -> Result<Self, CaptureError> {
        let opening = |error| CaptureError::system("opening this program's file", error);
        let file = super::own_file().map_err(opening)?;
        for (program, function) in [
            ("empty", functions.empty),
            ("doorbell", functions.doorbell),
            ("reserve", functions.reserve),
        ] {
            self.probe(program, function, &file)?;
        }
        Ok(self)
    }

    fn probe(&mut self, program: &'static str, function: Function, file: &File) -> Result<(), CaptureError> {
        let vaddr = function as usize as u64;
        let place = super::file_offset(vaddr);
        let file_offset = place.map_err(|error| CaptureError::system("finding a function in this program", error))?;
        let site = Site {
            point: ProbePoint {
                function: vaddr,
                vaddr,
                file_offset,
                instruction: InstructionKind::Push,
            },
            // The displacement of the pointer to the signal in the object (`doorbell`), or the operation (`reserve`).
            upper: 0,
            role: program.to_owned(),
            found: None,
        };
        let target = Target {
            file: file.as_fd(),
            path: "/proc/self/exe",
        };
        let probe = self.prober.uprobe(program, Family::Other, &target, site);
        let refused = |reason| CaptureError::Refused {
            program: program.to_owned(),
            reason,
        };
        probe.error.map_or(Ok(()), |error| Err(refused(error)))
    }
}

/// What the programs recorded.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    packets: u64,
    reserves: u64,
}

/// Reads records until `stop` is set and none is left.
fn read(mut events: RingBuf<MapData>, stop: &AtomicBool) -> Read {
    let mut read = Read {
        packets: 0,
        reserves: 0,
    };
    let functions = driver::Functions::default();
    loop {
        let last = stop.load(Ordering::Acquire);
        while let Some(item) = events.next() {
            decode::record(&item, &functions, &mut (), &mut |event| match event {
                Event::Packets(packets) => read.packets += packets.packets.len() as u64,
                Event::Reserve(_) => read.reserves += 1,
                _ => {}
            });
        }
        if last {
            return read;
        }
        // As often as a recording looks for records.
        thread::sleep(EBPF_NAP);
    }
}

/// The fastest round of each function, ns.
struct Times {
    alone: u64,
    empty: u64,
    one: u64,
    several_alone: u64,
    several: u64,
    reserve: u64,
}

impl Times {
    fn take(functions: &Functions) -> Self {
        let [
            mut alone,
            mut empty,
            mut one,
            mut several_alone,
            mut several,
            mut reserve,
        ] = std::array::from_fn(|_| Queue::new());
        let mut least = Self {
            alone: u64::MAX,
            empty: u64::MAX,
            one: u64::MAX,
            several_alone: u64::MAX,
            several: u64::MAX,
            reserve: u64::MAX,
        };
        for _ in 0..ROUNDS {
            for (least, queue, function, packets) in [
                (&mut least.alone, &mut alone, functions.alone, 1),
                (&mut least.empty, &mut empty, functions.empty, 1),
                (&mut least.one, &mut one, functions.doorbell, 1),
                (&mut least.several_alone, &mut several_alone, functions.alone, SEVERAL),
                (&mut least.several, &mut several, functions.doorbell, SEVERAL),
            ] {
                *least = (*least).min(queue.round(function, DOORBELLS, packets));
            }
            least.reserve = least.reserve.min(reserve.reserves(functions.reserve, DOORBELLS));
        }
        least
    }

    fn cost(&self) -> DoorbellCost {
        let ns = |with: u64, without: u64| with.saturating_sub(without) / DOORBELLS;
        let (one, several) = (ns(self.one, self.alone), ns(self.several, self.several_alone));
        DoorbellCost {
            error: None,
            doorbells: ROUNDS * DOORBELLS,
            empty_ns: ns(self.empty, self.alone),
            doorbell_ns: one,
            packet_ns: several.saturating_sub(one) / (SEVERAL - 1),
            reserve_ns: ns(self.reserve, self.alone),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_the_difference_to_the_function_without_a_probe() {
        let round = |ns: u64| ns * DOORBELLS;
        let times = Times {
            alone: round(10),
            empty: round(510),
            one: round(860),
            several_alone: round(40),
            several: round(1_130),
            reserve: round(650),
        };
        let cost = times.cost();
        assert_eq!(
            (cost.empty_ns, cost.doorbell_ns, cost.packet_ns, cost.reserve_ns),
            (500, 850, 30, 640)
        );
    }
}
