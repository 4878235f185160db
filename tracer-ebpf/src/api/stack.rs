//! The open calls of a thread, one inside the other.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap},
};
use core::ptr::addr_of_mut;
use tracer_common::record::NO_STREAM;

use crate::{atomic, maps::Current};

/// Calls that are kept a thread: a power of two. HIP calls HSA, and that nothing of the catalogue.
pub const DEPTH: u32 = 8;

/// An open call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Frame {
    /// Where its return address lies: which return is its own.
    pub sp: u64,
    /// Its number; where calls are counted only, the place where.
    pub call: u64,
    pub enter_ns: u64,
    /// The site's.
    pub cookie: u64,
    /// Its stream argument, or `NO_STREAM`.
    pub stream: u64,
    pub bytes: u64,
    /// What it is about, or where it will store what it makes.
    pub object: u64,
    /// Number of the call around it, or 0, and the stream there.
    pub outer: u64,
    pub outer_stream: u64,
}

/// A thread with its open calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Thread {
    /// Number of the innermost open call, or 0.
    pub call: u64,
    /// Stream of the innermost one that names one, or `NO_STREAM`.
    pub stream: u64,
    /// How many are open.
    depth: u32,
    /// Of the process: calls of an ended one are never taken for those of another.
    pub generation: u32,
    frames: [Frame; DEPTH as usize],
}

/// Threads that have called anything. User space makes it small where calls are not probed.
#[map(name = "API_THREADS")]
pub static THREADS: HashMap<u64, Thread> = HashMap::with_max_entries(8192, 0);

/// A thread without calls: too large for a program's stack, and never written.
#[map]
static API_NOTHING: Array<Thread> = Array::with_max_entries(1, 0);

/// How many calls there were.
#[map]
static API_COUNT: Array<u64> = Array::with_max_entries(1, 0);

/// Number of the next call.
#[inline(always)]
pub fn next_call() -> Option<u64> {
    let count = API_COUNT.get_ptr_mut(0)?;
    // SAFETY: a map's value, which nothing else writes but by this function.
    Some(unsafe { atomic::add(count, 1) } + 1)
}

/// The current thread's entry; `None` if there is no room for it.
#[inline(always)]
pub fn of(current: &Current) -> Option<*mut Thread> {
    let key = current.key();
    let thread = match THREADS.get_ptr_mut(key) {
        Some(thread) => thread,
        None => {
            // SAFETY: a map's value stays valid for the program's run.
            let nothing: &Thread = unsafe { &*API_NOTHING.get_ptr(0)? };
            THREADS.insert(key, nothing, 0).ok()?;
            THREADS.get_ptr_mut(key)?
        }
    };
    // SAFETY: only this thread changes the entry, and it is here.
    unsafe {
        if (*thread).generation != current.generation {
            addr_of_mut!((*thread).generation).write(current.generation);
            addr_of_mut!((*thread).depth).write(0);
            addr_of_mut!((*thread).call).write(0);
            addr_of_mut!((*thread).stream).write(NO_STREAM);
        }
    }
    Some(thread)
}

impl Thread {
    /// The innermost open call.
    #[inline(always)]
    pub fn top(&self) -> Option<&'static Frame> {
        let depth = self.depth;
        if depth == 0 {
            return None;
        }
        // SAFETY: within the array, by the mask; a map's value stays valid for the program's run, and its frames are
        // only written by this thread's next entry into a function.
        Some(unsafe { &*self.frames.as_ptr().add((depth.wrapping_sub(1) & (DEPTH - 1)) as usize) })
    }

    /// Opens a call; whether there was room.
    #[inline(always)]
    pub fn push(&mut self, frame: &Frame) -> bool {
        let depth = self.depth;
        if depth >= DEPTH {
            return false;
        }
        // SAFETY: within the array, by the mask.
        let to = unsafe { self.frames.as_mut_ptr().add((depth & (DEPTH - 1)) as usize) };
        // SAFETY: as above; field by field, since a program has no memcpy.
        unsafe {
            addr_of_mut!((*to).sp).write(frame.sp);
            addr_of_mut!((*to).call).write(frame.call);
            addr_of_mut!((*to).enter_ns).write(frame.enter_ns);
            addr_of_mut!((*to).cookie).write(frame.cookie);
            addr_of_mut!((*to).stream).write(frame.stream);
            addr_of_mut!((*to).bytes).write(frame.bytes);
            addr_of_mut!((*to).object).write(frame.object);
            addr_of_mut!((*to).outer).write(frame.outer);
            addr_of_mut!((*to).outer_stream).write(frame.outer_stream);
        }
        self.depth = depth + 1;
        self.call = frame.call;
        if frame.stream != NO_STREAM {
            self.stream = frame.stream;
        }
        true
    }

    /// Closes the innermost call, whose frame stays as it is until the next one is opened.
    #[inline(always)]
    pub fn pop(&mut self) {
        if let Some(top) = self.top() {
            self.depth -= 1;
            self.call = top.outer;
            self.stream = top.outer_stream;
        }
    }
}
