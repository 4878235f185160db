//! A capture session: from loaded programs to a stream of events.

mod load;

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use aya::maps::{HashMap, Map, MapData, MapError, RingBuf};
use tracer_core::{
    event::{Event, Lost},
    losses::{PAUSE_LIMIT, UNDECODED},
};

use crate::{
    CaptureError,
    confined::Readers,
    cost,
    decode::{self, fetch::Remote},
    examination::{
        self, Ask, Examiner, Work,
        discoveries::{Discoveries, discoveries},
    },
    inventory::Inventory,
    kernel::{descriptors, rights},
    pause::{
        entries::Entries,
        guardian::{self, Guardian},
        keeper::{Keeper, Pauses},
        known::KnownFiles,
        left::{self, Pin},
    },
    probes::{Prober, driver::Functions},
    shared_maps::{
        api_stats::ApiStats,
        counting::Counting,
        losses::{HandedOver, Losses},
        open_calls::OpenCalls,
        positions::Positions,
    },
    stacks::Stacks,
    sys,
    target::pid_namespace,
};
use load::{Loaded, load};

pub use crate::api_choice::Api;
pub(crate) use load::{Loading, see_tracefs};
pub use tracer_common::api::{Class, Classes, Layer};

/// What to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Probe the functions that advance write indexes (`--detail full`, and whenever submissions are linked to API calls).
    pub reserves: bool,
    /// Capture calls of functions of HIP, HSA and OpenCL.
    pub api: Api,
    /// The maximum number of user stacks that are taken per second; 0: none.
    pub stacks: u32,
    /// Trace child processes too.
    pub follow: bool,
    /// Trace every process of the machine: each from its first use of the KFD on.
    pub system: bool,
    /// Load debug files of runtimes from the servers in DEBUGINFOD_URLS (`--debuginfod`).
    pub debuginfod: bool,
    /// The invoking user's id: tracer trusts file systems that this user's programs serve as it trusts root's.
    pub user: u32,
    /// Pass on the programs' reports of their decisions, at level debug of [`log`].
    pub diagnostics: bool,
    /// How long a process may be paused for its probes. After that it continues without them, which counts as a loss.
    pub pause_limit: Duration,
    /// Size of the buffer between the programs and [`Session::drain`]: a power of two, bytes.
    pub buffer_bytes: u32,
}

/// Generation of the processes that are traced first: no other process has this generation.
pub(crate) const GENERATION: u32 = 1;

/// A running capture.
pub struct Session {
    events: RingBuf<MapData>,
    marks: Positions,
    pub(crate) traced: HashMap<MapData, u32, u32>,
    users: HashMap<MapData, u32, u8>,
    keeper: Keeper,
    pin: Option<Pin>,
    _guardian: Option<Guardian>,
    losses: Losses,
    api_stats: Option<ApiStats>,
    stacks: Option<Stacks>,
    open_calls: OpenCalls,
    discoveries: Discoveries,
    pub(crate) counting: Counting,
    pub(crate) asks: mpsc::Sender<Ask>,
    memory: Remote,
    undecoded: u64,
    /// Losses of the inventory that were handed over.
    reported: HandedOver,
    functions: Functions,
    pub(crate) inventory: Arc<Mutex<Inventory>>,
    stop: Arc<AtomicBool>,
    pub(crate) work: Arc<Work>,
    holder: Option<JoinHandle<Option<Prober>>>,
    listener: Option<JoinHandle<()>>,
}

impl Session {
    /// Loads the programs and attaches those that do not belong to a library. Nothing is traced yet. `readers` read the files and
    /// memory of other processes.
    ///
    /// # Errors
    /// Returns [`CaptureError::PidNamespace`]; [`CaptureError::Lacking`] or [`CaptureError::NotPermitted`] without the rights; and
    /// the other errors of the kernel.
    pub fn start(options: Options, guardian: Option<Guardian>, readers: Readers) -> Result<Self, CaptureError> {
        pid_namespace::require_initial()?;
        rights::require(&rights::RECORDING)?;
        // Without the folder in which dead recorders leave their pauses, there are none.
        for left in left::recover().unwrap_or_default() {
            log::warn!(
                "process {} was paused by tracer {}, which died: {}",
                left.pid,
                left.recorder,
                left.outcome
            );
        }
        descriptors::allow_all();
        let mut inventory = Inventory {
            api: options.api,
            ..Inventory::default()
        };
        // Loading has a thread of its own: it may need its own mount namespace to see tracefs, which ends with the thread.
        let stop = Arc::new(AtomicBool::new(false));
        let loaded = std::thread::scope(|scope| scope.spawn(|| load(options, &mut inventory, &stop)).join());
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
        if let Some(guardian) = &guardian {
            guardian.share(entries, pin.as_ref().map(|pin| pin.path.as_path()))?;
        }
        let keeper = Keeper::start(own)?;
        let known = KnownFiles::new(&prober.take_map("KNOWN")?)?;
        let (ioctls, threads) = (prober.take_map("ENTERED")?, prober.take_map("API_THREADS")?);
        let open_calls =
            OpenCalls::new(ioctls, threads, options.api.records()).map_err(|_| CaptureError::Missing("ENTERED"))?;
        let (traced, users) = (prober.take_map("TRACED")?, prober.take_map("USERS")?);
        let ring = prober.take_map("HOLDS")?;
        let inventory = Arc::new(Mutex::new(inventory));
        let (finder, discoveries) = discoveries();
        let (asks, asked) = mpsc::channel();
        let pauses = Arc::clone(keeper.pauses());
        let memory = Remote::new(readers.clone(), options.pause_limit);
        let work = Work::new(options, readers, prober, pauses, known, finder, Arc::clone(&inventory));
        let work = Arc::new(work);
        let holder = Examiner {
            ring,
            work: Arc::clone(&work),
            asked,
            stop: Arc::clone(&stop),
        };
        let spawned = std::thread::Builder::new().name("holder".into()).spawn(|| holder.run());
        Ok(Self {
            events,
            marks,
            traced,
            users,
            keeper,
            pin,
            _guardian: guardian,
            losses,
            api_stats,
            stacks,
            open_calls,
            discoveries,
            counting,
            asks,
            memory,
            undecoded: 0,
            reported: HandedOver::default(),
            functions,
            inventory,
            stop,
            work,
            holder: Some(spawned.map_err(|e| CaptureError::system("starting a thread", e))?),
            listener,
        })
    }

    /// Traces a process from now on, and the processes that it creates.
    ///
    /// # Errors
    /// Returns [`CaptureError::System`] if there are too many processes.
    pub fn trace(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.insert(pid)?;
        self.begin();
        Ok(())
    }

    /// Enters a process among the traced ones. Its submissions do not count yet.
    pub(crate) fn insert(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.traced.insert(pid, GENERATION, 0).map_err(not_traced)
    }

    /// Enters a process among those that use the KFD: tracer pauses it for the files that it maps from now on.
    pub(crate) fn insert_user(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.users.insert(pid, 1, 0).map_err(not_traced)
    }

    /// Makes submissions of traced processes count from now on. tracer makes no system call for a map from then on.
    pub(crate) fn begin(&mut self) {
        self.losses.begin();
        self.counting.open();
    }

    /// Hands over at most `most` records that have arrived; returns how many there were.
    pub fn drain(&mut self, most: usize, sink: &mut impl FnMut(&Event<'_>)) -> usize {
        let mut count = 0;
        while count < most {
            let next = self.events.next();
            self.discoveries.take(sink);
            let Some(item) = next else { break };
            count += 1;
            let known = decode::record(&item, &self.functions, &mut self.memory, sink);
            self.undecoded += u64::from(!known);
        }
        count
    }

    /// Returns the end of the records that programs have begun to write by now, whether they can be read yet or not.
    #[must_use]
    pub fn mark(&self) -> u64 {
        self.marks.reserved()
    }

    /// Returns whether all records before a mark were handed over. That [`Self::drain`] found nothing does not prove it.
    #[must_use]
    pub fn is_drained_to(&self, mark: u64) -> bool {
        self.marks.taken() >= mark
    }

    /// Gives up the records before a mark that were not handed over: they never will be. Their number is unknown, so they count as
    /// one lost record.
    pub fn give_up_before(&mut self, mark: u64) {
        if !self.is_drained_to(mark) {
            log::warn!("a program did not finish a record in time: it and what came after it is lost");
            self.undecoded += 1;
        }
    }

    /// Hands over the losses since the last call, the stacks that are unwound, and the libraries that no process uses any more.
    pub fn report_losses(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        let time_ns = sys::monotonic_ns();
        let mut lost = |source, count| sink(&Event::Lost(Lost { time_ns, source, count }));
        self.losses.report(&mut lost);
        let cut_short = self.keeper.pauses().take_cut_short();
        if cut_short > 0 {
            lost(PAUSE_LIMIT, cut_short);
        }
        if self.undecoded > 0 {
            lost(UNDECODED, std::mem::take(&mut self.undecoded));
        }
        if let Some(stacks) = &mut self.stacks {
            stacks.take(|stack| sink(&Event::Stack(stack)));
        }
        let mut lost = |source, count| sink(&Event::Lost(Lost { time_ns, source, count }));
        let mut inventory = examination::lock(&self.inventory);
        for (&source, &total) in &inventory.losses {
            self.reported.up_to(total, source, &mut lost);
        }
        let released = inventory.take_released();
        drop(inventory);
        released.iter().for_each(|library| sink(&Event::Library(library)));
    }

    /// Hands over the counts of API calls so far, if API calls are counted. After [`Self::detach`] the counts are final.
    pub fn report_api_stats(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(stats) = &self.api_stats {
            stats.report(sys::monotonic_ns(), &mut |stats| sink(&Event::ApiStats(stats)));
        }
    }

    /// Hands over the calls that are open now, as calls without a result. Call this only after [`Self::detach`].
    pub fn report_open_calls(&self, sink: &mut impl FnMut(&Event<'_>)) {
        self.open_calls.report(sys::monotonic_ns(), sink);
    }

    /// Returns a copy of the inventory so far.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        examination::lock(&self.inventory).clone()
    }

    /// Makes no submission count any more. When this returns, every program that counted one has begun to write its record. Probes
    /// stay attached, and processes are still paused for them: see [`Self::detach`].
    pub fn stop_counting(&mut self) {
        self.counting.close();
        sys::wait_for_programs();
    }

    /// Stops tracing, resumes every paused process and removes the probes. Earlier records can still be drained.
    pub fn detach(&mut self) {
        self.losses.end();
        // The filter comes first: programs that still run then see no traced process, so no further process is paused or enters.
        self.counting.admit_no_more();
        let pids: Vec<u32> = self.traced.keys().flatten().collect();
        for pid in pids {
            let _ = self.traced.remove(&pid);
        }
        self.stop.store(true, Ordering::Release);
        let mut prober = self.holder.take().map(JoinHandle::join);
        // Before the probes are removed, which takes a while.
        self.keeper.finish();
        if let Some(Ok(Some(prober))) = &mut prober {
            let probes = self.inventory().probes;
            let instructions = probes.into_iter().filter_map(|probe| probe.instruction);
            let hit_ns = cost::of_instructions(prober, &instructions.collect());
            examination::lock(&self.inventory).hit_ns = hit_ns;
        }
        drop(prober);
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

impl Drop for Session {
    fn drop(&mut self) {
        self.detach();
    }
}
