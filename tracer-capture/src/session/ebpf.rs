//! The eBPF backend: its programs' maps, as a source of events.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, atomic::AtomicBool},
    thread::JoinHandle,
};

use aya::maps::{HashMap, Map, MapData, MapError, RingBuf};
use tracer_core::{event::Event, losses::UNDECODED};

use super::{
    GENERATION, Options, SetUp, Source,
    load::{Loaded, load},
};
use crate::{
    CaptureError,
    confined::Readers,
    decode::{self, fetch::Fetch},
    examination::Holds,
    inventory::Inventory,
    pause::{
        entries::Entries,
        guardian::{self, Guardian, Left},
        keeper::{Keeper, Pauses},
        known::KnownFiles,
        left::Pin,
    },
    probes::driver::Functions,
    shared_maps::{
        api_stats::ApiStats, counting::Counting, losses::Losses, open_calls::OpenCalls, positions::Positions,
    },
    stacks::Stacks,
    sys,
};

/// The maps of the loaded programs.
pub(crate) struct EbpfSource {
    events: RingBuf<MapData>,
    marks: Positions,
    pub traced: HashMap<MapData, u32, u32>,
    users: HashMap<MapData, u32, u8>,
    losses: Losses,
    api_stats: Option<ApiStats>,
    stacks: Option<Stacks>,
    open_calls: OpenCalls,
    pub counting: Counting,
    functions: Functions,
    pin: Option<Pin>,
    listener: Option<JoinHandle<()>>,
    undecoded: u64,
}

impl EbpfSource {
    /// Loads the programs, and attaches those that do not belong to a library.
    pub(super) fn set_up(
        options: Options,
        guardian: Option<&Guardian>,
        readers: &Readers,
        inventory: &mut Inventory,
        stop: &Arc<AtomicBool>,
    ) -> Result<SetUp, CaptureError> {
        // Loading has a thread of its own: it may need its own mount namespace to see tracefs, which ends with the thread.
        let loaded = std::thread::scope(|scope| scope.spawn(|| load(options, inventory, stop)).join());
        let Loaded {
            mut prober,
            functions,
            listener,
        } = loaded.map_err(|_| CaptureError::system("loading", io::Error::other("the loader panicked")))??;
        let losses = Losses::new(&prober.take_map("LOSSES")?, prober.programs()?)?;
        let counting = Counting::new(&prober.take_map("COUNTING")?)?;
        let events: Map = prober.take_map("EVENTS")?;
        let marks = Positions::new(&events)?;
        let events = RingBuf::try_from(events).map_err(|_| CaptureError::Missing("EVENTS"))?;
        let stats: Map = prober.take_map("API_STATS")?;
        let api_stats = options.api.counts_any().then(|| ApiStats::new(&stats));
        let api_stats = api_stats.transpose()?;
        let stacks: Map = prober.take_map("STACKS")?;
        let stacks = (options.stacks > 0)
            .then(|| {
                let ring = RingBuf::try_from(stacks).map_err(|_| CaptureError::Missing("STACKS"))?;
                Stacks::start(ring, readers.clone())
            })
            .transpose()?;
        let pauses: Map = prober.take_map("PAUSES")?;
        let entries = guardian::descriptor(&pauses)?;
        let own = Pauses::new(Entries::new(entries)?, options.pause_limit);
        let pin = Pin::new(&pauses).inspect_err(|error| log::info!("{error}")).ok();
        // No process is paused before the guardians can resume it.
        if let Some(guardian) = guardian {
            let left = pin.as_ref().map_or(Left::Nothing, |pin| Left::Pin(&pin.path));
            guardian.share(entries, left)?;
        }
        let keeper = Keeper::start(own)?;
        let known = KnownFiles::new(&prober.take_map("KNOWN")?)?;
        let (ioctls, threads) = (prober.take_map("ENTERED")?, prober.take_map("API_THREADS")?);
        let open_calls =
            OpenCalls::new(ioctls, threads, options.api.records()).map_err(|_| CaptureError::Missing("ENTERED"))?;
        let source = Self {
            events,
            marks,
            traced: prober.take_map("TRACED")?,
            users: prober.take_map("USERS")?,
            losses,
            api_stats,
            stacks,
            open_calls,
            counting,
            functions,
            pin,
            listener,
            undecoded: 0,
        };
        let holds = Holds::Ring(prober.take_map("HOLDS")?);
        Ok(SetUp {
            source: Source::Ebpf(Box::new(source)),
            prober,
            keeper,
            known,
            holds,
        })
    }

    pub(super) fn insert(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.traced.insert(pid, GENERATION, 0).map_err(not_traced)
    }

    pub(super) fn insert_user(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.users.insert(pid, 1, 0).map_err(not_traced)
    }

    pub(super) fn begin(&mut self) {
        self.losses.begin();
        self.counting.open();
    }

    pub(super) fn drain<S: FnMut(&Event<'_>)>(
        &mut self,
        most: usize,
        memory: &mut impl Fetch,
        sink: &mut S,
        mut discoveries: impl FnMut(&mut S),
    ) -> bool {
        let mut count = 0;
        while count < most {
            let next = self.events.next();
            discoveries(sink);
            let Some(item) = next else { break };
            count += 1;
            let known = decode::record(&item, &self.functions, memory, sink);
            self.undecoded += u64::from(!known);
        }
        count > 0
    }

    /// Returns the descriptor that is readable while there are records.
    pub(super) fn records(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    pub(super) fn mark(&self) -> u64 {
        self.marks.reserved()
    }

    pub(super) fn is_drained_to(&self, mark: u64) -> bool {
        self.marks.taken() >= mark
    }

    /// Hands over the losses since the last call: source, count.
    pub(super) fn take_losses(&mut self, lost: &mut impl FnMut(&'static str, u64)) {
        self.losses.report(&mut *lost);
        if self.undecoded > 0 {
            lost(UNDECODED, std::mem::take(&mut self.undecoded));
        }
    }

    pub(super) fn take_stacks(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(stacks) = &mut self.stacks {
            stacks.take(|stack| sink(&Event::Stack(stack)));
        }
    }

    pub(super) fn report_api_stats(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(stats) = &self.api_stats {
            stats.report(sys::monotonic_ns(), &mut |stats| sink(&Event::ApiStats(stats)));
        }
    }

    pub(super) fn report_open_calls(&self, sink: &mut impl FnMut(&Event<'_>)) {
        self.open_calls.report(sys::monotonic_ns(), sink);
    }

    pub(super) fn stop_counting(&mut self) {
        self.counting.close();
        sys::wait_for_programs();
    }

    /// Traces no process any more. Programs that still run then see no traced process.
    pub(super) fn admit_no_more(&mut self) {
        self.losses.end();
        self.counting.admit_no_more();
        let pids: Vec<u32> = self.traced.keys().flatten().collect();
        for pid in pids {
            let _ = self.traced.remove(&pid);
        }
    }

    /// Ends what is left once the probes are removed.
    pub(super) fn finish(&mut self) {
        if let Some(pin) = self.pin.take() {
            pin.remove();
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.finish();
        }
        if let Some(listener) = self.listener.take() {
            // A panic of the listener affects only log messages.
            let _ = listener.join();
        }
    }
}

fn not_traced(error: MapError) -> CaptureError {
    CaptureError::system("tracing a process", io::Error::other(error))
}
