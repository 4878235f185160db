//! Looks at queues, between the thread that takes them and the model.

use tracer_capture::sampler::Sampler;
use tracer_core::{
    event::{Event, Progress},
    fact::Fact,
    model::Model,
};

/// The sampler, and what came of it.
pub struct Looks {
    sampler: Option<Sampler>,
    /// Taken before the last records were.
    waiting: Vec<Progress>,
    /// Of the queues that the sampler knows.
    revision: u64,
}

impl Looks {
    /// Of no queue yet.
    pub fn start() -> anyhow::Result<Self> {
        Ok(Self {
            sampler: Some(Sampler::start()?),
            waiting: Vec::new(),
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
            model.apply(&Event::Progress(look), &mut |fact| take(&fact));
        }
    }

    /// Tells the sampler of the queues that there are now.
    pub fn watch(&mut self, model: &Model) {
        if let Some(sampler) = self.sampler.as_ref().filter(|_| self.revision != model.revision()) {
            self.revision = model.revision();
            sampler.watch(model.positions().collect());
        }
    }

    /// The last look at everything. Probes must still be in: what is published after it is for nobody to see.
    pub fn finish(&mut self, model: &Model) {
        self.watch(model);
        if let Some(sampler) = self.sampler.take() {
            self.waiting.extend(sampler.finish());
        }
    }
}
