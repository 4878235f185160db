//! Signals: how the GPU tells that work is done.

use std::sync::Arc;
use std::time::Duration;

use super::types::{CONDITION_LT, DispatchTime, SignalHandle, WAIT_BLOCKED};
use super::{Agent, Queue, Runtime};
use crate::clock::Deadline;
use crate::error::{Error, Result};

/// How long one call of the runtime sleeps at most before deadline and queues are looked at.
const SLICE_MILLIS: u64 = 100;

/// A signal of the runtime.
pub struct Signal {
    runtime: Arc<Runtime>,
    handle: SignalHandle,
}

impl Signal {
    /// A signal of value `value` that any agent may wait for.
    ///
    /// # Errors
    /// The runtime refuses.
    pub fn new(runtime: &Arc<Runtime>, value: i64) -> Result<Self> {
        let mut handle = SignalHandle::default();
        // SAFETY: no consumers are named; `handle` is writable.
        let status = unsafe { (runtime.api.hsa_signal_create)(value, 0, std::ptr::null(), &raw mut handle) };
        runtime.check("hsa_signal_create", status)?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            handle,
        })
    }

    /// The runtime's handle, for packets and copies.
    #[must_use]
    pub fn handle(&self) -> SignalHandle {
        self.handle
    }

    /// Its value; what the GPU wrote before setting it is visible afterwards.
    #[must_use]
    pub fn value(&self) -> i64 {
        // SAFETY: the signal lives as long as `self`.
        unsafe { (self.runtime.api.hsa_signal_load_scacquire)(self.handle) }
    }

    /// Sets its value; what was written before is visible to whoever sees it.
    pub fn store(&self, value: i64) {
        // SAFETY: the signal lives as long as `self`.
        unsafe { (self.runtime.api.hsa_signal_store_screlease)(self.handle, value) };
    }

    /// When the packet that completed it last ran on `agent`, whose queue is profiled: `CLOCK_BOOTTIME` ns, start and end.
    ///
    /// # Errors
    /// The runtime refuses.
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
    /// That takes longer than `timeout`, or one of `queues`, whose work it is, stops.
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
