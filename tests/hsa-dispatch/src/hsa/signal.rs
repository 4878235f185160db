//! Signals: how the GPU reports that work is complete.

use std::sync::Arc;
use std::time::Duration;

use super::types::{CONDITION_LT, DispatchTime, SignalHandle, WAIT_BLOCKED};
use super::{Agent, Queue, Runtime};
use crate::clock::Deadline;
use crate::error::{Error, Result};

/// The longest sleep of one call of the runtime before deadline and queues are checked.
const SLICE_MILLIS: u64 = 100;

/// A signal of the runtime.
pub struct Signal {
    runtime: Arc<Runtime>,
    handle: SignalHandle,
}

impl Signal {
    /// Creates a signal with value `value` that any agent may wait for.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn new(runtime: &Arc<Runtime>, value: i64) -> Result<Self> {
        let mut handle = SignalHandle::default();
        // SAFETY: no consumers are named, and `handle` is writable.
        let status = unsafe { (runtime.api.hsa_signal_create)(value, 0, std::ptr::null(), &raw mut handle) };
        runtime.check("hsa_signal_create", status)?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            handle,
        })
    }

    /// Returns the runtime's handle, for packets and copies.
    #[must_use]
    pub fn handle(&self) -> SignalHandle {
        self.handle
    }

    /// Returns the value. What the GPU wrote before it set the value is visible afterwards.
    #[must_use]
    pub fn value(&self) -> i64 {
        // SAFETY: the signal lives as long as `self`.
        unsafe { (self.runtime.api.hsa_signal_load_scacquire)(self.handle) }
    }

    /// Sets the value. A reader that sees the value also sees what was written before.
    pub fn store(&self, value: i64) {
        // SAFETY: the signal lives as long as `self`.
        unsafe { (self.runtime.api.hsa_signal_store_screlease)(self.handle, value) };
    }

    /// Returns when the last packet that completed the signal ran on `agent`, whose queue is profiled: `CLOCK_BOOTTIME` ns, start
    /// and end.
    ///
    /// # Errors
    /// Fails if the runtime refuses the call.
    pub fn dispatch_time(&self, agent: &Agent) -> Result<[u64; 2]> {
        let mut time = DispatchTime::default();
        // SAFETY: the signal lives as long as `self`; `time` is writable.
        let status =
            unsafe { (self.runtime.api.hsa_amd_profiling_get_dispatch_time)(agent.handle, self.handle, &raw mut time) };
        self.runtime.check("hsa_amd_profiling_get_dispatch_time", status)?;
        Ok([time.start, time.end])
    }

    /// Sleeps until the value is 0 or less.
    ///
    /// # Errors
    /// Fails if that takes longer than `timeout`, or if one of `queues`, which do the work, stops.
    pub fn wait(&self, what: &str, timeout: Duration, queues: &[&Queue]) -> Result<()> {
        let deadline = Deadline::after(timeout);
        let slice = self.runtime.ticks(SLICE_MILLIS);
        loop {
            // SAFETY: the signal lives as long as `self`.
            let value = unsafe {
                (self.runtime.api.hsa_signal_wait_scacquire)(self.handle, CONDITION_LT, 1, slice, WAIT_BLOCKED)
            };
            if value < 1 {
                return Ok(());
            }
            for queue in queues {
                queue.check()?;
            }
            if deadline.passed() {
                let queues: Vec<_> = queues.iter().map(|queue| queue.to_string()).collect();
                return Err(Error::Timeout {
                    what: what.to_owned(),
                    seconds: timeout.as_secs(),
                    state: format!("signal {:#x} is {value}; {}", self.handle.handle, queues.join("; ")),
                });
            }
        }
    }
}

impl Drop for Signal {
    fn drop(&mut self) {
        // SAFETY: created by the runtime and destroyed once.
        unsafe { (self.runtime.api.hsa_signal_destroy)(self.handle) };
    }
}
