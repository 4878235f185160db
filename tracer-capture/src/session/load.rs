//! Loads the object and attaches its programs to their events.

use std::{
    error::Error,
    io,
    sync::{Arc, atomic::AtomicBool},
    thread::JoinHandle,
};

use aya::{Ebpf, EbpfError, EbpfLoader};
use tracer_common::pause::TaskLayout;
use tracer_core::words::{causes, with_causes};

use super::{Api, Options};
use crate::{
    CaptureError,
    inventory::Inventory,
    kernel::{btf::Btf, diagnostics, ebpf_object::Object, kallsyms::Kallsyms},
    probes::{
        Plain, Prober, api,
        driver::{self, Functions},
        driver_event, ioctl, mapping,
        multi::Multi,
        parallel, process, progress,
        raw_programs::Raw,
        ring, second_programs, stops,
    },
    sys,
};

/// The result of loading.
pub(super) struct Loaded {
    pub prober: Prober,
    pub functions: Functions,
    pub listener: Option<JoinHandle<()>>,
}

/// Loads the object and all of its programs, and attaches the trace events.
pub(super) fn load(
    options: Options,
    inventory: &mut Inventory,
    stop: &Arc<AtomicBool>,
) -> Result<Loaded, CaptureError> {
    see_tracefs()?;
    let layout = process::Layout::read()?;
    // aya reads the kernel's types, too. Each of both takes some tens of milliseconds.
    let (loader, btf) = parallel::both(EbpfLoader::new, || Btf::of_kernel(&ring::MODULES));
    let tasks = mapping::tasks(btf.as_ref());
    // Rings are not watched without the scheduler's events: on a kernel without DRM, or whose driver is not loaded yet.
    let rings = ring::Plan::read(btf.as_ref());
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
        stacks: options.stacks,
        buffer_bytes: Some(options.buffer_bytes),
        layout: &layout,
        tasks: &tasks,
        rings: rings.as_ref().ok(),
        driver_events: &driver_events,
    };
    // The kernel needs longer to print its functions than to create the maps, and only those of the driver get probes.
    let has_driver = driver::is_there();
    let wanted = [driver::FUNCTIONS.as_slice(), &[second_programs::PREEMPTIBLE]].concat();
    let symbols = || has_driver.then(|| Kallsyms::read(&wanted));
    let (symbols, ebpf) = parallel::both(symbols, || loaded.open(loader));
    let read = symbols.as_ref().and_then(|symbols| symbols.as_ref().ok());
    let twins = second_programs::needed(btf.as_ref(), read);
    let raw = Raw::new(btf.as_ref(), &tasks.0, twins);
    let sees_last_thread = layout.sees_last_thread();
    let mut ebpf = ebpf?;
    let multi = multi(&ebpf, object, options.api, has_driver);
    // The ring of the log is taken out of the object before the object's programs are loaded.
    let listener = options
        .diagnostics
        .then(|| diagnostics::listen(&mut ebpf, Arc::clone(stop)))
        .transpose()?;
    let mut prober = Prober::load(ebpf, multi, |name| {
        let left_out = raw.leaves_out(name) || sees_last_thread && name.starts_with(progress::PROGRAMS);
        !left_out && (is_usual(name, options.api) || twins && second_programs::is(name))
    })?;
    let process = process::attach(&mut prober, raw);
    let exit = sees_last_thread.then_some(&process[2]);
    for probes in [
        ioctl::attach(&mut prober, twins),
        progress::attach(&mut prober, twins, raw, exit),
        process.into(),
        mapping::attach(&mut prober, twins),
        stops::attach(&mut prober),
    ] {
        inventory.add(probes);
    }
    let (functions, probes) = match symbols {
        Some(Ok(symbols)) => {
            let types = btf.as_ref().and_then(|kernel| kernel.with_module("amdgpu"));
            let mut plans = prober.take_map("DRIVER_PLANS")?;
            driver::attach(&mut prober, &symbols, types.as_ref().map(|types| (types, &mut plans)))
        }
        None => Default::default(),
        Some(Err(error)) => {
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
        prober,
        functions,
        listener,
    })
}

/// Returns whether most recordings attach the program. Kernels differ in which events of rings they have.
fn is_usual(program: &str, api: Api) -> bool {
    let seldom = api.is_none() && api::PROGRAMS.contains(&program)
        || ["ring_", "driver_"].iter().any(|start| program.starts_with(start))
        || second_programs::is(program);
    !seldom
}

/// The programs of uprobes; the first one is small. The others are loaded from the end on, and the last ones take longest.
const UPROBES: [&str; 11] = [
    "hsa_queue_enter",
    "code_object",
    "hsa_queue_enter_described",
    "reserve",
    "runtime_init",
    "sdma_doorbell",
    "api_return",
    "api_enter",
    "hsa_queue_return",
    "doorbell_by_signal",
    "doorbell",
];

/// Loads the programs that links attach: programs of uprobes, and programs of the driver's functions if the driver is there. A kernel
/// without a kind of link gets no program of that kind.
fn multi(ebpf: &Ebpf, object: Object, api: Api, has_driver: bool) -> Multi {
    let uprobes: Vec<_> = UPROBES.into_iter().filter(|name| is_usual(name, api)).collect();
    let functions = if has_driver { driver::PROGRAMS.as_slice() } else { &[] };
    let loaded = object
        .bytes()
        .map_err(io::Error::other)
        .and_then(|bytes| Multi::load(bytes, ebpf, &uprobes, functions));
    loaded.unwrap_or_else(|error| {
        log::info!("probes use perf events, because the object's programs cannot be loaded for links: {error}");
        Multi::default()
    })
}

/// Makes tracefs visible to this thread.
///
/// # Errors
/// Returns [`CaptureError::NotPermitted`] or [`CaptureError::NoTracefs`].
pub(crate) fn see_tracefs() -> Result<(), CaptureError> {
    sys::ensure_tracefs().map_err(|error| match error.raw_os_error() {
        Some(libc::EPERM) => CaptureError::NotPermitted("mounting tracefs: operation not permitted".to_owned()),
        _ => CaptureError::NoTracefs(error),
    })
}

/// The smallest ring that the kernel creates on x86-64: a page, bytes.
const MIN_RING: u32 = 4096;

/// Settings with which the object is opened.
pub(crate) struct Loading<'a> {
    /// The object.
    pub object: Object,
    /// Whether to trace child processes too.
    pub follow: bool,
    /// Whether processes enter by themselves.
    pub system: bool,
    /// What tracer does with calls of API functions.
    pub api: Api,
    /// The maximum number of stacks per second.
    pub stacks: u32,
    /// Size of the ring of events; `None` for the object's own.
    pub buffer_bytes: Option<u32>,
    /// Layout of the kernel's process events.
    pub layout: &'a process::Layout,
    /// Layout of the kernel's structures of processes and files.
    pub tasks: &'a Plain<TaskLayout>,
    /// Layout of the scheduler's events, if rings can be watched.
    pub rings: Option<&'a ring::Plan>,
    /// Layout of amdgpu's own events.
    pub driver_events: &'a driver_event::Plan,
}

impl Loading<'_> {
    /// Opens the object with this kernel's layouts in it, and creates its maps; none of its programs is in the kernel yet. `loader`
    /// is a new one.
    ///
    /// # Errors
    /// Returns [`CaptureError::NotPermitted`] without the rights, and the errors of the kernel.
    pub fn open(&self, loader: EbpfLoader<'static>) -> Result<Ebpf, CaptureError> {
        let follow = u8::from(self.follow);
        // The programs skip this process.
        let system = if self.system { std::process::id() } else { 0 };
        let api = self.api.word();
        // Calls are wanted from the first one on, and some come before the first ioctl.
        let eager = u8::from(!self.api.is_none());
        let mut loader: EbpfLoader<'_> = loader;
        self.layout.apply(&mut loader);
        if let Some(plan) = self.rings {
            plan.apply(&mut loader);
        }
        self.driver_events.apply(&mut loader);
        loader
            .override_global("TASK", self.tasks, true)
            .override_global("FOLLOW", &follow, true)
            .override_global("API", &api, true)
            .override_global("EAGER", &eager, true)
            .override_global("STACK_LIMIT", &self.stacks, true)
            .override_global("SYSTEM", &system, true);
        // Maps that are not needed take no memory.
        if self.api.is_none() {
            loader.map_max_entries("API_THREADS", 1);
        }
        if !self.api.counts_any() {
            loader.map_max_entries("API_STATS", 1);
            loader.map_max_entries("API_PLACES", 1);
        }
        if self.stacks == 0 {
            loader.map_max_entries("STACKS", MIN_RING);
        }
        if let Some(bytes) = self.buffer_bytes {
            loader.map_max_entries("EVENTS", bytes);
        }
        loader.load(self.object.bytes()?).map_err(|error| not_loaded(&error))
    }
}

fn not_loaded(error: &EbpfError) -> CaptureError {
    let is_refused = |cause: &(dyn Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|error| matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)))
    };
    let text = with_causes(error);
    if causes(error).any(is_refused) {
        CaptureError::NotPermitted(text)
    } else {
        CaptureError::Refused {
            program: "object".to_owned(),
            reason: text,
        }
    }
}
