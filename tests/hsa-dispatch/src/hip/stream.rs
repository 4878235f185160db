//! Streams, events and graphs.

use std::sync::Arc;

use super::calls::About;
use super::runtime::Runtime;
use super::types::{CAPTURE_GLOBAL, Object, STREAM_NON_BLOCKING};
use crate::error::Result;

/// A separate stream, which does not wait for the default one.
pub struct Stream {
    runtime: Arc<Runtime>,
    handle: Object,
}

// SAFETY: HIP's functions on streams may be called from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// Creates a stream.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn new(runtime: &Arc<Runtime>) -> Result<Self> {
        let handle = runtime.create("hipStreamCreateWithFlags", About::default(), |api, stream| {
            // SAFETY: `stream` is writable.
            unsafe { (api.hipStreamCreateWithFlags)(stream, STREAM_NON_BLOCKING) }
        })?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            handle,
        })
    }

    /// Returns HIP's handle.
    #[must_use]
    pub fn handle(&self) -> Object {
        self.handle
    }

    /// Waits until all work on the stream is complete.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn synchronize(&self) -> Result<()> {
        let about = About::default().on(self.handle);
        self.runtime.call("hipStreamSynchronize", about, |api| {
            // SAFETY: the stream is alive.
            unsafe { (api.hipStreamSynchronize)(self.handle) }
        })
    }

    /// Makes later work wait for an event.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn wait_for(&self, event: &Event) -> Result<()> {
        let about = About::object(event.handle).on(self.handle);
        self.runtime.call("hipStreamWaitEvent", about, |api| {
            // SAFETY: both are alive.
            unsafe { (api.hipStreamWaitEvent)(self.handle, event.handle, 0) }
        })
    }

    /// Captures the work that `submit` requests as a graph of `kernels` kernels, instead of running it.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn capture(&self, kernels: u32, submit: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let about = About::default().on(self.handle);
        self.runtime.call("hipStreamBeginCapture", about, |api| {
            // SAFETY: the stream is alive.
            unsafe { (api.hipStreamBeginCapture)(self.handle, CAPTURE_GLOBAL) }
        })?;
        submit()?;
        let template = self.runtime.create("hipStreamEndCapture", about, |api, graph| {
            // SAFETY: the stream is alive, `graph` is writable.
            unsafe { (api.hipStreamEndCapture)(self.handle, graph) }
        })?;
        let executable = self
            .runtime
            .create("hipGraphInstantiate", About::default(), |api, executable| {
                let none = std::ptr::null_mut();
                // SAFETY: the graph is alive; neither the failing node nor a log is requested.
                unsafe { (api.hipGraphInstantiate)(executable, template, none, none.cast(), 0) }
            })?;
        Ok(Graph {
            runtime: Arc::clone(&self.runtime),
            template,
            executable,
            kernels,
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let about = About::default().on(self.handle);
        // SAFETY: created by HIP and destroyed once. If this fails, there is nothing left to do.
        let _ = self.runtime.call("hipStreamDestroy", about, |api| unsafe {
            (api.hipStreamDestroy)(self.handle)
        });
    }
}

/// A point in a stream, with the time when the stream reached it.
pub struct Event {
    runtime: Arc<Runtime>,
    handle: Object,
}

// SAFETY: HIP's functions on events may be called from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// Creates an event.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn new(runtime: &Arc<Runtime>) -> Result<Self> {
        let handle = runtime.create("hipEventCreate", About::default(), |api, event| {
            // SAFETY: `event` is writable.
            unsafe { (api.hipEventCreate)(event) }
        })?;
        Ok(Self {
            runtime: Arc::clone(runtime),
            handle,
        })
    }

    /// Returns HIP's handle.
    #[must_use]
    pub fn handle(&self) -> Object {
        self.handle
    }

    /// Places the event after the work that has been submitted to the stream so far.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        let about = About::object(self.handle).on(stream.handle);
        self.runtime.call("hipEventRecord", about, |api| {
            // SAFETY: both are alive.
            unsafe { (api.hipEventRecord)(self.handle, stream.handle) }
        })
    }

    /// Waits until the stream reaches the event.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn synchronize(&self) -> Result<()> {
        self.runtime
            .call("hipEventSynchronize", About::object(self.handle), |api| {
                // SAFETY: it is alive.
                unsafe { (api.hipEventSynchronize)(self.handle) }
            })
    }

    /// Returns the milliseconds from `start` to this event. Both must have been reached.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn since(&self, start: &Self) -> Result<f32> {
        let mut ms = 0.0;
        self.runtime
            .call("hipEventElapsedTime", About::object(self.handle), |api| {
                // SAFETY: both are alive, `ms` is writable.
                unsafe { (api.hipEventElapsedTime)(&raw mut ms, start.handle, self.handle) }
            })?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let about = About::object(self.handle);
        // SAFETY: created by HIP and destroyed once. If this fails, there is nothing left to do.
        let _ = self.runtime.call("hipEventDestroy", about, |api| unsafe {
            (api.hipEventDestroy)(self.handle)
        });
    }
}

/// Captured work that can be launched repeatedly.
pub struct Graph {
    runtime: Arc<Runtime>,
    template: Object,
    executable: Object,
    kernels: u32,
}

impl Graph {
    /// Launches the whole graph.
    ///
    /// # Errors
    /// Fails if HIP refuses the call.
    pub fn launch(&self, stream: &Stream) -> Result<()> {
        let about = About::object(self.executable)
            .on(stream.handle)
            .of_kernels(self.kernels);
        self.runtime.call("hipGraphLaunch", about, |api| {
            // SAFETY: both are alive.
            unsafe { (api.hipGraphLaunch)(self.executable, stream.handle) }
        })
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        let (executable, template) = (self.executable, self.template);
        // SAFETY: both were created by HIP and are destroyed once. If this fails, there is nothing left to do.
        let _ = self
            .runtime
            .call("hipGraphExecDestroy", About::object(executable), |api| unsafe {
                (api.hipGraphExecDestroy)(executable)
            });
        // SAFETY: as above.
        let _ = self
            .runtime
            .call("hipGraphDestroy", About::object(template), |api| unsafe {
                (api.hipGraphDestroy)(template)
            });
    }
}
