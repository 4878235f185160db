//! Attaches probes to the libraries of a process, and reports what else is known about the process.

use std::{os::fd::AsFd, sync::Arc};

use tracer_common::api::Layer;
use tracer_core::{
    backend::Backend,
    event::Origin,
    family::Family,
    losses::{LIBRARY_UNTRACED, unattached},
};

use super::{LIMIT, Work, lock};
use crate::{
    confined::{Examine, NotRead, ReadError},
    examination::discoveries::Discovery,
    inventory::{Library, Probe},
    probes::{
        Prober, Target, api, api_table::Process, c_library, code_object, doorbell, hsa_queue, mapping, proxy, reserve,
        sdma,
    },
    runtime::{
        library::{Client, Compared, Examined, Libraries, Probed, Runtime, Turn, key_at},
        resolver::Resolution,
        thunk,
    },
    target::proc_maps::{FileId, Mapping},
};

/// Most C libraries that get probes, which they keep until the end: arguments of ioctls through others are unknown.
const MAX_C_LIBRARIES: usize = 256;

impl Work {
    /// Attaches probes to runtimes among mapped files that were not examined before.
    pub(super) fn probe_files(&self, examine: &Examine<'_>, mappings: &[Mapping]) {
        // This must come before the process relies on attached probes.
        self.uses_of(examine.pid, mappings);
        if self.settings.backend == Backend::Ftrace {
            self.probe_c_libraries(examine, mappings);
        }
        self.forget_changed(examine, mappings);
        for mapping in mappings {
            let claim = match self.libraries.claim(&mapping.file, examine.deadline) {
                Turn::Own(claim) => claim,
                Turn::Done => continue,
                Turn::Late => {
                    self.unopened(examine.pid, mapping, &ReadError::Blocked.into());
                    continue;
                }
            };
            let (key, probed) = match self.libraries.examine(examine, examine.pid, mapping) {
                Examined::Gone => continue,
                Examined::Unopened(error) => {
                    drop(claim);
                    self.unopened(examine.pid, mapping, &error);
                    continue;
                }
                Examined::Nothing(key) => (key, None),
                Examined::Broken(key, warning) => {
                    let mut inventory = lock(&self.inventory);
                    inventory.warn(warning);
                    inventory.lose(LIBRARY_UNTRACED);
                    (Some(key), None)
                }
                Examined::Client(key, client) => {
                    let (contents, runtime) = (client.contents, None);
                    self.client(*client);
                    (Some(key), Some(Probed { contents, runtime }))
                }
                Examined::Runtime(key, found) => {
                    let (library, runtime) = *found;
                    self.runtime(library, &runtime);
                    let (contents, runtime) = (runtime.contents, Some(Arc::new(runtime)));
                    (Some(key), Some(Probed { contents, runtime }))
                }
            };
            claim.settle(key, probed);
            // The probes of the file are attached.
            if let Some(key) = key {
                self.know(&mapping.file, key);
            }
        }
        self.uses_of(examine.pid, mappings);
    }

    /// Forgets files among those mappings that are not what they were when they were examined. The inode of a file that is gone may
    /// belong to another one, which may be a runtime. A file with probes keeps its inode, but may have been written to.
    fn forget_changed(&self, examine: &Examine<'_>, mappings: &[Mapping]) {
        let known = mappings
            .iter()
            .filter(|mapping| self.libraries.is_examined(&mapping.file));
        let known: Vec<&Mapping> = known.collect();
        if known.is_empty() {
            return;
        }
        let changes = match examine.changes(&known) {
            Ok(changes) => changes,
            Err(error) => return self.unread(examine.pid, &error.into()),
        };
        for (mapping, changed) in known.into_iter().zip(changes) {
            let Some(now) = changed.and_then(|changed| key_at(&mapping.file, changed)) else {
                continue;
            };
            let Compared::Probed { contents } = self.libraries.compare(&mapping.file, now) else {
                continue;
            };
            match Libraries::contents(examine, mapping) {
                Ok(found) if found == contents => {
                    self.libraries.is_still(&mapping.file, now);
                    self.know(&mapping.file, now);
                }
                Ok(_) => self.was_written_to(mapping),
                Err(error) => self.unopened(examine.pid, mapping, &error.into()),
            }
        }
    }

    /// Handles a file with probes whose contents are other ones now: its probes are at wrong places.
    fn was_written_to(&self, mapping: &Mapping) {
        let path = &mapping.path;
        self.let_go(&mapping.file);
        let mut inventory = lock(&self.inventory);
        inventory.warn(format!(
            "{path} was written to while a process used it; tracer examines it again"
        ));
        inventory.lose(LIBRARY_UNTRACED);
    }

    /// Attaches probes to the C library that this process uses. Many programs of the machine use the same file, and then the
    /// arguments of their first ioctls are known, too.
    pub fn probe_own_c_library(&self) {
        let examined = self.examine(std::process::id(), LIMIT).and_then(|examine| {
            self.probe_c_libraries(&examine, &examine.mappings()?);
            Ok(())
        });
        if let Err(error) = examined {
            log::info!("the own C library is not probed: {error}");
        }
    }

    /// Attaches probes to C libraries among mapped files that were not examined before.
    fn probe_c_libraries(&self, examine: &Examine<'_>, mappings: &[Mapping]) {
        let named = mappings.iter().filter(|mapping| is_c_library(&mapping.path));
        for mapping in named {
            let mut known = lock(&self.c_libraries);
            if known.len() >= MAX_C_LIBRARIES || !known.insert(mapping.file.clone()) {
                continue;
            }
            drop(known);
            let found = || -> Result<_, NotRead> {
                let file = examine.mapped(mapping)?;
                let call = examine.ioctl_call(&examine.library(&file)?)?;
                Ok((file, call.unwrap_or_default()))
            };
            let path = &mapping.path;
            match found() {
                Ok((file, Some(call))) => {
                    let target = Target {
                        file: file.as_fd(),
                        path,
                    };
                    let attach = |prober: &mut Prober| c_library::attach(prober, &target, call);
                    let mut probes = self.attach(&mapping.file, path, attach);
                    lock(&self.inventory).add_of_library(path, &mut probes);
                }
                Ok((_, None)) => {
                    let warning = format!(
                        "{path}: tracer does not understand its function ioctl; arguments of ioctls of programs that use this \
                         library are unknown"
                    );
                    lock(&self.inventory).warn(warning);
                }
                Err(error) => {
                    lock(&self.c_libraries).remove(&mapping.file);
                    self.unopened(examine.pid, mapping, &error);
                }
            }
        }
    }

    /// Attaches probes to a library. Attaches none if the session ends.
    fn attach(&self, library: &FileId, path: &str, attach: impl FnOnce(&mut Prober) -> Vec<Probe>) -> Vec<Probe> {
        let mut prober = lock(&self.prober);
        let probes = prober.as_mut().map(|prober| prober.of_library(library, attach));
        drop(prober);
        let probes = probes.unwrap_or_default();
        log_probes(path, &probes);
        probes
    }

    /// Attaches the probes of a runtime that a process mapped, and that was not known before.
    fn runtime(&self, library: Library, runtime: &Runtime) {
        let (target, resolution) = (runtime.target(), &*runtime.resolution);
        let last_resort = !resolution.last_resort().is_empty();
        self.is_probed(&runtime.id, &library.path);
        let mut probes = self.attach(&runtime.id, &library.path, |prober| {
            let mut probes = doorbell::attach(prober, &target, resolution);
            // The other probes follow pointers when they are hit.
            if self.settings.backend == Backend::Ebpf {
                probes.extend(sdma::attach(prober, &target, resolution));
                probes.extend(hsa_queue::attach(prober, &target, resolution));
            }
            probes.extend(code_object::attach(prober, &target, resolution));
            probes.extend(api::attach(prober, &target, &runtime.entries, self.settings.api));
            if self.needs_tables(resolution) {
                probes.extend(mapping::attach_init(prober, &target, resolution));
            }
            // Otherwise the probes are placed where `hsa_init` begins.
            let is_at_init = |probe: &Probe| probe.family == Family::Mapping && probe.attached();
            if last_resort && !probes.iter().any(is_at_init) {
                let sites = doorbell::last_resort(resolution, None).unwrap_or_default();
                probes.extend(doorbell::attach_last_resort(prober, &target, sites));
            }
            probes
        });
        let mut inventory = lock(&self.inventory);
        if last_resort {
            inventory.warn(doorbell::unseen_by_last_resort(&library.path));
        }
        let notes = resolution.notes.iter().map(|note| format!("{}: {note}", library.path));
        notes.for_each(|note| inventory.warn(note));
        inventory.add_of_library(&library.path, &mut probes);
        inventory.add_library(library);
    }

    /// Returns whether tracer probes anything behind the API tables of this runtime.
    pub(super) fn needs_tables(&self, resolution: &Resolution) -> bool {
        let wants_tables = self.settings.reserves || self.settings.api.wants(Layer::Hsa);
        self.settings.backend == Backend::Ebpf && (wants_tables || !resolution.last_resort().is_empty())
    }

    /// Reports whether a program's runtimes hand doorbells over: once, and again after another runtime was added. Reports nothing
    /// while one of the runtimes is not initialised. Reports unknown if one of them is not understood, or if they differ.
    pub(super) fn thunk(&self, examine: &Examine<'_>, origin: Origin, generation: u32) -> Result<(), NotRead> {
        let told_by = (generation, self.libraries.runtimes());
        if lock(&self.thunks).get(&origin.pid) == Some(&told_by) {
            return Ok(());
        }
        let memory = examine.memory();
        let (mut hands_over, mut is_known) = (None, true);
        for mapping in examine.mappings()? {
            let Some(runtime) = self.libraries.runtime(&mapping.file) else {
                continue;
            };
            let resolution = &runtime.resolution;
            if resolution.doorbells.is_empty() {
                is_known = false;
                continue;
            }
            // This is a mapping of another part of the library's file.
            if mapping.bias(resolution).is_none() {
                continue;
            }
            let found = if resolution.may_hand_over() {
                is_known &= resolution.thunk_flags().is_some();
                thunk::hands_over(&memory, &mapping, resolution)
            } else {
                Some(false)
            };
            match found {
                Some(found) => {
                    // The record of a doorbell does not say which runtime the doorbell belongs to.
                    is_known &= hands_over.is_none_or(|other| other == found);
                    hands_over = Some(found);
                }
                None if is_known => return Ok(()),
                None => {}
            }
        }
        if hands_over.is_some() || !is_known {
            lock(&self.thunks).insert(origin.pid, told_by);
            self.finder
                .report(origin, Discovery::HandsOver(hands_over.filter(|_| is_known)));
        }
        Ok(())
    }

    /// Handles a tool's queue that was given to a program: attaches probes to the functions that store to its signal.
    pub(super) fn proxy(&self, examine: &Examine<'_>, object: u64) -> Result<(), NotRead> {
        let mappings = examine.mappings()?;
        let (places, mut probes) = proxy::places(*examine, &self.libraries, object, &mappings)?;
        for place in places {
            let library = place.runtime.id.clone();
            let attached = self.attach(&library, "a proxy", |prober| {
                proxy::attach(prober, place).into_iter().collect()
            });
            probes.extend(attached);
        }
        let mut inventory = lock(&self.inventory);
        let failed = probes.iter().filter(|probe| !probe.attached());
        let warnings = failed.map(|probe| format!("what programs ask of a tool's queues is not seen: {probe}"));
        let warnings: Vec<String> = warnings
            .filter(|warning| !inventory.warnings.contains(warning))
            .collect();
        warnings.iter().for_each(|_| inventory.lose(unattached(Family::Proxy)));
        warnings.into_iter().for_each(|warning| inventory.warn(warning));
        // A program may be given any number of proxies.
        probes.retain(|probe| !inventory.probes.contains(probe));
        inventory.probes.append(&mut probes);
        Ok(())
    }

    /// Attaches the probes of a library of HIP or OpenCL, which the process mapped.
    fn client(&self, client: Client) {
        let target = Target {
            file: std::os::fd::AsFd::as_fd(&client.file),
            path: &client.library.path,
        };
        self.is_probed(&client.id, target.path);
        let mut probes = self.attach(&client.id, target.path, |prober| {
            api::attach(prober, &target, &client.entries, self.settings.api)
        });
        let mut inventory = lock(&self.inventory);
        inventory.add_of_library(&client.library.path, &mut probes);
        inventory.add_library(client.library);
    }

    /// Handles a process that enters `hsa_init`, or has done so: its API tables can be read.
    pub(super) fn initialising(&self, examine: &Examine<'_>, mappings: &[Mapping]) -> Result<(), NotRead> {
        for mapping in mappings {
            let Some(runtime) = self.libraries.runtime(&mapping.file).filter(|r| !r.is_initialised()) else {
                continue;
            };
            let resolution = &*runtime.resolution;
            let process = Process::new(*examine, &runtime.file, &mapping.file, mappings);
            let last_resort = doorbell::last_resort(resolution, Some(&process))?;
            let reserves = self.settings.reserves.then(|| reserve::places(resolution, &process));
            let reserves = reserves.transpose()?;
            let functions = api::behind_table(&runtime.entries, &process, self.settings.api)?;
            let target = runtime.target();
            let mut probes = self.attach(&runtime.id, &runtime.path, |prober| {
                // Another process may have come first.
                if runtime.is_initialised() {
                    return Vec::new();
                }
                let mut probes = doorbell::attach_last_resort(prober, &target, last_resort);
                if let Some(places) = reserves {
                    probes.extend(reserve::attach(prober, &target, resolution, places));
                }
                probes.extend(api::attach_all(prober, &target, functions));
                // This is set only now, because a thread that sees it set does not wait.
                runtime.set_initialised();
                probes
            });
            lock(&self.inventory).add_of_library(&runtime.path, &mut probes);
        }
        Ok(())
    }
}

/// Returns whether a file is named like a C library: glibc's names, now and before 2.34, and musl's.
fn is_c_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    ["libc.so", "libc-2.", "ld-musl-"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Logs which probes were attached to a library, and how each place was found.
fn log_probes(path: &str, probes: &[Probe]) {
    let attached = probes.iter().filter(|probe| probe.attached()).count();
    log::info!("{path}: {attached} of {} probes attached", probes.len());
    for probe in probes {
        log::debug!("{path}: {probe}");
    }
}
