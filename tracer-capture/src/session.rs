//! A capture session: from loaded programs to a stream of events.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use aya::{
    Ebpf, EbpfError, EbpfLoader,
    maps::{HashMap, Map, MapData, MapError, RingBuf},
};
use tracer_core::{
    event::{Event, Lost},
    losses::UNDECODED,
};

use crate::{
    CaptureError,
    api_stats::ApiStats,
    code_object::lists::{self, Changes},
    decode, diagnostics,
    gate::Gate,
    guardian::Guardian,
    hold::{self, Ask, Holder},
    inventory::Inventory,
    kallsyms::Kallsyms,
    losses::Losses,
    object::Object,
    probes::{
        Prober, api,
        driver::{self, Functions},
        driver_event, ioctl, mapping,
        multi::Multi,
        process, progress, ring, twins,
    },
    sys,
};

pub use crate::probes::api::Api;

/// What to capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Probe the functions that advance write indexes (`--detail full`).
    pub reserves: bool,
    /// Capture calls of HIP and HSA functions.
    pub api: Api,
    /// Trace children too.
    pub follow: bool,
    /// Trace every process of the machine: each from its first use of the KFD on.
    pub system: bool,
    /// Load debug files of runtimes from the servers in DEBUGINFOD_URLS (`--debuginfod`).
    pub debuginfod: bool,
    /// Pass on what the programs say of their decisions, at level debug of [`log`].
    pub diagnostics: bool,
    /// Size of the buffer between the programs and [`Session::drain`]: a power of two, bytes.
    pub buffer_bytes: u32,
}

/// Generation of the processes that are traced first: no other one has theirs.
pub(crate) const GENERATION: u32 = 1;

/// A running capture.
pub struct Session {
    events: RingBuf<MapData>,
    pub(crate) traced: HashMap<MapData, u32, u32>,
    losses: Losses,
    api_stats: Option<ApiStats>,
    code_objects: Changes,
    pub(crate) gate: Gate,
    pub(crate) asks: mpsc::Sender<Ask>,
    undecoded: u64,
    functions: Functions,
    pub(crate) inventory: Arc<Mutex<Inventory>>,
    stop: Arc<AtomicBool>,
    holder: Option<JoinHandle<Prober>>,
    listener: Option<JoinHandle<()>>,
}

impl Session {
    /// Loads the programs and attaches those that belong to no library. Nothing is traced yet.
    ///
    /// # Errors
    /// [`CaptureError::NotPermitted`] without the rights, and what else the kernel refuses.
    pub fn start(options: Options, mut guardian: Option<Guardian>) -> Result<Self, CaptureError> {
        if let Some(guardian) = guardian.as_mut().filter(|_| options.system) {
            guardian.watch_all();
        }
        let mut inventory = Inventory {
            api: options.api,
            ..Inventory::default()
        };
        // On a thread of its own: it may need a mount namespace of its own to see tracefs, which ends with it.
        let stop = Arc::new(AtomicBool::new(false));
        let loaded = std::thread::scope(|scope| scope.spawn(|| load(options, &mut inventory, &stop)).join());
        let Loaded {
            mut maps,
            functions,
            prober,
            listener,
        } = loaded.map_err(|_| CaptureError::system("loading", io::Error::other("the loader panicked")))??;
        let counters = maps.remove("LOSSES").ok_or(CaptureError::Missing("LOSSES"))?;
        let losses = Losses::new(&counters, prober.programs()?)?;
        let counting = maps.remove("COUNTING").ok_or(CaptureError::Missing("COUNTING"))?;
        let gate = Gate::new(&counting)?;
        let api_stats = match options.api {
            Api::Stats => {
                let stats = maps.remove("API_STATS").ok_or(CaptureError::Missing("API_STATS"))?;
                Some(ApiStats::new(&stats)?)
            }
            _ => None,
        };
        let inventory = Arc::new(Mutex::new(inventory));
        let (lists, code_objects) = lists::lists();
        let (asks, asked) = mpsc::channel();
        let holder = Holder {
            code_objects: lists,
            ring: take(&mut maps, "HOLDS")?,
            prober,
            guardian,
            inventory: Arc::clone(&inventory),
            reserves: options.reserves,
            debuginfod: options.debuginfod,
            asked,
            api: options.api,
            system: options.system,
            stop: Arc::clone(&stop),
        };
        let spawned = std::thread::Builder::new().name("holder".into()).spawn(|| holder.run());
        Ok(Self {
            events: take(&mut maps, "EVENTS")?,
            traced: take(&mut maps, "TRACED")?,
            losses,
            api_stats,
            code_objects,
            gate,
            asks,
            undecoded: 0,
            functions,
            inventory,
            stop,
            holder: Some(spawned.map_err(|e| CaptureError::system("starting a thread", e))?),
            listener,
        })
    }

    /// Traces a process from now on, and those that it makes.
    ///
    /// # Errors
    /// [`CaptureError::System`] if there are too many.
    pub fn trace(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.insert(pid)?;
        self.begin();
        Ok(())
    }

    /// Enters a process among the traced. What it submits does not count yet.
    pub(crate) fn insert(&mut self, pid: u32) -> Result<(), CaptureError> {
        self.traced
            .insert(pid, GENERATION, 0)
            .map_err(|e| CaptureError::system("tracing a process", io::Error::other(e)))
    }

    /// From now on what traced processes submit counts, and no system call for a map is made any more.
    pub(crate) fn begin(&mut self) {
        self.losses.begin();
        self.gate.open();
    }

    /// Hands over at most `most` records that have come in; returns how many there were.
    pub fn drain(&mut self, most: usize, sink: &mut impl FnMut(&Event<'_>)) -> usize {
        let mut count = 0;
        while count < most {
            let next = self.events.next();
            self.code_objects.take(sink);
            let Some(item) = next else { break };
            count += 1;
            let known = decode::record(&item, &self.functions, sink);
            self.undecoded += u64::from(!known);
        }
        count
    }

    /// Hands over what was lost since the last call.
    pub fn report_losses(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        let time_ns = sys::monotonic_ns();
        let mut lost = |source, count| sink(&Event::Lost(Lost { time_ns, source, count }));
        self.losses.report(&mut lost);
        if self.undecoded > 0 {
            lost(UNDECODED, std::mem::take(&mut self.undecoded));
        }
    }

    /// Hands over what was counted of API calls by now, if they are counted. After [`Self::detach`] it is final.
    pub fn report_api_stats(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(stats) = &self.api_stats {
            stats.report(sys::monotonic_ns(), &mut |stats| sink(&Event::ApiStats(stats)));
        }
    }

    /// A copy of what was set up so far.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        hold::lock(&self.inventory).clone()
    }

    /// Stops tracing, lets every held process go on and takes the probes out. What was captured before can still be
    /// drained.
    pub fn detach(&mut self) {
        self.losses.end();
        // First the filter: programs that still run see no traced process, so nobody is stopped any more, nor enters.
        self.gate.admit_no_more();
        let pids: Vec<u32> = self.traced.keys().flatten().collect();
        for pid in pids {
            let _ = self.traced.remove(&pid);
        }
        self.stop.store(true, Ordering::Release);
        if let Some(Ok(prober)) = self.holder.take().map(JoinHandle::join) {
            drop(prober);
        }
        if let Some(listener) = self.listener.take() {
            // Its panic would be about words only.
            let _ = listener.join();
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.detach();
    }
}

/// Takes a map out of the object.
fn take<M: TryFrom<Map, Error = MapError>>(maps: &mut Maps, name: &'static str) -> Result<M, CaptureError> {
    let map = maps.remove(name).ok_or(CaptureError::Missing(name))?;
    M::try_from(map).map_err(|_| CaptureError::Missing(name))
}

type Maps = std::collections::HashMap<&'static str, Map>;

/// What loading gives.
struct Loaded {
    maps: Maps,
    prober: Prober,
    functions: Functions,
    listener: Option<JoinHandle<()>>,
}

/// Loads the object, every program of it, and attaches the trace events.
fn load(options: Options, inventory: &mut Inventory, stop: &Arc<AtomicBool>) -> Result<Loaded, CaptureError> {
    see_tracefs()?;
    let layout = process::Layout::read()?;
    // Without the scheduler's events rings are not watched: a kernel without DRM, or whose driver is not loaded yet.
    let rings = ring::Plan::read();
    let driver_events = driver_event::Plan::read();
    let object = if options.diagnostics {
        Object::Diagnostic
    } else {
        Object::Plain
    };
    let loaded = Loading {
        object,
        follow: options.follow,
        system: options.system,
        api: options.api,
        buffer_bytes: Some(options.buffer_bytes),
        layout: &layout,
        rings: rings.as_ref().ok(),
        driver_events: &driver_events,
    };
    let mut ebpf = loaded.open()?;
    let multi = if options.api == Api::None {
        Multi::default()
    } else {
        multi(&ebpf, object)
    };
    let mut maps = Maps::new();
    for name in ["EVENTS", "HOLDS", "TRACED", "LOSSES", "COUNTING", "API_STATS"] {
        maps.insert(name, take_from(&mut ebpf, name)?);
    }
    // The log's ring too is taken out of the object before its programs are loaded.
    let listener = options
        .diagnostics
        .then(|| diagnostics::listen(&mut ebpf, Arc::clone(stop)))
        .transpose()?;
    let mut prober = Prober::load(ebpf)?.with_multi(multi);
    let symbols = Kallsyms::read(&[driver::FUNCTIONS.as_slice(), &[twins::PREEMPTIBLE]].concat());
    let twins = twins::needed(symbols.as_ref().ok());
    for probes in [
        ioctl::attach(&mut prober, twins),
        process::attach(&mut prober),
        progress::attach(&mut prober, twins),
        mapping::attach(&mut prober, twins),
    ] {
        inventory.add(probes);
    }
    let (functions, probes) = match symbols {
        Ok(symbols) => driver::attach(&mut prober, &symbols),
        Err(error) => {
            log::info!("functions of the kernel driver are not watched: /proc/kallsyms: {error}");
            Default::default()
        }
    };
    inventory.add(probes);
    match &rings {
        Ok(plan) => inventory.add(plan.attach(&mut prober)),
        Err(error) => log::info!("rings of the kernel driver are not watched: {error}"),
    }
    inventory.add(driver_events.attach(&mut prober));
    Ok(Loaded {
        maps,
        prober,
        functions,
        listener,
    })
}

/// The programs of function probes for links of many places; none on kernels that know no such links.
fn multi(ebpf: &Ebpf, object: Object) -> Multi {
    let loaded = object
        .bytes()
        .map_err(io::Error::other)
        .and_then(|bytes| Multi::load(bytes, ebpf, &api::PROGRAMS));
    loaded.unwrap_or_else(|error| {
        log::info!("probes in functions are attached one by one: links for many places: {error}");
        Multi::default()
    })
}

/// Makes tracefs visible to this thread.
///
/// # Errors
/// [`CaptureError::NotPermitted`] or [`CaptureError::NoTracefs`].
pub(crate) fn see_tracefs() -> Result<(), CaptureError> {
    sys::ensure_tracefs().map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => CaptureError::NotPermitted("mounting tracefs: operation not permitted".to_owned()),
        _ => CaptureError::NoTracefs(error),
    })
}

/// How the object is opened.
pub(crate) struct Loading<'a> {
    /// Which one.
    pub object: Object,
    /// Trace children too.
    pub follow: bool,
    /// Let processes enter by themselves.
    pub system: bool,
    /// What is done with calls of HIP and HSA functions.
    pub api: Api,
    /// Size of the ring of events; `None`: the object's own.
    pub buffer_bytes: Option<u32>,
    /// Of the kernel's process events.
    pub layout: &'a process::Layout,
    /// Of the scheduler's events, if rings can be watched.
    pub rings: Option<&'a ring::Plan>,
    /// Of amdgpu's own events.
    pub driver_events: &'a driver_event::Plan,
}

impl Loading<'_> {
    /// The object with this kernel's layouts in it, and its maps; none of its programs is in the kernel yet.
    ///
    /// # Errors
    /// [`CaptureError::NotPermitted`] without the rights, and what else the kernel refuses.
    pub fn open(&self) -> Result<Ebpf, CaptureError> {
        let follow = u8::from(self.follow);
        // The programs pass over this process.
        let system = if self.system { std::process::id() } else { 0 };
        let api = self.api.word();
        let mut loader = EbpfLoader::new();
        self.layout.apply(&mut loader, &follow);
        if let Some(plan) = self.rings {
            plan.apply(&mut loader);
        }
        self.driver_events.apply(&mut loader);
        loader
            .override_global("API", &api, true)
            .override_global("SYSTEM", &system, true);
        // Maps of what is not wanted take no memory.
        if self.api == Api::None {
            loader.map_max_entries("API_THREADS", 1);
        }
        if self.api != Api::Stats {
            loader.map_max_entries("API_STATS", 1);
            loader.map_max_entries("API_PLACES", 1);
        }
        if let Some(bytes) = self.buffer_bytes {
            loader.map_max_entries("EVENTS", bytes);
        }
        loader.load(self.object.bytes()?).map_err(|error| not_loaded(&error))
    }
}

fn take_from(ebpf: &mut Ebpf, name: &'static str) -> Result<Map, CaptureError> {
    ebpf.take_map(name).ok_or(CaptureError::Missing(name))
}

fn not_loaded(error: &EbpfError) -> CaptureError {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    let mut refused = false;
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        let io = cause.downcast_ref::<io::Error>();
        refused |= io.is_some_and(|e| matches!(e.raw_os_error(), Some(libc::EPERM | libc::EACCES)));
        source = cause.source();
    }
    if refused {
        CaptureError::NotPermitted(text)
    } else {
        CaptureError::Refused {
            program: "object".to_owned(),
            reason: text,
        }
    }
}
