//! What requests read.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracer_core::{
    fact::Fact,
    live::{Gpu, Live, Picture},
    metrics::{About, Family, Metrics},
};

/// The state, shared between the thread that has the facts and those that answer.
#[derive(Clone, Debug, Default)]
pub struct Board {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    live: Live,
    metrics: Metrics,
    about: About,
    /// When the facts' thread was last heard of, CLOCK_MONOTONIC ns.
    heard_ns: u64,
    ended: bool,
}

/// How old the last sign of life of the facts' thread may be, ns.
const ALIVE_NS: u64 = 10_000_000_000;

impl Board {
    /// Nothing yet.
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

    /// The GPUs that are known by now.
    pub fn set_gpus(&self, gpus: BTreeMap<u32, Gpu>) {
        self.lock().live.set_gpus(gpus);
    }

    /// Time passes: a sign of life. `about`: what is known by now.
    pub fn advance(&self, now_ns: u64, about: Option<About>) {
        let mut inner = self.lock();
        inner.live.advance(now_ns);
        inner.metrics.advance(now_ns);
        inner.heard_ns = now_ns;
        if let Some(about) = about {
            inner.about = about;
        }
    }

    /// No more facts come.
    pub fn end(&self) {
        self.lock().ended = true;
    }

    /// What can be shown now.
    #[must_use]
    pub fn picture(&self) -> Picture {
        self.lock().live.picture()
    }

    /// Every metric now.
    #[must_use]
    pub fn families(&self) -> Vec<Family> {
        let inner = self.lock();
        inner.metrics.families(&inner.live.picture(), &inner.about)
    }

    /// What facts do not say.
    #[must_use]
    pub fn about(&self) -> About {
        self.lock().about.clone()
    }

    /// Why the server is not well; `None` if it is.
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

    /// Also after a panic elsewhere: it is plain data.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
