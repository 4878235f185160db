//! The state that requests read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracer_core::{
    live::{Capture, Gpu, Live, Picture},
    metrics::{About, Family, Metrics},
    tables::Fact,
};

/// The state, shared between the thread that produces the facts and the threads that answer requests.
#[derive(Clone, Debug, Default)]
pub struct Board {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    live: Live,
    metrics: Metrics,
    about: About,
    /// The time of the last sign of life of the thread that produces the facts, CLOCK_MONOTONIC ns.
    heard_ns: u64,
    ended: bool,
}

/// Maximum age of the last sign of life of the thread that produces the facts, ns.
const ALIVE_NS: u64 = 10_000_000_000;

impl Board {
    /// Creates a board without facts.
    #[must_use]
    pub fn new(about: About) -> Self {
        let board = Self::default();
        board.lock().about = about;
        board
    }

    /// Takes a fact.
    pub fn take(&self, fact: &Fact) {
        let mut inner = self.lock();
        inner.live.apply(fact);
        inner.metrics.add(fact);
    }

    /// Sets what is known of the capture now.
    pub fn set_capture(&self, capture: Capture) {
        self.lock().live.set_capture(capture);
    }

    /// Sets the GPUs that are known now.
    pub fn set_gpus(&self, gpus: BTreeMap<u32, Gpu>) {
        self.lock().live.set_gpus(gpus);
    }

    /// Advances the time, which is also a sign of life. `about`: what is known now.
    pub fn advance(&self, now_ns: u64, about: Option<About>) {
        let mut inner = self.lock();
        inner.live.advance(now_ns);
        inner.metrics.advance(now_ns);
        inner.heard_ns = now_ns;
        if let Some(about) = about {
            inner.about = about;
        }
    }

    /// Records that no more facts will come.
    pub fn end(&self) {
        let mut inner = self.lock();
        inner.ended = true;
        inner.live.complete();
    }

    /// Returns the current picture.
    #[must_use]
    pub fn picture(&self) -> Picture {
        self.lock().live.picture()
    }

    /// Returns every metric.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let inner = self.lock();
        inner.metrics.families(&inner.live.picture(), &inner.about)
    }

    /// Returns why the server is not healthy; `None` if it is.
    #[must_use]
    pub fn illness(&self, now_ns: u64) -> Option<&'static str> {
        let inner = self.lock();
        if inner.ended {
            Some("capture has ended")
        } else if now_ns.saturating_sub(inner.heard_ns) > ALIVE_NS {
            Some("nothing was heard of capture for 10 s")
        } else {
            None
        }
    }

    /// Locks the state, also after a panic in another thread: it is plain data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
