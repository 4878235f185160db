//! Executable mappings of traced processes. Each is a library that may need probes, so the process is paused until user space has
//! examined it. The first dispatch cannot come before its probe.
//!
//! Two rules keep pauses rare. A file that was examined in this recording is known, and pauses no process. A process that has not
//! used the KFD yet has no queue: it is paused at its first KFD ioctl (`first_use.rs`), and not for its mappings before that,
//! unless its API calls are traced too.

use core::mem::offset_of;

use aya_ebpf::{
    EbpfContext, Global,
    bindings::pt_regs,
    helpers::{
        bpf_get_current_task, bpf_get_current_task_btf,
        generated::{bpf_get_attach_cookie, bpf_task_pt_regs},
    },
    macros::{map, tracepoint, uprobe},
    maps::{Array, LruHashMap},
    programs::{ProbeContext, TracePointContext},
};
use tracer_common::{
    pause::{FileKey, KNOWN_SLOTS, KNOWN_TRIES, KNOWN_WORDS},
    record::{LossSource, hold_reason},
};

use crate::{
    first_use,
    kernel::SYSCALL_ARGS,
    kernel::at,
    maps::{Current, MMAPABLE, lose},
    pause::{self, Pause},
};

/// Whether processes are paused for mappings that they make before they use the KFD.
#[unsafe(no_mangle)]
static EAGER: Global<u8> = Global::new(0);

/// PROT_EXEC of include/uapi/asm-generic/mman-common.h.
const PROT_EXEC: u64 = 4;
/// mmap on x86-64, and where the kernel keeps its third and fifth argument.
const NR_MMAP: u32 = 9;
const RDX: u32 = offset_of!(pt_regs, rdx) as u32;
const R8: u32 = offset_of!(pt_regs, r8) as u32;

/// Files that user space has examined: a hash table that user space writes and the programs read.
#[map]
static KNOWN: Array<[u64; KNOWN_WORDS]> = Array::with_max_entries(KNOWN_SLOTS, MMAPABLE);

/// Returns the file behind a descriptor of the current process.
#[inline(always)]
fn file(fd: u32) -> Option<FileKey> {
    let layout = pause::layout();
    // SAFETY: a helper without preconditions; any bytes are valid words.
    unsafe {
        let files: u64 = at(bpf_get_current_task(), layout.files)?;
        let table: u64 = at(files, layout.fdt)?;
        let most: u32 = at(table, layout.max_fds)?;
        if fd >= most {
            return None;
        }
        let descriptors: u64 = at(table, layout.fd)?;
        let file: u64 = at(descriptors.wrapping_add(u64::from(fd) * 8), 0)?;
        let inode: u64 = at(file, layout.f_inode)?;
        let superblock: u64 = at(inode, layout.i_sb)?;
        Some(FileKey::new(
            at(superblock, layout.s_dev)?,
            at(inode, layout.i_ino)?,
            at(inode, layout.i_ctime_sec)?,
            at(inode, layout.i_ctime_nsec)?,
        ))
    }
}

/// Returns whether user space has examined the file.
#[inline(always)]
fn is_known(file: FileKey) -> bool {
    if file.inode == 0 {
        return false;
    }
    for attempt in 0..KNOWN_TRIES {
        let Some(known) = KNOWN.get(file.slot(attempt)) else {
            return false;
        };
        let [inode, device_nsec, seconds, is_written] = *known;
        if is_written == 0 {
            return false;
        }
        if inode == file.inode && device_nsec == file.device_nsec && seconds == file.seconds {
            return true;
        }
    }
    false
}

/// A mapping for which a process is paused.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mapping {
    address: u64,
    file: FileKey,
}

/// The last mapping for which the first program paused a thread, until its twin has seen that.
#[map]
static PAUSED: LruHashMap<u64, Mapping> = LruHashMap::with_max_entries(4096, 0);

#[tracepoint]
pub fn mmap_exit(ctx: TracePointContext) -> u32 {
    if let Some((current, mapping)) = unknown(&ctx) {
        let _ = PAUSED.insert(current.key(), mapping, 0);
        pause_for(current, mapping);
    }
    0
}

/// A twin, as for ioctls. It pauses the process if the kernel skipped the first program, which otherwise runs before it.
#[tracepoint]
pub fn mmap_exit_twin(ctx: TracePointContext) -> u32 {
    if let Some((current, mapping)) = unknown(&ctx) {
        // SAFETY: an entry is plain words, which only this thread changes.
        let is_paused = unsafe { PAUSED.get(current.key()) } == Some(&mapping);
        let _ = PAUSED.remove(current.key());
        if !is_paused {
            pause_for(current, mapping);
        }
    }
    0
}

#[inline(always)]
fn pause_for(current: Current, mapping: Mapping) {
    let wanted = Pause {
        address: mapping.address,
        file: mapping.file,
        ..Pause::at_syscall(hold_reason::MAPPED, NR_MMAP)
    };
    pause::pause(current, wanted);
}

/// Returns the executable mapping that the thread has just made, if its process must be paused for it: that of a file that user space
/// has not examined.
///
/// The arguments are those in the thread's registers, which the kernel keeps for the return to the program. So the entry needs no
/// program, whose removal would lengthen the end of a recording. If another thread meanwhile closed the descriptor, the file is
/// unknown; a program at the entry could not be sure of the file either.
#[inline(always)]
fn unknown(ctx: &TracePointContext) -> Option<(Current, Mapping)> {
    let current = Current::traced()?;
    // SAFETY: helpers without preconditions. Any bytes are valid words.
    let arguments = unsafe {
        let registers = bpf_task_pt_regs(bpf_get_current_task_btf()) as u64;
        (at::<u64>(registers, RDX), at::<u64>(registers, R8))
    };
    let (Some(prot), Some(fd)) = arguments else {
        lose(LossSource::HoldRing, 1);
        return None;
    };
    if prot & PROT_EXEC == 0 || (fd as i32) < 0 || (EAGER.load() == 0 && !first_use::is_user(current)) {
        return None;
    }
    // SAFETY: syscalls:sys_exit_mmap has the result at this offset.
    let address = unsafe { ctx.read_at::<i64>(SYSCALL_ARGS) }.unwrap_or(-1);
    // Errors are -4095..=-1.
    if (-4095..0).contains(&address) {
        return None;
    }
    let file = file(fd as u32).unwrap_or_default();
    let mapping = Mapping {
        address: address as u64,
        file,
    };
    (!is_known(file)).then_some((current, mapping))
}

/// Entry of `hsa_init`, when the library is relocated and its API table filled. Attach cookie: the site's number.
#[uprobe]
pub fn runtime_init(ctx: ProbeContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: the helper's only precondition is a valid context, and this is one; its registers are readable.
        let (cookie, stack) = unsafe { (bpf_get_attach_cookie(ctx.as_ptr()), (*ctx.regs).rsp) };
        pause::pause(
            current,
            Pause::at_probe(hold_reason::RUNTIME_INIT, cookie as u32, stack),
        );
    }
    0
}
