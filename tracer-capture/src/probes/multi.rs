//! Uprobes by links (`uprobe_multi`, Linux 6.6) instead of perf events. The kernel removes a uprobe in a few milliseconds, then
//! waits until no processor can be inside, some 60 ms. It removes perf events one after the other, under a lock. Links that several
//! threads close share one wait: 40 probes take 0.08 s instead of 3.3 s; if one thread closes them, 2.3 s instead of 6.6 s (Linux
//! 6.18, two cores). One link may also have many places.
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
const BPF_TRACE_UPROBE_MULTI: u32 = 48;
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
    /// Whether the program runs when functions return.
    returns: bool,
}

impl Multi {
    /// Loads programs of the object whose maps are those of `ebpf`, which must still have all of them.
    ///
    /// The first of the programs, which should be small, shows whether the kernel has such links.
    ///
    /// # Errors
    /// Fails with the kernel's error, or if a part of the object is not understood.
    pub fn load(object: &[u8], ebpf: &Ebpf, programs: &[&'static str]) -> io::Result<Self> {
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
        let prepared = programs.iter().map(|&name| {
            let program = object.programs.get(name);
            let code = program.and_then(|program| object.functions.get(&program.function_key()));
            let (program, code) = program
                .zip(code)
                .ok_or_else(|| io::Error::other(format!("the object has no program {name}")))?;
            let returns = matches!(program.section, aya_obj::ProgramSection::URetProbe { .. });
            Ok((name, code, returns))
        });
        let prepared: Vec<_> = prepared.collect::<io::Result<_>>()?;
        let load = |&(name, code, returns): &(&'static str, &aya_obj::Function, bool)| {
            let program = load(name, &object.license, code, btf.as_ref())?;
            io::Result::Ok((name, Loaded { program, returns }))
        };
        let mut loaded = Self::default();
        // Without links, no other program is loaded in vain.
        if let Some(first) = prepared.first() {
            loaded.programs.extend([load(first)?]);
            loaded.has_links(first.0)?;
        }
        let others = parallel::on_processors(prepared.iter().skip(1), load);
        let others = others.into_iter().collect::<io::Result<Vec<_>>>();
        loaded.programs.extend(others?);
        Ok(loaded)
    }

    /// Checks that the kernel has such links. Kernels before Linux 6.6 load the programs, too, because they do not check what such
    /// a program is to be attached to. Kernels with such links report that a folder is not a file.
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
        let Some(Loaded { program, returns }) = self.programs.get(program) else {
            return Err(io::Error::other("not loaded"));
        };
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

fn load(name: &str, license: &CStr, code: &aya_obj::Function, btf: Option<&OwnedFd>) -> io::Result<OwnedFd> {
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
        expected_attach_type: BPF_TRACE_UPROBE_MULTI,
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
