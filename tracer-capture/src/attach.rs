//! Attaching to processes that run, without stopping any of them.
//!
//! First they are traced, so that from now on forks are followed and a library that they map is looked at before it runs.
//! Then the probes go into the runtimes that they have mapped. Only then, at one moment for all of them, what they submit
//! begins to count: a doorbell that came before is not recorded, whichever of the probes were in.

use std::{collections::BTreeSet, io, sync::mpsc, time::Duration};

use tracer_core::event::KfdQueue;

use crate::{
    CaptureError,
    candidate::Candidate,
    hold::Ask,
    kfd_proc::{self, Numbering, Queue},
    process_stat,
    session::Session,
    sys,
};

/// A process that is traced from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its id.
    pub pid: u32,
    /// Its name, at most 15 bytes; empty if it could not be read.
    pub comm: Vec<u8>,
    /// The moment from which on what it submits counts.
    pub time_ns: u64,
    /// The queues that it had at that moment, by the driver's files.
    pub queues: Vec<KfdQueue>,
    /// Whether it has mapped an HSA runtime.
    pub has_runtime: bool,
}

/// Looks for children this often: those that were made while their parent's name was entered.
const MAX_ROUNDS: usize = 16;
/// How long the queues of a process are looked for.
const PATIENCE: Duration = Duration::from_secs(2);

impl Session {
    /// Traces processes that run, from one moment on, and (with `children`) their descendants.
    ///
    /// # Errors
    /// [`CaptureError::NotAttached`] for a process that ended meanwhile; [`CaptureError::System`] if there are too many.
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
        // An id may have been another process's by the time that it was entered.
        for candidate in candidates {
            if sys::has_ended(&candidate.pidfd) {
                return Err(CaptureError::NotAttached {
                    pid: candidate.pid,
                    why: "it has exited in between".to_owned(),
                });
            }
        }
        self.count(known, has_runtime)
    }

    /// From now on what these processes submit counts. They are traced already, with the probes that a first look gave them.
    pub(crate) fn count(
        &mut self,
        known: BTreeSet<u32>,
        mut has_runtime: BTreeSet<u32>,
    ) -> Result<Vec<Attached>, CaptureError> {
        // A file that was being mapped during the first look.
        has_runtime.extend(self.ask(|reply| Ask::Scan(known.iter().copied().collect(), reply))?);
        let numbering = Numbering::of_kernel();
        let queues = |pid| self.queues(pid, numbering);
        let before: Vec<Vec<Queue>> = known.iter().map(|&pid| queues(pid)).collect();
        self.begin();
        let time_ns = sys::monotonic_ns();
        let queues = |pid| self.queues(pid, numbering);
        let attached = known.into_iter().zip(before).map(|(pid, before)| Attached {
            pid,
            comm: comm(pid),
            time_ns,
            queues: in_both(&before, &queues(pid)),
            has_runtime: has_runtime.contains(&pid),
        });
        Ok(attached.collect())
    }

    /// Enters processes among the traced, and puts probes into the runtimes that they have; those that have one.
    fn enter(&mut self, pids: &BTreeSet<u32>) -> Result<Vec<u32>, CaptureError> {
        let list: Vec<u32> = pids.iter().copied().collect();
        for &pid in pids {
            self.insert(pid)?;
            // It may use the KFD already: it is paused for what it maps from now on, and not for its next ioctl.
            self.insert_user(pid)?;
        }
        self.ask(|reply| Ask::Scan(list, reply))
    }

    /// The queues of a process, by the files that it sees itself: a simulated driver's are there only.
    fn queues(&self, pid: u32, numbering: Numbering) -> Vec<Queue> {
        let examine = self.work.examine(pid, PATIENCE);
        examine.map_or_else(|_| Vec::new(), |examine| kfd_proc::queues_of(&examine, pid, numbering))
    }

    pub(crate) fn ask(&self, ask: impl FnOnce(mpsc::Sender<Vec<u32>>) -> Ask) -> Result<Vec<u32>, CaptureError> {
        let gone = || CaptureError::system("attaching", io::Error::other("the thread that attaches probes has exited"));
        let (reply, answer) = mpsc::channel();
        self.asks.send(ask(reply)).map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())
    }
}

/// Those of both lists: they were there at every moment between. Those of one only have no numbers: they leave it open
/// which queue is meant.
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
    let kind = queue.kind.filter(|_| sure);
    KfdQueue {
        queue_id: queue.queue_id,
        gpu_id: queue.gpu_id.filter(|_| sure),
        compute: kind.map(|kind| kind == "compute"),
        ring_bytes: queue.ring_bytes.filter(|_| sure),
    }
}

fn comm(pid: u32) -> Vec<u8> {
    let mut comm = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.truncate(comm.len().saturating_sub(1));
    comm
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
