//! The probes: one file per probe family, with the name of the eBPF program's file.

pub mod api;
pub mod api_table;
pub mod c_library;
pub mod code_object;
pub mod doorbell;
pub mod driver;
pub mod driver_event;
pub mod hsa_queue;
pub mod ioctl;
pub mod mapping;
pub mod multi;
pub(crate) mod parallel;
pub mod process;
pub mod progress;
pub mod proxy;
pub mod raw_programs;
pub mod reserve;
pub mod ring;
pub mod sdma;
pub mod second_programs;
pub mod stops;
pub mod tracefs;

use std::{
    collections::HashMap,
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    sync::Arc,
    thread,
};

use aya::{
    Ebpf, Pod,
    maps::Map,
    programs::{
        Program, ProgramError,
        uprobe::{UProbeAttachLocation, UProbeAttachPoint, UProbeScope},
    },
};
use tracer_common::{
    driver_plan::DriverPlan,
    pause::TaskLayout,
    record::{DriverEventLayout, EventLayout, StructLayout},
};

use self::multi::Multi;
use crate::{
    CaptureError,
    inventory::{Probe, RAW},
    kernel::descriptors,
    runtime::resolver::{Confidence, ExportSite, ProbePoint, ResolverStep},
    samples::{self, Attach},
    target::proc_maps::FileId,
};
use tracer_core::{family::Family, words::with_causes};

/// Attaches probes. They stay attached while this value lives.
pub struct Prober {
    backend: Backend,
    links: Links,
    /// Attachments to libraries, which end before the session does if no process uses the library any more.
    of_libraries: HashMap<FileId, Links>,
    /// The library to which new attachments belong.
    library: Option<FileId>,
    sites: u32,
}

/// What a hit of a probe causes.
enum Backend {
    /// It runs a program of the loaded object.
    Ebpf(Programs),
    /// It writes a sample.
    Samples(Arc<dyn Attach>),
}

/// The loaded object.
struct Programs {
    ebpf: Ebpf,
    multi: Multi,
    /// The programs that were attached to trace events.
    attached: Vec<&'static str>,
}

/// A value in the form in which the programs and their maps take it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plain<T>(pub T);
// SAFETY: the type is `repr(C)` and consists of u32 only.
unsafe impl Pod for Plain<TaskLayout> {}
// SAFETY: as above.
unsafe impl Pod for Plain<EventLayout> {}
// SAFETY: as above.
unsafe impl Pod for Plain<StructLayout> {}
// SAFETY: as above.
unsafe impl Pod for Plain<DriverEventLayout> {}
// SAFETY: the type is `repr(C)`, consists of integers, and has no padding.
unsafe impl Pod for Plain<DriverPlan> {}

/// An attachment; dropping it detaches.
type Attached = Box<dyn Send>;

/// The number of attachments that are detached at once.
const AT_ONCE: usize = 64;

/// Attachments; dropping them detaches.
#[derive(Default)]
pub struct Links(Vec<Attached>);

impl Drop for Prober {
    /// Detaches all probes together.
    fn drop(&mut self) {
        for links in self.of_libraries.values_mut() {
            self.links.0.append(&mut links.0);
        }
    }
}

impl Links {
    fn one(link: Attached) -> Self {
        Self(vec![link])
    }
}

impl Drop for Links {
    /// Detaches the probes, many at once: for each the kernel waits until no processor can be inside any more (80 ms here), and
    /// some of the waits that begin together coincide.
    fn drop(&mut self) {
        while !self.0.is_empty() {
            let some = self.0.split_off(self.0.len().saturating_sub(AT_ONCE));
            thread::scope(|scope| {
                for link in some {
                    // If no thread can be created, the probe is detached here.
                    let _ = thread::Builder::new().spawn_scoped(scope, move || drop(link));
                }
            });
        }
    }
}

/// A library file that probes can be attached to.
pub struct Target<'a> {
    /// The file, by a descriptor that may refer to its path only: probes belong to the file, whatever its name.
    pub file: BorrowedFd<'a>,
    /// The path as the process sees it, for reports.
    pub path: &'a str,
}

impl Target<'_> {
    /// Returns the path at which this process reaches the file.
    fn own_path(&self) -> CString {
        // The path contains no 0 byte, so this never returns the default.
        CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd())).unwrap_or_default()
    }
}

/// A place in the library, and the purpose of the probe there.
pub struct Site {
    /// The instruction.
    pub point: ProbePoint,
    /// The upper half of the cookie: what the program must know about the site.
    pub upper: u32,
    /// The function or instruction at the site, for reports.
    pub role: String,
    /// The resolver's step that found the site, and its confidence; `None` if there was no choice.
    pub found: Option<(ResolverStep, Confidence)>,
}

impl Site {
    /// Returns the site for an exported function: in it, or in the function behind it.
    fn of(export: &ExportSite, point: ProbePoint, step: ResolverStep) -> Self {
        Self {
            point,
            upper: 0,
            role: export.names.join(", "),
            found: Some((step, export.confidence)),
        }
    }

    /// Returns the probe as the inventory lists it.
    fn probe(self, family: Family, target: &Target<'_>, error: Option<String>) -> Probe {
        Probe {
            family,
            target: target.path.to_owned(),
            role: self.role,
            file_offset: Some(self.point.file_offset),
            instruction: Some(self.point.instruction.to_string()),
            step: self.found.map(|(step, _)| step.to_string()),
            confidence: self.found.map(|(_, confidence)| confidence),
            error,
        }
    }
}

/// The result of loading a program of the object.
pub struct LoadedProgram {
    /// The name of the program.
    pub name: String,
    /// The number of instructions that the verifier checked; kernels since 5.16 report it.
    pub verified: Option<u32>,
    /// The reason why the kernel refused the program; `None` if the kernel accepted it.
    pub refused: Option<CaptureError>,
}

impl Prober {
    /// Loads the wanted programs that `multi` does not have into the kernel, so that a refusal shows at the start. A program
    /// that was not wanted is loaded when it is attached.
    ///
    /// # Errors
    /// Fails with [`CaptureError::Refused`] and the verifier's message.
    pub fn load(ebpf: Ebpf, multi: Multi, is_wanted: impl Fn(&str) -> bool) -> Result<Self, CaptureError> {
        accepted(Self::load_some(ebpf, multi, is_wanted))
    }

    /// Loads every program that the kernel accepts, and reports the result for each.
    pub fn load_each(ebpf: Ebpf, multi: Multi) -> (Self, Vec<LoadedProgram>) {
        Self::load_some(ebpf, multi, |_| true)
    }

    fn load_some(mut ebpf: Ebpf, multi: Multi, is_wanted: impl Fn(&str) -> bool) -> (Self, Vec<LoadedProgram>) {
        let programs = ebpf.programs_mut();
        let wanted = programs.filter(|(name, _)| is_wanted(name) && !multi.has(name));
        let loaded = parallel::on_processors(wanted, |(name, program)| load(name, program));
        let attached = Vec::new();
        let backend = Backend::Ebpf(Programs { ebpf, multi, attached });
        (Self::of(backend), loaded)
    }

    /// Attaches probes that write samples, instead of programs.
    #[must_use]
    pub fn of_samples(probes: Arc<dyn Attach>) -> Self {
        Self::of(Backend::Samples(probes))
    }

    fn of(backend: Backend) -> Self {
        Self {
            backend,
            links: Links::default(),
            of_libraries: HashMap::new(),
            library: None,
            sites: 0,
        }
    }

    fn ebpf(&mut self) -> Option<&mut Programs> {
        match &mut self.backend {
            Backend::Ebpf(programs) => Some(programs),
            Backend::Samples(_) => None,
        }
    }

    /// Takes a map out of the object.
    ///
    /// # Errors
    /// Fails with [`CaptureError::Missing`] if the object has no such map of this kind.
    pub fn take_map<M: TryFrom<Map>>(&mut self, name: &'static str) -> Result<M, CaptureError> {
        let map = self.ebpf().and_then(|programs| programs.ebpf.take_map(name));
        let map = map.and_then(|map| map.try_into().ok());
        map.ok_or(CaptureError::Missing(name))
    }

    /// Returns descriptors of the loaded programs, with their names; of second programs, only those that are attached.
    ///
    /// # Errors
    /// Fails if no descriptor is left.
    pub fn programs(&self) -> Result<Vec<(String, OwnedFd)>, CaptureError> {
        let Backend::Ebpf(Programs { ebpf, multi, attached }) = &self.backend else {
            return Ok(Vec::new());
        };
        let loaded = ebpf.programs().filter_map(|(name, program)| {
            if second_programs::is(name) && !attached.contains(&name) {
                return None;
            }
            let fd = program.fd().ok()?.as_fd();
            Some(fd.try_clone_to_owned().map(|fd| (name.to_owned(), fd)))
        });
        let multi = multi
            .programs()
            .map(|(name, fd)| Ok((name.to_owned(), fd.try_clone_to_owned()?)));
        loaded
            .chain(multi)
            .collect::<Result<_, _>>()
            .map_err(|error| CaptureError::system("duplicating program descriptors", error))
    }

    /// Attaches the probes that belong to a library.
    pub fn of_library<T>(&mut self, library: &FileId, attach: impl FnOnce(&mut Self) -> T) -> T {
        self.library = Some(library.clone());
        let attached = attach(self);
        self.library = None;
        attached
    }

    /// Returns the attachments to a library; dropping them detaches.
    pub fn release(&mut self, library: &FileId) -> Links {
        self.of_libraries.remove(library).unwrap_or_default()
    }

    /// Attaches a uprobe. The cookie that the program sees consists of `upper` and, below it, the site's number.
    ///
    /// All processes that map the file are probed, and the program skips those that are not traced. A second process of the tree
    /// therefore has its probes from its first instruction on.
    pub fn uprobe(&mut self, program: &'static str, family: Family, target: &Target<'_>, site: Site) -> Probe {
        let cookie = u64::from(site.upper) << 32 | u64::from(self.sites);
        self.sites += 1;
        let links = self.site(program, target, site.point.file_offset, cookie);
        let error = links.map(|links| self.push(links)).err().map(|error| error.to_string());
        site.probe(family, target, error)
    }

    fn site(
        &mut self,
        program: &'static str,
        target: &Target<'_>,
        file_offset: u64,
        cookie: u64,
    ) -> Result<Links, CaptureError> {
        descriptors::room_for_probe(target.file).map_err(CaptureError::NoDescriptor)?;
        let path = target.own_path();
        match &mut self.backend {
            Backend::Ebpf(programs) => programs.site(program, &path, file_offset, cookie).map(Links::one),
            Backend::Samples(probes) => sampled_site(&**probes, program, &path, file_offset, cookie),
        }
    }

    /// Attaches `[entry, return]` to functions of a library, by one link each.
    ///
    /// # Errors
    /// Fails with the kernel's error; nothing is attached then.
    pub fn function_probes(
        &mut self,
        [enter, leave]: [&'static str; 2],
        target: &Target<'_>,
        functions: &[api::Function],
    ) -> io::Result<()> {
        let Some(Programs { multi, .. }) = self.ebpf() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let path = target.own_path();
        let offsets: Vec<u64> = functions.iter().map(|f| f.site.point.file_offset).collect();
        let cookies: Vec<u64> = functions.iter().map(|f| f.cookie.0).collect();
        // The return is attached first: an entry without its return would wait for one forever.
        let returns = multi.attach(leave, &path, &offsets, &cookies)?;
        let entries = multi.attach(enter, &path, &offsets, &cookies)?;
        self.push(Links::one(Box::new([entries, returns])));
        Ok(())
    }

    /// Attaches `[entry, return]` to one function.
    ///
    /// # Errors
    /// Fails with [`CaptureError::Refused`] and the kernel's error.
    pub fn function_probe(
        &mut self,
        [enter, leave]: [&'static str; 2],
        target: &Target<'_>,
        function: &api::Function,
    ) -> Result<(), CaptureError> {
        for program in [leave, enter] {
            let links = self.site(program, target, function.site.point.file_offset, function.cookie.0)?;
            self.push(links);
        }
        Ok(())
    }

    /// Attaches to a trace event; a raw program takes the event's arguments, without the record that the event makes of them.
    pub fn tracepoint(&mut self, program: &'static str, family: Family, group: &str, event: &str) -> Probe {
        let mut step = None;
        let object = self.ebpf();
        let loaded = object.map_or(Err(CaptureError::Missing(program)), |programs| programs.loaded(program));
        let link = loaded.and_then(|loaded| match loaded {
            Program::TracePoint(p) => kept(program, p.attach(group, event).and_then(|id| p.take_link(id))),
            Program::RawTracePoint(p) => {
                step = Some(RAW.to_owned());
                kept(program, p.attach(event).and_then(|id| p.take_link(id)))
            }
            _ => Err(CaptureError::Missing(program)),
        });
        let error = link
            .map(|link| self.push(Links::one(link)))
            .err()
            .map(|error| error.to_string());
        if error.is_none()
            && let Some(programs) = self.ebpf()
        {
            programs.attached.push(program);
        }
        Probe {
            family,
            target: format!("{group}:{event}"),
            role: program.to_owned(),
            step,
            error,
            ..Probe::default()
        }
    }

    /// Attaches `[entry, return]` to kernel functions, by one link each.
    ///
    /// # Errors
    /// Fails with the kernel's error; nothing is attached then.
    pub fn kernel_functions(&mut self, [enter, leave]: [&'static str; 2], addresses: &[u64]) -> io::Result<()> {
        let Some(Programs { multi, .. }) = self.ebpf() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // The return is attached first: an entry without its return would wait for one forever.
        let returns = multi.attach_to_kernel(leave, addresses)?;
        let entries = multi.attach_to_kernel(enter, addresses)?;
        self.push(Links::one(Box::new([entries, returns])));
        Ok(())
    }

    /// Attaches to the entry or the return of a kernel function, depending on the program.
    ///
    /// # Errors
    /// Fails with [`CaptureError::Refused`] if the kernel can't probe the function.
    pub fn kprobe(&mut self, program: &'static str, function: &str) -> Result<(), CaptureError> {
        let object = self.ebpf().ok_or(CaptureError::Missing(program))?;
        let Program::KProbe(p) = object.loaded(program)? else {
            return Err(CaptureError::Missing(program));
        };
        let link = kept(program, p.attach(function, 0).and_then(|id| p.take_link(id)))?;
        self.push(Links::one(link));
        Ok(())
    }

    fn push(&mut self, mut new: Links) {
        let links = match &self.library {
            Some(library) => self.of_libraries.entry(library.clone()).or_default(),
            None => &mut self.links,
        };
        links.0.append(&mut new.0);
    }
}

/// Returns the prober if the kernel accepted every program.
fn accepted((prober, programs): (Prober, Vec<LoadedProgram>)) -> Result<Prober, CaptureError> {
    let mut programs = programs.into_iter();
    programs.try_for_each(|program| program.refused.map_or(Ok(()), Err))?;
    Ok(prober)
}

/// Loads one program into the kernel, unless it is one of a kprobe: kernels without kprobes have none of the functions either, so
/// these programs are loaded when one is attached.
fn load(name: &str, program: &mut Program) -> LoadedProgram {
    let loaded = if matches!(program, Program::KProbe(_)) {
        Ok(())
    } else {
        into_kernel(program)
    };
    LoadedProgram {
        name: name.to_owned(),
        verified: program.info().ok().and_then(|info| info.verified_instruction_count()),
        refused: loaded.err().map(|error| refused(name, &error)),
    }
}

/// Loads a program of a kind that the object has.
fn into_kernel(program: &mut Program) -> Result<(), ProgramError> {
    match program {
        Program::UProbe(p) => p.load(),
        Program::TracePoint(p) => p.load(),
        Program::RawTracePoint(p) => p.load(),
        Program::KProbe(p) => p.load(),
        _ => Ok(()),
    }
}

impl Programs {
    /// Returns a program of the object, after loading it unless that is done.
    fn loaded(&mut self, program: &'static str) -> Result<&mut Program, CaptureError> {
        let found = self.ebpf.program_mut(program).ok_or(CaptureError::Missing(program))?;
        if found.fd().is_err() {
            into_kernel(found).map_err(|error| refused(program, &error))?;
        }
        Ok(found)
    }

    /// Attaches a program of a uprobe.
    fn site(
        &mut self,
        program: &'static str,
        path: &CStr,
        file_offset: u64,
        cookie: u64,
    ) -> Result<Attached, CaptureError> {
        if self.multi.has(program) {
            return match self.multi.attach(program, path, &[file_offset], &[cookie]) {
                Ok(link) => Ok(Box::new(link)),
                Err(error) => Err(CaptureError::Refused {
                    program: program.to_owned(),
                    reason: error.to_string(),
                }),
            };
        }
        let point = UProbeAttachPoint {
            location: UProbeAttachLocation::AbsoluteOffset(file_offset),
            cookie: Some(cookie),
        };
        let Program::UProbe(p) = self.loaded(program)? else {
            return Err(CaptureError::Missing(program));
        };
        let link = p.attach(point, &*path.to_string_lossy(), UProbeScope::AllProcesses);
        kept(program, link.and_then(|id| p.take_link(id)))
    }
}

/// Attaches a probe whose samples do the work of a program.
fn sampled_site(
    probes: &dyn Attach,
    program: &'static str,
    path: &CStr,
    file_offset: u64,
    cookie: u64,
) -> Result<Links, CaptureError> {
    let place = samples::Place {
        program: samples::Program::named(program).ok_or(CaptureError::Missing(program))?,
        displacement: (cookie >> 32) as i32,
    };
    let attached = probes.attach(place, path, file_offset);
    attached
        .map(Links)
        .map_err(|error| CaptureError::system("attaching a probe without eBPF", error))
}

/// Returns the attachment of a program, or the error with which the kernel refused it.
fn kept<L: Send + 'static>(program: &str, link: Result<L, ProgramError>) -> Result<Attached, CaptureError> {
    match link {
        Ok(link) => Ok(Box::new(link)),
        Err(error) => Err(refused(program, &error)),
    }
}

/// Returns the error with which the kernel refused a program.
fn refused(program: &str, error: &ProgramError) -> CaptureError {
    CaptureError::Refused {
        program: program.to_owned(),
        reason: with_causes(error),
    }
}
