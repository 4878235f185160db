//! Looks at queues and completion signals, between the thread that takes them and the model.

use tracer_capture::{
    confined::Readers,
    sampler::{Look, Sampler},
    session::Session,
    sys,
};
use tracer_core::{fact::Fact, model::Model};

/// The sampler, and what came of it.
pub struct Looks {
    sampler: Option<Sampler>,
    /// Taken, and not told to the model yet.
    waiting: Vec<Look>,
    /// Up to where records had come when they were taken.
    mark: u64,
    /// Signals to ask for: empty but for a moment.
    signals: Vec<(u32, u64)>,
    /// Of the queues that the sampler knows.
    revision: u64,
}

impl Looks {
    /// Of no queue yet.
    pub fn start(readers: Readers) -> anyhow::Result<Self> {
        Ok(Self {
            sampler: Some(Sampler::start(readers)?),
            waiting: Vec::new(),
            mark: 0,
            signals: Vec::new(),
            revision: 0,
        })
    }

    /// What was seen up to now, unless what was seen before still waits for records.
    pub fn collect(&mut self, session: &Session) {
        if let Some(sampler) = self.sampler.as_ref().filter(|_| self.waiting.is_empty()) {
            self.waiting.extend(sampler.looks());
            // What a look can have seen of a doorbell's work, that doorbell's record came before.
            self.mark = session.mark();
        }
    }

    /// Tells the model of what was seen, once it has every record that had come by then.
    pub fn apply(&mut self, session: &Session, model: &mut Model, mut take: impl FnMut(&Fact)) {
        if session.is_drained_to(self.mark) {
            for look in self.waiting.drain(..) {
                model.apply(&look.event(), &mut |fact| take(&fact));
            }
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
    pub fn finish(&mut self, session: &Session, model: &mut Model) {
        self.watch(model);
        if let Some(sampler) = self.sampler.take() {
            self.signals.extend(model.signals_waiting());
            sampler.ask_at_end(&mut self.signals);
            self.waiting.extend(sampler.finish());
            self.mark = session.mark();
        }
    }
}
