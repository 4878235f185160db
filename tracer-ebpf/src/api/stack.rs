//! The stack of a thread's open calls.

use aya_ebpf::{
    macros::map,
    maps::{Array, HashMap},
};
use core::ptr::addr_of_mut;
pub use tracer_common::open::{DEPTH, OpenCall as Frame, ThreadCalls as Thread};
use tracer_common::{api::Cookie, record::NO_STREAM};

use crate::{atomic, maps::Current};

/// Threads that made a call. User space makes the map small if calls are not probed.
#[map(name = "API_THREADS")]
pub static THREADS: HashMap<u64, Thread> = HashMap::with_max_entries(8192, 0);

/// A thread without calls. It is too large for a program's stack, and never written.
#[map]
static API_NOTHING: Array<Thread> = Array::with_max_entries(1, 0);

/// The number of calls so far.
#[map]
static API_COUNT: Array<u64> = Array::with_max_entries(1, 0);

/// Returns the number of the next call.
#[inline(always)]
pub fn next_call() -> Option<u64> {
    let count = API_COUNT.get_ptr_mut(0)?;
    // SAFETY: a map's value, which only this function writes.
    Some(unsafe { atomic::add(count, 1) } + 1)
}

/// Returns the current thread's entry; `None` if there is no room for it.
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
    // SAFETY: only this thread changes the entry, and it is running here.
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

/// A thread's calls as a stack.
pub trait Stack {
    /// Returns the innermost open call.
    fn top(&self) -> Option<&'static Frame>;
    /// Opens a call. Returns whether there was room.
    fn push(&mut self, frame: &Frame) -> bool;
    /// Closes the innermost call. Its frame stays unchanged until the next call is opened.
    fn pop(&mut self);
}

impl Stack for Thread {
    #[inline(always)]
    fn top(&self) -> Option<&'static Frame> {
        let depth = self.depth;
        if depth == 0 {
            return None;
        }
        // SAFETY: within the array, by the mask; a map's value stays valid for the program's run, and only this thread's next entry
        // into a function writes its frames.
        Some(unsafe { &*self.frames.as_ptr().add((depth.wrapping_sub(1) & (DEPTH - 1)) as usize) })
    }

    #[inline(always)]
    fn push(&mut self, frame: &Frame) -> bool {
        let depth = self.depth;
        if depth >= DEPTH {
            return false;
        }
        // SAFETY: within the array, by the mask.
        let to = unsafe { self.frames.as_mut_ptr().add((depth & (DEPTH - 1)) as usize) };
        // SAFETY: as above; written field by field, because a program has no memcpy.
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
        // A call that is only counted has no number: what happens in it is in the call around it.
        if !Cookie(frame.cookie).counted() {
            self.call = frame.call;
            if frame.stream != NO_STREAM {
                self.stream = frame.stream;
            }
        }
        true
    }

    #[inline(always)]
    fn pop(&mut self) {
        if let Some(top) = self.top() {
            self.depth -= 1;
            self.call = top.outer;
            self.stream = top.outer_stream;
        }
    }
}
