//! A capture session: from probes to a stream of events, whichever backend captures.

mod ebpf;
mod load;
mod sampled;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
    time::Duration,
};

use tracer_core::{
    event::{Event, Lost},
    losses::{PAUSE_LIMIT, UNDECODED},
};

use crate::{
    CaptureError,
    confined::Readers,
    cost,
    decode::fetch::Remote,
    examination::{
        self, Ask, Examiner, Holds, Work,
        discoveries::{Discoveries, discoveries},
    },
    inventory::Inventory,
    kernel::{descriptors, rights},
    pause::{guardian::Guardian, keeper::Keeper, known::KnownFiles, left},
    probes::Prober,
    samples,
    shared_maps::losses::HandedOver,
    sys,
    target::pid_namespace,
    wake::Waker,
};
use ebpf::EbpfSource;

pub use crate::api_choice::Api;
pub(crate) use load::{Loading, see_tracefs};
pub use tracer_common::api::{Class, Classes, Layer};
pub use tracer_core::backend::Backend;

/// What to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How to capture.
    pub backend: Backend,
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

/// The shortest time for which a collector of records of eBPF programs sleeps. Programs wake the reader only for what must be read
/// soon: that costs the traced thread the time of a system call.
pub(crate) const EBPF_NAP: Duration = Duration::from_millis(1);

/// The part of the time without records for which the collector sleeps next.
const NAP_PART: u32 = 4;

/// The longest: what is counted and shown at intervals must not wait.
const LONGEST_NAP: Duration = Duration::from_millis(50);

/// The most bytes of records that programs on one processor write in a microsecond, if it only rings doorbells.
const BYTES_PER_US: u64 = 128;

/// The part of the buffer that may fill while the collector sleeps.
const BUFFER_PART: u64 = 2;

/// Generation of the processes that are traced first: no other process has this generation.
pub(crate) const GENERATION: u32 = 1;

/// A running capture.
pub struct Session {
    source: Source,
    keeper: Keeper,
    _guardian: Option<Guardian>,
    discoveries: Discoveries,
    pub(crate) asks: Asks,
    /// Ends [`Self::wait`].
    waker: Waker,
    longest_nap: Duration,
    /// Whether there was a record at the end of the last wait.
    was_readable: bool,
    memory: Remote,
    undecoded: u64,
    /// Losses of the inventory that were handed over.
    reported: HandedOver,
    pub(crate) inventory: Arc<Mutex<Inventory>>,
    stop: Arc<AtomicBool>,
    pub(crate) work: Arc<Work>,
    holder: Option<JoinHandle<Option<Prober>>>,
}

/// Requests to the holder.
pub(crate) struct Asks {
    sender: mpsc::Sender<Ask>,
    waker: Waker,
}

impl Asks {
    /// Sends one; returns whether the holder still works.
    pub fn send(&self, ask: Ask) -> bool {
        let sent = self.sender.send(ask).is_ok();
        self.waker.wake();
        sent
    }
}

/// Returns the time in which programs write no more than a part of this buffer.
fn longest_nap(buffer_bytes: u32) -> Duration {
    let processors = std::thread::available_parallelism().map_or(1, |number| number.get() as u64);
    let part = u64::from(buffer_bytes) / BUFFER_PART;
    Duration::from_micros(part / (BYTES_PER_US * processors)).clamp(EBPF_NAP, LONGEST_NAP)
}

/// Where the events come from.
enum Source {
    Ebpf(Box<EbpfSource>),
    Sampled(Box<samples::Source>),
}

/// What the parts of a backend have in common when they are set up.
struct SetUp {
    source: Source,
    prober: Prober,
    keeper: Keeper,
    known: KnownFiles,
    holds: Holds,
}

impl Session {
    /// Sets up the backend, and attaches the probes that do not belong to a library. Nothing is traced yet. `readers` read the files
    /// and memory of other processes.
    ///
    /// # Errors
    /// Returns [`CaptureError::PidNamespace`]; [`CaptureError::Lacking`] or [`CaptureError::NotPermitted`] without the rights; and
    /// the other errors of the kernel.
    pub fn start(options: Options, guardian: Option<Guardian>, readers: Readers) -> Result<Self, CaptureError> {
        pid_namespace::require_initial()?;
        rights::require(rights::of(options.backend))?;
        let missing = rights::missing_of(&rights::CONFINING);
        if rustix::process::geteuid().is_root() && !missing.is_empty() {
            log::warn!(
                "the processes of tracer that read files of others keep root's rights over files: grant {}",
                missing.join(" and ").to_lowercase()
            );
        }
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
        readers
            .prepare()
            .map_err(|error| CaptureError::system("starting the readers", error))?;
        let mut inventory = Inventory {
            api: options.api,
            backend: options.backend,
            ..Inventory::default()
        };
        let stop = Arc::new(AtomicBool::new(false));
        let set_up = match options.backend {
            Backend::Perf | Backend::Ftrace => sampled::set_up(options, guardian.as_ref(), &mut inventory)?,
            Backend::Ebpf | Backend::Other => {
                EbpfSource::set_up(options, guardian.as_ref(), &readers, &mut inventory, &stop)?
            }
        };
        let SetUp {
            source,
            prober,
            keeper,
            known,
            holds,
        } = set_up;
        let inventory = Arc::new(Mutex::new(inventory));
        let (finder, discoveries) = discoveries();
        let (sender, asked) = mpsc::channel();
        let waker = || Waker::new().map_err(|e| CaptureError::system("creating an event descriptor", e));
        let asks = Asks {
            sender,
            waker: waker()?,
        };
        let pauses = Arc::clone(keeper.pauses());
        let memory = Remote::new(readers.clone(), options.pause_limit);
        let work = Work::new(options, readers, prober, pauses, known, finder, Arc::clone(&inventory));
        let work = Arc::new(work);
        if options.backend == Backend::Ftrace {
            work.probe_own_c_library();
        }
        let holder = Examiner {
            holds,
            work: Arc::clone(&work),
            asked,
            waker: asks.waker.clone(),
            stop: Arc::clone(&stop),
        };
        let spawned = std::thread::Builder::new().name("holder".into()).spawn(|| holder.run());
        Ok(Self {
            source,
            keeper,
            _guardian: guardian,
            discoveries,
            asks,
            waker: waker()?,
            longest_nap: longest_nap(options.buffer_bytes),
            was_readable: false,
            memory,
            undecoded: 0,
            reported: HandedOver::default(),
            inventory,
            stop,
            work,
            holder: Some(spawned.map_err(|e| CaptureError::system("starting a thread", e))?),
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
        match &mut self.source {
            Source::Ebpf(source) => source.insert(pid),
            Source::Sampled(source) => {
                source.insert(pid, GENERATION);
                Ok(())
            }
        }
    }

    /// Enters a process among those that use the KFD: tracer pauses it for the files that it maps from now on.
    pub(crate) fn insert_user(&mut self, pid: u32) -> Result<(), CaptureError> {
        match &mut self.source {
            Source::Ebpf(source) => source.insert_user(pid),
            Source::Sampled(source) => {
                source.insert_user(pid);
                Ok(())
            }
        }
    }

    /// Returns the source whose programs can trace every process of the machine.
    ///
    /// # Errors
    /// Returns [`CaptureError::NeedsEbpf`] for another backend.
    pub(crate) fn ebpf(&mut self) -> Result<&mut EbpfSource, CaptureError> {
        match &mut self.source {
            Source::Ebpf(source) => Ok(source),
            Source::Sampled(_) => Err(CaptureError::NeedsEbpf("--all")),
        }
    }

    /// Makes submissions of traced processes count from now on. tracer makes no system call for a map from then on.
    pub(crate) fn begin(&mut self) {
        match &mut self.source {
            Source::Ebpf(source) => source.begin(),
            Source::Sampled(source) => source.begin(),
        }
    }

    /// Hands over records that have arrived: at most `most` of eBPF programs, all samples, because these come from several
    /// buffers. Returns whether more may have arrived since.
    pub fn drain<S: FnMut(&Event<'_>)>(&mut self, most: usize, sink: &mut S) -> bool {
        let (memory, discoveries) = (&mut self.memory, &mut self.discoveries);
        match &mut self.source {
            Source::Ebpf(source) => source.drain(most, memory, sink, |sink| discoveries.take(sink)),
            Source::Sampled(source) => {
                source.drain(memory, sink, |sink| discoveries.take(sink));
                false
            }
        }
    }

    /// Sleeps, if [`Self::drain`] found no record for this time: ever longer, until the programs could fill half of the buffer
    /// meanwhile. A record whose memory must be read soon ends a longer sleep, and so does [`Self::waker`].
    pub fn wait(&mut self, without_records: Duration) {
        match &self.source {
            Source::Ebpf(source) => {
                let nap = (without_records / NAP_PART).clamp(EBPF_NAP, self.longest_nap);
                // A record that is begun counts as one that can be read. Waiting for the program that writes it would be no wait.
                if nap == EBPF_NAP || self.was_readable {
                    std::thread::sleep(EBPF_NAP);
                    self.was_readable = false;
                } else {
                    self.was_readable = self.waker.wait(Some(source.records()), nap);
                }
            }
            Source::Sampled(source) => {
                self.waker.wait(None, source.nap());
            }
        }
    }

    /// Returns what ends [`Self::wait`].
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Returns the end of the records that were begun by now, whether they can be read yet or not.
    #[must_use]
    pub fn mark(&self) -> u64 {
        match &self.source {
            Source::Ebpf(source) => source.mark(),
            Source::Sampled(_) => sys::monotonic_ns(),
        }
    }

    /// Returns whether all records before a mark were handed over. That [`Self::drain`] found nothing does not prove it.
    #[must_use]
    pub fn is_drained_to(&self, mark: u64) -> bool {
        match &self.source {
            Source::Ebpf(source) => source.is_drained_to(mark),
            Source::Sampled(source) => source.is_drained_to(mark),
        }
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
        match &mut self.source {
            Source::Ebpf(source) => source.take_losses(&mut lost),
            Source::Sampled(source) => source.take_losses(&mut lost),
        }
        let cut_short = self.keeper.pauses().take_cut_short();
        if cut_short > 0 {
            lost(PAUSE_LIMIT, cut_short);
        }
        if self.undecoded > 0 {
            lost(UNDECODED, std::mem::take(&mut self.undecoded));
        }
        if let Source::Ebpf(source) = &mut self.source {
            source.take_stacks(sink);
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
        if let Source::Ebpf(source) = &mut self.source {
            source.report_api_stats(sink);
        }
    }

    /// Hands over the calls that are open now, as calls without a result. Call this only after [`Self::detach`].
    pub fn report_open_calls(&self, sink: &mut impl FnMut(&Event<'_>)) {
        match &self.source {
            Source::Ebpf(source) => source.report_open_calls(sink),
            Source::Sampled(source) => source.report_open_calls(sink),
        }
    }

    /// Returns a copy of the inventory so far.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        examination::lock(&self.inventory).clone()
    }

    /// Makes no submission count any more. When this returns, every program that counted one has begun to write its record. Probes
    /// stay attached, and processes are still paused for them: see [`Self::detach`].
    pub fn stop_counting(&mut self) {
        match &mut self.source {
            Source::Ebpf(source) => source.stop_counting(),
            Source::Sampled(source) => source.stop_counting(),
        }
    }

    /// Stops tracing, resumes every paused process and removes the probes. Earlier records can still be drained.
    pub fn detach(&mut self) {
        // The filter comes first: no further process is paused or enters.
        match &mut self.source {
            Source::Ebpf(source) => source.admit_no_more(),
            Source::Sampled(source) => source.pause_no_more(),
        }
        self.stop.store(true, Ordering::Release);
        self.asks.waker.wake();
        let mut prober = self.holder.take().map(JoinHandle::join);
        // Before the probes are removed, which takes a while.
        self.keeper.finish();
        if let Source::Ebpf(_) = self.source
            && let Some(Ok(Some(prober))) = &mut prober
        {
            let probes = self.inventory().probes;
            let instructions = probes.into_iter().filter_map(|probe| probe.instruction);
            let hit_ns = cost::of_instructions(prober, &instructions.collect());
            examination::lock(&self.inventory).hit_ns = hit_ns;
        }
        drop(prober);
        if let Source::Ebpf(source) = &mut self.source {
            source.finish();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.detach();
    }
}
