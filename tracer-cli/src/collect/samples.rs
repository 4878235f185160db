//! Samples of queues and completion signals, between the thread that takes them and the model.

use tracer_capture::{
    confined::Readers,
    sampler::{self, Sample, Sampler},
    session::Session,
    sys,
    wake::Waker,
};
use tracer_core::{model::Model, tables::Fact};

/// The sampler and its samples.
pub struct Samples {
    sampler: Option<Sampler>,
    readers: Readers,
    /// Samples that were taken and not yet passed to the model.
    waiting: Vec<Sample>,
    /// The position of the newest record when the samples were collected.
    mark: u64,
    /// Revision of the queues that the sampler knows.
    revision: u64,
}

impl Samples {
    /// Starts the sampler, with no queues yet. `waker` wakes the thread that collects.
    pub fn start(readers: Readers, waker: Waker) -> anyhow::Result<Self> {
        Ok(Self {
            sampler: Some(Sampler::start(readers.clone(), waker)?),
            readers,
            waiting: Vec::new(),
            mark: 0,
            revision: 0,
        })
    }

    /// Collects the samples taken up to now, unless earlier samples still wait for records. Returns whether samples wait.
    pub fn collect(&mut self, session: &Session) -> bool {
        if let Some(sampler) = self.sampler.as_ref().filter(|_| self.waiting.is_empty()) {
            self.waiting.extend(sampler.samples());
            // If a sample has seen the work of a doorbell, that doorbell's record was written before this mark.
            self.mark = session.mark();
        }
        !self.waiting.is_empty()
    }

    /// Passes the samples to the model, once the model has every record that had been written by then.
    pub fn apply(&mut self, session: &Session, model: &mut Model, mut take: impl FnMut(&Fact)) {
        if session.is_drained_to(self.mark) {
            for sample in self.waiting.drain(..) {
                model.apply(&sample.event(), &mut |fact| take(&fact));
            }
        }
    }

    /// Gives the sampler the current queues, and the signals that packets have waited for a long time.
    pub fn watch(&mut self, model: &mut Model) {
        let Some(sampler) = &self.sampler else { return };
        if self.revision != model.revision() {
            self.revision = model.revision();
            sampler.watch(model.positions().collect());
        }
        let mut signals = Vec::new();
        model.signals_due(sys::monotonic_ns(), |pid, signal| signals.push((pid, signal)));
        sampler.ask(&mut signals);
    }

    /// Takes the last sample of everything. The probes must still be attached: no sample sees what is published later.
    pub fn finish(&mut self, session: &Session, model: &mut Model) {
        self.watch(model);
        if let Some(sampler) = self.sampler.take() {
            let mut signals: Vec<_> = model.signals_waiting().collect();
            sampler.ask_at_end(&mut signals);
            self.waiting.extend(sampler.finish());
            self.mark = session.mark();
        }
    }

    /// Samples the queues once more, when no doorbell is recorded any more: the samples show which queues still existed after the
    /// last doorbell that was.
    pub fn confirm(&mut self, session: &Session, model: &Model) {
        let queues = model.positions().collect();
        self.waiting
            .extend(sampler::after_the_end(self.readers.clone(), queues));
        self.mark = session.mark();
    }
}
