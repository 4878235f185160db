//! Perf events: their attributes, and how they are opened.

use std::{
    ffi::CStr,
    fs, io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
};

use perf_event_open_sys::{
    bindings::{
        PERF_COUNT_SW_DUMMY, PERF_FLAG_FD_CLOEXEC, PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_RAW, PERF_SAMPLE_REGS_USER,
        PERF_SAMPLE_STACK_USER, PERF_SAMPLE_TID, PERF_SAMPLE_TIME, PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT,
        perf_event_attr,
    },
    ioctls, perf_event_open,
};

/// Attributes of an event.
pub type Attributes = perf_event_attr;

/// Fields of every sample, before those of its kind.
const COMMON: u64 = (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME) as u64;

/// Registers in a sample: numbers of `enum perf_event_x86_regs` (arch/x86/include/uapi/asm/perf_regs.h).
mod register {
    pub const SI: u64 = 4;
    pub const DI: u64 = 5;
    pub const SP: u64 = 7;
    pub const IP: u64 = 8;
}

/// The registers in a sample of a uprobe.
const AT_UPROBE: u64 = 1 << register::SI | 1 << register::DI | 1 << register::SP | 1 << register::IP;

/// Bytes of the stack that a sample of a system call has. The argument of an ioctl is a variable of its caller, usually a function of
/// the driver's library, a few frames above the stack pointer.
pub const STACK_BYTES: u32 = 2048;

/// Where the kernel describes the PMU of uprobes.
const UPROBE_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// Returns the attributes that all events share.
fn base() -> perf_event_attr {
    let mut attributes = perf_event_attr {
        size: size_of::<perf_event_attr>() as u32,
        sample_type: COMMON,
        clockid: libc::CLOCK_MONOTONIC,
        ..Default::default()
    };
    attributes.__bindgen_anon_1.sample_period = 1;
    attributes.set_use_clockid(1);
    // Enabled once its number is known and its buffer is shared: see `enable`.
    attributes.set_disabled(1);
    attributes.set_sample_id_all(1);
    // The reader polls: a wake-up would cost the traced thread more than the sample.
    attributes.set_watermark(1);
    attributes.__bindgen_anon_2.wakeup_watermark = u32::MAX;
    attributes
}

/// Returns the event that samples nothing, and reports forks, names, exits and mappings.
pub fn side_band() -> perf_event_attr {
    let mut attributes = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        config: u64::from(PERF_COUNT_SW_DUMMY),
        ..base()
    };
    attributes.set_task(1);
    attributes.set_comm(1);
    attributes.set_comm_exec(1);
    attributes.set_mmap(1);
    attributes.set_mmap2(1);
    attributes
}

/// Returns a trace event of this number, with its record, and the top of the thread's stack.
pub fn trace_event(number: u64) -> perf_event_attr {
    perf_event_attr {
        type_: PERF_TYPE_TRACEPOINT,
        config: number,
        sample_type: COMMON | u64::from(PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER),
        sample_regs_user: 1 << register::SP,
        sample_stack_user: STACK_BYTES,
        ..base()
    }
}

/// Returns a trace event of this number, with its record only.
pub fn plain_trace_event(number: u64) -> perf_event_attr {
    perf_event_attr {
        type_: PERF_TYPE_TRACEPOINT,
        config: number,
        sample_type: COMMON | u64::from(PERF_SAMPLE_RAW),
        ..base()
    }
}

/// Returns a uprobe at an offset of a file, with the registers si, di, sp and ip.
///
/// # Errors
/// Fails if the kernel has no PMU of uprobes (before Linux 4.17).
pub fn uprobe(file: &CStr, offset: u64) -> io::Result<perf_event_attr> {
    let kind = fs::read_to_string(UPROBE_TYPE)?;
    let kind = kind.trim().parse().map_err(io::Error::other)?;
    let mut attributes = perf_event_attr {
        type_: kind,
        sample_type: COMMON | u64::from(PERF_SAMPLE_REGS_USER),
        sample_regs_user: AT_UPROBE,
        ..base()
    };
    attributes.__bindgen_anon_3.uprobe_path = file.as_ptr().expose_provenance() as u64;
    attributes.__bindgen_anon_4.probe_offset = offset;
    Ok(attributes)
}

/// Returns a uprobe that is defined in tracefs, with the same registers.
pub fn named_uprobe(number: u64) -> perf_event_attr {
    perf_event_attr {
        type_: PERF_TYPE_TRACEPOINT,
        config: number,
        sample_type: COMMON | u64::from(PERF_SAMPLE_REGS_USER),
        sample_regs_user: AT_UPROBE,
        ..base()
    }
}

/// Opens an event for every process on one processor.
///
/// # Errors
/// Fails with the kernel's error: EACCES or EPERM without CAP_PERFMON.
pub fn open(attributes: &perf_event_attr, processor: u32) -> io::Result<OwnedFd> {
    let mut attributes = *attributes;
    // SAFETY: the attributes live through the call. A path in them belongs to the caller of `uprobe`, who holds it.
    let fd = unsafe {
        perf_event_open(
            &raw mut attributes,
            -1,
            processor as libc::c_int,
            -1,
            PERF_FLAG_FD_CLOEXEC.into(),
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel created the descriptor for this call.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the number by which samples name their event.
///
/// # Errors
/// Fails with the kernel's error.
pub fn id(event: &OwnedFd) -> io::Result<u64> {
    let mut id = 0;
    // SAFETY: the request writes one word.
    nix::errno::Errno::result(unsafe { ioctls::ID(event.as_raw_fd(), &raw mut id) })?;
    Ok(id)
}

/// Makes an event write into the buffer of another one, of the same processor.
///
/// # Errors
/// Fails with the kernel's error.
pub fn share_buffer(event: &OwnedFd, of: &OwnedFd) -> io::Result<()> {
    // SAFETY: the request takes a descriptor.
    nix::errno::Errno::result(unsafe { ioctls::SET_OUTPUT(event.as_raw_fd(), of.as_raw_fd()) })?;
    Ok(())
}

/// Makes an event that was opened write samples. Before this call it writes none.
///
/// # Errors
/// Fails with the kernel's error.
pub fn enable(event: &OwnedFd) -> io::Result<()> {
    // SAFETY: the request takes a plain number.
    nix::errno::Errno::result(unsafe { ioctls::ENABLE(event.as_raw_fd(), 0) })?;
    Ok(())
}

/// Makes a trace event drop the records that do not match a filter of ftrace's syntax.
///
/// # Errors
/// Fails with the kernel's error.
pub fn filter(event: &OwnedFd, filter: &CStr) -> io::Result<()> {
    // SAFETY: the kernel reads the string, which lives through the call.
    nix::errno::Errno::result(unsafe { ioctls::SET_FILTER(event.as_raw_fd(), filter.as_ptr().cast_mut()) })?;
    Ok(())
}

/// Returns whether the uprobe PMU can be used here.
#[must_use]
pub fn has_uprobe_pmu() -> bool {
    let event = uprobe(c"/proc/self/exe", 0).and_then(|attributes| open(&attributes, 0));
    // An offset that is not an instruction shows only when the event is enabled.
    event.is_ok()
}

/// Returns why perf events cannot be used here, whatever uprobes can; `None` if they can.
#[must_use]
pub fn refused() -> Option<io::Error> {
    open(&side_band(), 0).err()
}
