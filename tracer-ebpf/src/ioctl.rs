//! KFD and DRM ioctls: the syscall tracepoints, entry and exit joined into one record.

use aya_ebpf::{
    helpers::bpf_ktime_get_ns,
    macros::{map, tracepoint},
    maps::HashMap,
    programs::TracePointContext,
};
use core::ptr::addr_of_mut;
use tracer_common::{
    kfd::{self, QueueType, create_queue, ioc_dir, ioc_nr, ioc_size, ioc_type},
    open::OpenIoctl as Entered,
    queue,
    record::{IOCTL_ARG_LEN, Ioctl, LossSource, ioctl_flags as flag, kind},
};

use crate::{
    doorbell, first_use,
    kernel::SYSCALL_ARGS,
    maps::{Current, EVENTS, NO_WAKEUP, begin_epoch, lose},
    progress, sdma, user,
};

/// Ioctls in progress, one per thread.
#[map]
static ENTERED: HashMap<u64, Entered> = HashMap::with_max_entries(16 << 10, 0);

#[tracepoint]
pub fn ioctl_enter(ctx: TracePointContext) -> u32 {
    begin(&ctx)
}

/// A twin: if the kernel skips one of the two programs, the other one does the same work. Doing it twice changes nothing.
#[tracepoint]
pub fn ioctl_enter_twin(ctx: TracePointContext) -> u32 {
    begin(&ctx)
}

#[inline(always)]
fn begin(ctx: &TracePointContext) -> u32 {
    if let Some(current) = first_use::current(ctx).and_then(Current::if_counted)
        && keep(ctx, &current)
        && let Some(entered) = ENTERED.get_ptr(current.key())
        // SAFETY: only this thread changes the map's value, and it is running here.
        && let Some(queue_id) = destroys(unsafe { &*entered })
    {
        progress::destroy(current, queue_id);
    }
    0
}

/// Keeps the entry of an ioctl that counts. Returns whether the ioctl counts.
///
/// A function of its own: the stack below it would have no room for a sample of a queue.
#[inline(never)]
fn keep(ctx: &TracePointContext, current: &Current) -> bool {
    enter(ctx, *current).is_ok()
}

#[inline(always)]
fn enter(ctx: &TracePointContext, current: Current) -> Result<(), i32> {
    // SAFETY: the tracepoint's record has the three arguments at these offsets, 8 bytes each. libc may sign-extend the command to
    // 64 bits: its low 32 bits are the command.
    let (fd, cmd, arg) = unsafe {
        (
            ctx.read_at::<u64>(SYSCALL_ARGS)? as i32,
            ctx.read_at::<u64>(SYSCALL_ARGS + 8)? as u32,
            ctx.read_at::<u64>(SYSCALL_ARGS + 16)?,
        )
    };
    // Console ioctls also have the KFD's type, but no direction.
    let ours = (ioc_type(cmd) == kfd::IOC_TYPE_KFD && ioc_dir(cmd) != 0) || ioc_type(cmd) == kfd::IOC_TYPE_DRM;
    if !ours {
        return Err(0);
    }
    // A new queue may be at the address of a former one, and the program at the exit may be missed.
    if ioc_type(cmd) == kfd::IOC_TYPE_KFD && ioc_nr(cmd) == kfd::NR_CREATE_QUEUE {
        begin_epoch();
    }
    let size = ioc_size(cmd);
    let mut entered = Entered {
        // SAFETY: a helper without preconditions.
        time_ns: unsafe { bpf_ktime_get_ns() },
        arg,
        cmd,
        fd,
        len: if size > IOCTL_ARG_LEN {
            IOCTL_ARG_LEN as u32
        } else {
            size as u32
        },
        flags: if size > IOCTL_ARG_LEN {
            u32::from(flag::SHORTENED)
        } else {
            0
        },
        arg_in: [0; IOCTL_ARG_LEN],
    };
    // SAFETY: `len` is at most the array's length.
    if entered.len > 0 && !unsafe { user::copy(entered.arg_in.as_mut_ptr(), bounded(entered.len), arg) } {
        entered.flags |= u32::from(flag::IN_UNREADABLE);
    }
    if let Err(error) = ENTERED.insert(current.key(), entered, 0) {
        lose(LossSource::IoctlMap, 1);
        return Err(error);
    }
    Ok(())
}

#[tracepoint]
pub fn ioctl_exit(ctx: TracePointContext) -> u32 {
    exit(&ctx)
}

/// A twin, as at the entry. The first one that runs takes the entry from the map.
#[tracepoint]
pub fn ioctl_exit_twin(ctx: TracePointContext) -> u32 {
    exit(&ctx)
}

#[inline(always)]
fn exit(ctx: &TracePointContext) -> u32 {
    if let Some(current) = Current::traced() {
        // SAFETY: the tracepoint's record has the result at this offset.
        if let Ok(ret) = unsafe { ctx.read_at::<i64>(SYSCALL_ARGS) } {
            leave(current, Some(ret));
        }
        first_use::ended(current);
    }
    0
}

/// Ends the current thread's ioctl: with a result, or because the thread exits.
#[inline(always)]
pub fn leave(current: Current, ret: Option<i64>) {
    let key = current.key();
    let Some(entered) = ENTERED.get_ptr(key) else { return };
    // Before the ioctl's record, so that it is not taken for a sample of a later queue.
    if ret == Some(0) {
        // SAFETY: only this thread changes the map's value, and it is running here.
        if let Some(queue_id) = destroys(unsafe { &*entered }) {
            progress::destroyed(current, queue_id);
        }
    }
    if let Some(mut entry) = EVENTS.reserve::<Ioctl>(0) {
        let record = entry.as_mut_ptr();
        // SAFETY: only this thread changes the map's value, and it is running here; `record` is the reserved entry, and every field
        // of it is written.
        unsafe {
            let entered = &*entered;
            let mut flags = entered.flags as u16;
            addr_of_mut!((*record).exit_ns).write(bpf_ktime_get_ns());
            addr_of_mut!((*record).arg).write(entered.arg);
            addr_of_mut!((*record).ret).write(ret.unwrap_or(0));
            addr_of_mut!((*record).cmd).write(entered.cmd);
            addr_of_mut!((*record).fd).write(entered.fd);
            addr_of_mut!((*record).len).write(entered.len);
            addr_of_mut!((*record).pad).write(0);
            addr_of_mut!((*record).arg_in).write(entered.arg_in);
            addr_of_mut!((*record).arg_out).write([0; IOCTL_ARG_LEN]);
            if ret.is_none() {
                flags |= flag::NEVER_RETURNED | flag::OUT_UNREADABLE;
            } else if entered.len > 0
                && !user::copy(
                    addr_of_mut!((*record).arg_out).cast(),
                    bounded(entered.len),
                    entered.arg,
                )
            {
                flags |= flag::OUT_UNREADABLE;
            }
            addr_of_mut!((*record).header).write(current.header(kind::IOCTL, flags, 0, entered.time_ns));
        }
        entry.submit(NO_WAKEUP);
    } else {
        lose(LossSource::IoctlRing, 1);
    }
    if ret == Some(0) {
        // SAFETY: as above.
        unsafe { begin_queue(current, &*entered) };
    } else if ret.is_none() {
        // It may have created a queue.
        begin_epoch();
    }
    let _ = ENTERED.remove(key);
}

/// Starts a queue that was just created. It begins at index 0, whatever was at its address before.
#[inline(always)]
fn begin_queue(current: Current, entered: &Entered) {
    let creates = ioc_type(entered.cmd) == kfd::IOC_TYPE_KFD && ioc_nr(entered.cmd) == kfd::NR_CREATE_QUEUE;
    if !creates || (entered.len as usize) < create_queue::MIN_LEN {
        return;
    }
    let write_pointer = word(entered, create_queue::WRITE_POINTER);
    if QueueType::from_raw(half(entered, create_queue::QUEUE_TYPE)).is_sdma() {
        let (base, bytes) = (
            word(entered, create_queue::RING_BASE),
            half(entered, create_queue::RING_SIZE),
        );
        return sdma::begin_queue(current, write_pointer, base, u64::from(bytes));
    }
    let queue = write_pointer.wrapping_sub(queue::WRITE_DISPATCH_ID as u64);
    diagnose!("process {}: queue {:x} begins at index 0", current.tgid, queue);
    doorbell::begin_queue(current, queue);
    if matches!(
        QueueType::from_raw(half(entered, create_queue::QUEUE_TYPE)),
        QueueType::ComputeAql
    ) {
        let read_pointer = word(entered, create_queue::READ_POINTER);
        progress::created(current, entered.arg, write_pointer, read_pointer);
    }
}

/// Returns the queue that a DESTROY_QUEUE names.
#[inline(always)]
fn destroys(entered: &Entered) -> Option<u32> {
    let destroys = ioc_type(entered.cmd) == kfd::IOC_TYPE_KFD && ioc_nr(entered.cmd) == kfd::NR_DESTROY_QUEUE;
    (destroys && entered.len >= 4).then_some(half(entered, 0))
}

/// Returns 8 bytes of the argument, at a constant offset.
#[inline(always)]
fn word(entered: &Entered, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&entered.arg_in[at..at + 8]);
    u64::from_ne_bytes(bytes)
}

/// Returns 4 bytes of the argument.
#[inline(always)]
fn half(entered: &Entered, at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&entered.arg_in[at..at + 4]);
    u32::from_ne_bytes(bytes)
}

/// Returns `len`, in a form whose bound the verifier sees.
#[inline(always)]
fn bounded(len: u32) -> u32 {
    if len > IOCTL_ARG_LEN as u32 {
        IOCTL_ARG_LEN as u32
    } else {
        len
    }
}
