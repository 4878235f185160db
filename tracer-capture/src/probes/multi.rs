//! Uprobes in many places by one link (`uprobe_multi`, Linux 6.6): they go out together, by one wait until no processor
//! can be inside any more, where each link of its own waits by itself.
//!
//! aya 0.14 knows no such links. A program must be loaded for them, so that it is loaded here a second time, from the same
//! object and with the same maps.

use std::{
    collections::HashMap,
    ffi::CStr,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

use aya::{Ebpf, maps::Map};

/// Of include/uapi/linux/bpf.h.
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_LINK_CREATE: libc::c_int = 28;
const BPF_PROG_TYPE_KPROBE: u32 = 2;
const BPF_TRACE_UPROBE_MULTI: u32 = 48;
const BPF_F_UPROBE_MULTI_RETURN: u32 = 1;

/// bpf_attr of BPF_PROG_LOAD, up to the last field that is used.
#[repr(C)]
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
}

/// bpf_attr of BPF_LINK_CREATE for such a link.
#[repr(C)]
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

/// Programs that can be attached so.
#[derive(Default)]
pub struct Multi {
    programs: HashMap<&'static str, OwnedFd>,
}

impl Multi {
    /// Loads programs of the object whose maps are those of `ebpf`, all of which it must still have.
    ///
    /// # Errors
    /// What the kernel says, or what of the object is not understood.
    pub fn load(object: &[u8], ebpf: &Ebpf, programs: &[&'static str]) -> io::Result<Self> {
        let mut object = aya_obj::Object::parse(object).map_err(io::Error::other)?;
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
        let mut loaded = Self::default();
        for &name in programs {
            let code = object
                .programs
                .get(name)
                .and_then(|program| object.functions.get(&program.function_key()));
            let code = code.ok_or_else(|| io::Error::other(format!("the object has no program {name}")))?;
            let program = load(name, &object.license, &code.instructions)?;
            loaded.programs.insert(name, program);
        }
        Ok(loaded)
    }

    /// Descriptors of the programs, with their names.
    pub fn programs(&self) -> impl Iterator<Item = (&'static str, BorrowedFd<'_>)> {
        self.programs.iter().map(|(name, program)| (*name, program.as_fd()))
    }

    /// Attaches a program at each of the offsets in the file, with its cookie; `returns`: where the functions there return.
    /// The end of what is returned detaches.
    ///
    /// # Errors
    /// What the kernel says: nothing is attached then.
    pub fn attach(
        &self,
        program: &str,
        file: &CStr,
        offsets: &[u64],
        cookies: &[u64],
        returns: bool,
    ) -> io::Result<OwnedFd> {
        let Some(program) = self.programs.get(program) else {
            return Err(io::Error::other("not loaded"));
        };
        debug_assert_eq!(offsets.len(), cookies.len());
        let attributes = LinkAttributes {
            program: program.as_raw_fd() as u32,
            target: 0,
            attach_type: BPF_TRACE_UPROBE_MULTI,
            flags: 0,
            path: file.as_ptr().expose_provenance() as u64,
            offsets: offsets.as_ptr().expose_provenance() as u64,
            reference_counters: 0,
            cookies: cookies.as_ptr().expose_provenance() as u64,
            count: offsets.len().min(cookies.len()) as u32,
            multi_flags: if returns { BPF_F_UPROBE_MULTI_RETURN } else { 0 },
            pid: 0,
            pad: 0,
        };
        // SAFETY: the path ends with 0, and there are `count` offsets and cookies; all of them live through the call.
        unsafe { bpf(BPF_LINK_CREATE, &attributes) }
    }
}

/// Of the kinds of maps that the programs have.
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

fn load(name: &str, license: &CStr, code: &[aya_obj::generated::bpf_insn]) -> io::Result<OwnedFd> {
    let mut short = [0; 16];
    for (to, from) in short.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    let attributes = ProgramAttributes {
        kind: BPF_PROG_TYPE_KPROBE,
        instruction_count: code.len() as u32,
        instructions: code.as_ptr().expose_provenance() as u64,
        license: license.as_ptr().expose_provenance() as u64,
        log_level: 0,
        log_size: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: short,
        interface: 0,
        expected_attach_type: BPF_TRACE_UPROBE_MULTI,
    };
    // SAFETY: the license ends with 0, and there are `instruction_count` instructions; both live through the call.
    unsafe { bpf(BPF_PROG_LOAD, &attributes) }
}

/// A command of bpf() that makes a descriptor.
///
/// # Safety
/// `attributes` must be those of the command, and what they point to be as it expects.
unsafe fn bpf<A>(command: libc::c_int, attributes: &A) -> io::Result<OwnedFd> {
    // SAFETY: the caller's promise; the kernel reads `attributes` only.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<A>()) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel made it for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}
