//! Looks at queues and completion signals, between the thread that takes them and the model.

use tracer_capture::{
    sampler::{Look, Sampler},
    sys,
};
use tracer_core::{fact::Fact, model::Model};

/// The sampler, and what came of it.
pub struct Looks {
    sampler: Option<Sampler>,
    /// Taken before the last records were.
    waiting: Vec<Look>,
    /// Signals to ask for: empty but for a moment.
    signals: Vec<(u32, u64)>,
    /// Of the queues that the sampler knows.
    revision: u64,
}

impl Looks {
    /// Of no queue yet.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self {
            sampler: Some(Sampler::start()?),
            waiting: Vec::new(),
            signals: Vec::new(),
            revision: 0,
        })
    }

    /// What was seen up to now: before records are drained, so that these tell of everything that came before it.
    pub fn collect(&mut self) {
        if let Some(sampler) = &self.sampler {
            self.waiting.extend(sampler.looks());
        }
    }

    /// All records that had come are drained.
    pub fn apply(&mut self, model: &mut Model, mut take: impl FnMut(&Fact)) {
        for look in self.waiting.drain(..) {
            model.apply(&look.event(), &mut |fact| take(&fact));
        }
    }

    /// Tells the sampler of the queues that there are now, and of signals that packets wait for since long.
    pub fn watch(&mut self, model: &mut Model) {
        let Some(sampler) = &self.sampler else { return };
        if self.revision != model.revision() {
            self.revision = model.revision();
            sampler.watch(model.positions().collect());
        }
        let signals = &mut self.signals;
        model.signals_due(sys::monotonic_ns(), |pid, signal| signals.push((pid, signal)));
        sampler.ask(signals);
    }

    /// The last look at everything. Probes must still be in: what is published after it is for nobody to see.
    pub fn finish(&mut self, model: &mut Model) {
        self.watch(model);
        if let Some(sampler) = self.sampler.take() {
            self.signals.extend(model.signals_waiting());
            sampler.ask_at_end(&mut self.signals);
            self.waiting.extend(sampler.finish());
        }
    }
}
