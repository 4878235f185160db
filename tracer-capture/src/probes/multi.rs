//! Uprobes and probes of kernel functions by links instead of perf events (`uprobe_multi`, Linux 6.6; `kprobe_multi`, Linux 5.18).
//! The kernel removes a uprobe in a few milliseconds, then waits until no processor can be inside, some 60 ms. It removes perf events
//! one after the other, under a lock. Links that several threads close share one wait: 40 probes take 0.08 s instead of 3.3 s; if
//! one thread closes them, 2.3 s instead of 6.6 s (Linux 6.18, two cores). One link may also have many places.
//!
//! aya 0.14 has no such links. A program must be loaded for them, so it is loaded here, from the same object and with the same
//! maps.

use std::{
    collections::HashMap,
    ffi::CStr,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use aya::{Ebpf, maps::Map};

use super::parallel;

/// Constants of include/uapi/linux/bpf.h.
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_BTF_LOAD: libc::c_int = 18;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_KPROBE: u32 = 2;
const BPF_TRACE_KPROBE_MULTI: u32 = 42;
const BPF_TRACE_UPROBE_MULTI: u32 = 48;
const BPF_F_KPROBE_MULTI_RETURN: u32 = 1;
const BPF_F_UPROBE_MULTI_RETURN: u32 = 1;

/// `bpf_attr` of `BPF_PROG_LOAD`, up to the last field that is used.
#[repr(C)]
#[derive(Default)]
struct ProgramAttributes {
    kind: u32,
    instruction_count: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    expected_attach_type: u32,
    btf: u32,
    function_info_len: u32,
    function_info: u64,
    function_info_count: u32,
    line_info_len: u32,
    line_info: u64,
    line_info_count: u32,
    pad: u32,
}

/// `bpf_attr` of `BPF_BTF_LOAD`.
#[repr(C)]
#[derive(Default)]
struct BtfAttributes {
    btf: u64,
    log: u64,
    size: u32,
    log_size: u32,
    log_level: u32,
    pad: u32,
}

/// `bpf_attr` of `BPF_LINK_CREATE` for a `kprobe_multi` link.
#[repr(C)]
#[derive(Default)]
struct KernelLinkAttributes {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    multi_flags: u32,
    count: u32,
    names: u64,
    addresses: u64,
    cookies: u64,
}

/// `bpf_attr` of `BPF_LINK_CREATE` for a `uprobe_multi` link.
#[repr(C)]
#[derive(Default)]
struct LinkAttributes {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    reference_counters: u64,
    cookies: u64,
    count: u32,
    multi_flags: u32,
    pid: u32,
    pad: u32,
}

/// Programs that can be attached by such links.
#[derive(Default)]
pub struct Multi {
    programs: HashMap<&'static str, Loaded>,
}

/// A program in the kernel.
struct Loaded {
    program: OwnedFd,
    /// What it can be attached to: `BPF_TRACE_UPROBE_MULTI` or `BPF_TRACE_KPROBE_MULTI`.
    kind: u32,
    /// Whether the program runs when functions return.
    returns: bool,
}

impl Multi {
    /// Loads the object's programs of uprobes and of kernel functions. The programs use the maps of `ebpf`, which must still have all
    /// of its maps. If the kernel refuses a program, no other program of its kind is loaded.
    ///
    /// The first program of uprobes, which should be small, shows whether the kernel has such links.
    ///
    /// # Errors
    /// Fails if a part of the object is not understood, or with the kernel's error about the object's types.
    pub fn load(object: &[u8], ebpf: &Ebpf, uprobes: &[&'static str], functions: &[&'static str]) -> io::Result<Self> {
        let mut object = aya_obj::Object::parse(object).map_err(io::Error::other)?;
        let btf = object
            .fixup_and_sanitize_btf(&FEATURES)
            .map_err(io::Error::other)?
            .map(aya_obj::btf::Btf::to_bytes);
        // Callbacks of `bpf_loop` need BTF.
        let btf = btf.as_deref().map(load_btf).transpose()?;
        let described = object.maps.clone();
        let maps: Vec<(&str, RawFd, &aya_obj::Map)> = ebpf
            .maps()
            .filter_map(|(name, map)| Some((name, descriptor(map)?, described.get(name)?)))
            .collect();
        let sections = object.functions.keys().map(|(section, _)| *section).collect();
        object
            .relocate_maps(maps.into_iter(), &sections)
            .map_err(io::Error::other)?;
        object.relocate_calls(&sections).map_err(io::Error::other)?;
        let object = Prepared { object, btf };
        let mut all = Self::default();
        for (programs, instead) in [(uprobes, "uprobes"), (functions, "functions of the kernel driver")] {
            match object.load(programs) {
                Ok(loaded) => all.programs.extend(loaded.programs),
                Err(error) => log::info!("{instead} use perf events, because the kernel refuses links: {error}"),
            }
        }
        Ok(all)
    }

    /// Checks that the kernel has links for uprobes. Kernels before Linux 6.6 load the programs, too, because they do not check what
    /// such a program is to be attached to. Kernels with such links report that a folder is not a file.
    fn has_links(&self, program: &str) -> io::Result<()> {
        match self.attach(program, c"/", &[0], &[0]) {
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(io::Error::other("the kernel attached a probe to a folder")),
        }
    }

    /// Returns descriptors of the programs, with their names.
    pub fn programs(&self) -> impl Iterator<Item = (&'static str, BorrowedFd<'_>)> {
        self.programs
            .iter()
            .map(|(name, loaded)| (*name, loaded.program.as_fd()))
    }

    /// Returns whether this program is loaded.
    pub fn has(&self, program: &str) -> bool {
        self.programs.contains_key(program)
    }

    /// Attaches a program at each of the offsets in the file, with the cookie of each; a program for returns is attached to the
    /// returns of the functions there. Dropping the descriptor detaches.
    ///
    /// # Errors
    /// Fails with the kernel's error; nothing is attached then.
    pub fn attach(&self, program: &str, file: &CStr, offsets: &[u64], cookies: &[u64]) -> io::Result<OwnedFd> {
        let Loaded { program, returns, .. } = self.loaded(program)?;
        debug_assert_eq!(offsets.len(), cookies.len());
        let attributes = LinkAttributes {
            program: program.as_raw_fd() as u32,
            attach_type: BPF_TRACE_UPROBE_MULTI,
            path: file.as_ptr().expose_provenance() as u64,
            offsets: offsets.as_ptr().expose_provenance() as u64,
            cookies: cookies.as_ptr().expose_provenance() as u64,
            count: offsets.len().min(cookies.len()) as u32,
            multi_flags: if *returns { BPF_F_UPROBE_MULTI_RETURN } else { 0 },
            ..Default::default()
        };
        // SAFETY: the path ends with 0, and there are `count` offsets and cookies; all of them live through the call.
        unsafe { bpf(BPF_LINK_CREATE, &attributes) }
    }

    /// Attaches a program to the kernel functions at these addresses; a program for returns is attached to their returns. Dropping
    /// the descriptor detaches.
    ///
    /// # Errors
    /// Fails with the kernel's error; nothing is attached then. One function that cannot be probed is enough.
    pub fn attach_to_kernel(&self, program: &str, addresses: &[u64]) -> io::Result<OwnedFd> {
        let Loaded { program, returns, .. } = self.loaded(program)?;
        let attributes = KernelLinkAttributes {
            program: program.as_raw_fd() as u32,
            attach_type: BPF_TRACE_KPROBE_MULTI,
            multi_flags: if *returns { BPF_F_KPROBE_MULTI_RETURN } else { 0 },
            count: addresses.len() as u32,
            addresses: addresses.as_ptr().expose_provenance() as u64,
            ..Default::default()
        };
        // SAFETY: there are `count` addresses, which live through the call.
        unsafe { bpf(BPF_LINK_CREATE, &attributes) }
    }

    fn loaded(&self, program: &str) -> io::Result<&Loaded> {
        self.programs.get(program).ok_or_else(|| io::Error::other("not loaded"))
    }
}

/// An object whose programs refer to the maps in the kernel.
struct Prepared {
    object: aya_obj::Object,
    btf: Option<OwnedFd>,
}

impl Prepared {
    /// Loads programs of one kind.
    fn load(&self, programs: &[&'static str]) -> io::Result<Multi> {
        let load = |&name: &&'static str| self.load_one(name).map(|loaded| (name, loaded));
        let mut loaded = Multi::default();
        // Without links, no other program is loaded in vain.
        let Some((first, others)) = programs.split_first() else {
            return Ok(loaded);
        };
        loaded.programs.extend([load(first)?]);
        // That of kernel functions shows when they are attached.
        if loaded
            .programs
            .values()
            .any(|first| first.kind == BPF_TRACE_UPROBE_MULTI)
        {
            loaded.has_links(first)?;
        }
        let others = parallel::on_processors(others.iter(), load);
        let others = others.into_iter().collect::<io::Result<Vec<_>>>();
        loaded.programs.extend(others?);
        Ok(loaded)
    }

    fn load_one(&self, name: &str) -> io::Result<Loaded> {
        use aya_obj::ProgramSection::{KProbe, KRetProbe, URetProbe};
        let program = self.object.programs.get(name);
        let code = program.and_then(|program| self.object.functions.get(&program.function_key()));
        let (program, code) = program
            .zip(code)
            .ok_or_else(|| io::Error::other(format!("the object has no program {name}")))?;
        let kind = match program.section {
            KProbe | KRetProbe => BPF_TRACE_KPROBE_MULTI,
            _ => BPF_TRACE_UPROBE_MULTI,
        };
        Ok(Loaded {
            program: load(name, kind, &self.object.license, code, self.btf.as_ref())?,
            kind,
            returns: matches!(program.section, KRetProbe | URetProbe { .. }),
        })
    }
}

/// Returns the descriptor of a map of one of the kinds that the programs have.
fn descriptor(map: &Map) -> Option<RawFd> {
    let (Map::Array(data)
    | Map::HashMap(data)
    | Map::LruHashMap(data)
    | Map::PerCpuArray(data)
    | Map::PerfEventArray(data)
    | Map::RingBuf(data)) = map
    else {
        return None;
    };
    Some(data.fd().as_fd().as_raw_fd())
}

/// The BTF features. Kernels that have such links know all of them.
const FEATURES: aya_obj::btf::BtfFeatures =
    aya_obj::btf::BtfFeatures::new(true, true, true, true, true, true, true, true);

fn load_btf(btf: &[u8]) -> io::Result<OwnedFd> {
    let attributes = BtfAttributes {
        btf: btf.as_ptr().expose_provenance() as u64,
        size: btf.len() as u32,
        ..Default::default()
    };
    // SAFETY: there are `size` bytes, which live through the call.
    unsafe { bpf(BPF_BTF_LOAD, &attributes) }
}

fn load(name: &str, kind: u32, license: &CStr, code: &aya_obj::Function, btf: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    let function_info = code.func_info.func_info_bytes();
    let line_info = code.line_info.line_info_bytes();
    let with_btf = |size: usize| if btf.is_some() { size as u32 } else { 0 };
    let attributes = ProgramAttributes {
        kind: BPF_PROG_TYPE_KPROBE,
        instruction_count: code.instructions.len() as u32,
        instructions: code.instructions.as_ptr().expose_provenance() as u64,
        license: license.as_ptr().expose_provenance() as u64,
        name: short,
        expected_attach_type: kind,
        btf: btf.map_or(0, |btf| btf.as_raw_fd() as u32),
        function_info_len: with_btf(code.func_info_rec_size),
        function_info: function_info.as_ptr().expose_provenance() as u64,
        function_info_count: with_btf(code.func_info.len()),
        line_info_len: with_btf(code.line_info_rec_size),
        line_info: line_info.as_ptr().expose_provenance() as u64,
        line_info_count: with_btf(code.line_info.len()),
        ..Default::default()
    };
    // SAFETY: the license ends with 0, and there are as many instructions and records as the counts say; all of them live through
    // the call.
    unsafe { bpf(BPF_PROG_LOAD, &attributes) }
}

/// Makes a call of bpf() whose command creates a descriptor.
///
/// # Safety
/// `attributes` must be those of the command, and the data that they point to must be what the command expects.
unsafe fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: by the caller's promise; the kernel only reads `attributes`.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<A>()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel created the descriptor for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
