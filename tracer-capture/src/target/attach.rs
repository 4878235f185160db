//! Attaches to running processes without stopping any of them.
//!
//! First tracer traces the processes, so that it follows forks from now on and examines a library that they map before its code
//! runs. Then it attaches the probes to the runtimes that the processes have mapped. Only then, at one moment for all of them, do
//! their submissions begin to count: an earlier doorbell is not recorded, whichever probes were attached by then.

use std::{collections::BTreeSet, io, sync::mpsc, time::Duration};

use tracer_core::event::KfdQueue;

use crate::{
    CaptureError,
    examination::Ask,
    kernel::kfd_proc::{self, Numbering, Queue},
    session::Session,
    sys,
    target::{
        candidate::Candidate,
        process_stat::{self, comm},
    },
};

/// A process that is traced from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its id.
    pub pid: u32,
    /// Its name, at most 15 bytes; empty if it could not be read.
    pub comm: Vec<u8>,
    /// The moment from which its submissions count.
    pub time_ns: u64,
    /// The queues that it had at that moment, by the driver's files.
    pub queues: Vec<KfdQueue>,
    /// Whether it has mapped an HSA runtime.
    pub has_runtime: bool,
}

/// Most searches for child processes: for those that were created while their parent was being entered.
const MAX_ROUNDS: usize = 16;
/// How long tracer tries to read the queues of a process.
const PATIENCE: Duration = Duration::from_secs(2);

impl Session {
    /// Traces running processes, from one moment on, and (with `children`) their descendants.
    ///
    /// # Errors
    /// Returns [`CaptureError::NotAttached`] if a process has exited in between; [`CaptureError::System`] if there are too many.
    pub fn attach(&mut self, candidates: &[Candidate], children: bool) -> Result<Vec<Attached>, CaptureError> {
        let mut known: BTreeSet<u32> = BTreeSet::new();
        let mut new: BTreeSet<u32> = candidates.iter().map(|candidate| candidate.pid).collect();
        let mut has_runtime = BTreeSet::new();
        for _ in 0..MAX_ROUNDS {
            has_runtime.extend(self.enter(&new)?);
            known.append(&mut new);
            if children {
                let mut all = known.clone();
                process_stat::add_descendants(&mut all);
                new = &all - &known;
            }
            if new.is_empty() {
                break;
            }
        }
        // An id may have belonged to another process by the time that it was entered.
        if let Some(gone) = candidates.iter().find(|candidate| sys::has_ended(&candidate.pidfd)) {
            let (pid, why) = (gone.pid, "it has exited in between".to_owned());
            return Err(CaptureError::NotAttached { pid, why });
        }
        self.count(known, has_runtime)
    }

    /// Makes the submissions of these processes count from now on. They are traced already, with the probes of a first scan.
    pub(crate) fn count(
        &mut self,
        known: BTreeSet<u32>,
        mut has_runtime: BTreeSet<u32>,
    ) -> Result<Vec<Attached>, CaptureError> {
        // Finds a file that was being mapped during the first scan.
        has_runtime.extend(self.scan(known.iter().copied().collect())?);
        let numbering = Numbering::of_kernel();
        let before: Vec<Vec<Queue>> = known.iter().map(|&pid| self.queues(pid, numbering)).collect();
        self.begin();
        let time_ns = sys::monotonic_ns();
        let attached = known.into_iter().zip(before).map(|(pid, before)| Attached {
            pid,
            comm: comm(pid),
            time_ns,
            queues: in_both(&before, &self.queues(pid, numbering)),
            has_runtime: has_runtime.contains(&pid),
        });
        Ok(attached.collect())
    }

    /// Enters processes among the traced ones, and attaches probes to their runtimes; returns the processes that have a runtime.
    fn enter(&mut self, pids: &BTreeSet<u32>) -> Result<Vec<u32>, CaptureError> {
        for &pid in pids {
            self.insert(pid)?;
            // It may use the KFD already: tracer pauses it for the files that it maps from now on, and not at its next ioctl.
            self.insert_user(pid)?;
        }
        self.scan(pids.iter().copied().collect())
    }

    /// Returns the queues of a process, by the files that the process sees: a simulated driver shows its queues only there.
    fn queues(&self, pid: u32, numbering: Numbering) -> Vec<Queue> {
        let examine = self.work.examine(pid, PATIENCE);
        examine.map_or_else(|_| Vec::new(), |examine| kfd_proc::queues_of(&examine, pid, numbering))
    }

    /// Returns which of these processes have mapped a runtime. The probes of that runtime are attached by then.
    pub(crate) fn scan(&self, pids: Vec<u32>) -> Result<Vec<u32>, CaptureError> {
        let (reply, answer) = mpsc::channel();
        let sent = self.asks.send(Ask { pids, reply });
        let answer = sent.then(|| answer.recv().ok()).flatten();
        answer.ok_or_else(|| {
            let gone = io::Error::other("the thread that attaches probes has exited");
            CaptureError::system("attaching", gone)
        })
    }
}

/// Returns the queues of both lists. A queue in both, with equal values, existed at every moment between them. Any other queue has
/// no values, because it is open which queue is meant.
fn in_both(before: &[Queue], after: &[Queue]) -> Vec<KfdQueue> {
    let same = |a: &Queue, b: &Queue| (a.queue_id, a.context) == (b.queue_id, b.context);
    let whole = after.iter().map(|queue| {
        let sure = before.iter().any(|other| other == queue);
        describe(queue, sure)
    });
    let gone = before
        .iter()
        .filter(|queue| !after.iter().any(|other| same(queue, other)));
    whole.chain(gone.map(|queue| describe(queue, false))).collect()
}

fn describe(queue: &Queue, sure: bool) -> KfdQueue {
    KfdQueue {
        queue_id: queue.queue_id,
        gpu_id: queue.gpu_id.filter(|_| sure),
        compute: queue.kind.filter(|_| sure).map(|kind| kind == "compute"),
        ring_bytes: queue.ring_bytes.filter(|_| sure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(queue_id: u32, bytes: u64) -> Queue {
        Queue {
            queue_id,
            context: None,
            gpu_id: Some(1),
            type_number: Some(0),
            kind: Some("compute"),
            ring_bytes: Some(bytes),
        }
    }

    #[test]
    fn a_queue_that_comes_or_goes_at_the_moment_says_nothing_of_itself() {
        let found = in_both(
            &[queue(1, 64), queue(2, 64), queue(3, 64)],
            &[queue(1, 64), queue(2, 128), queue(4, 64)],
        );
        let sizes: Vec<_> = found.iter().map(|queue| (queue.queue_id, queue.ring_bytes)).collect();
        assert_eq!(sizes, [(1, Some(64)), (2, None), (4, None), (3, None)]);
        assert_eq!((found[0].compute, found[1].compute), (Some(true), None));
    }
}
