//! Processes whose runtimes hand doorbells to the driver's library instead of storing to them.

use super::LINGER_NS;
use crate::event::Event;
use crate::tables::{Fact, Path};
use crate::tally::Map;

/// Largest number of processes kept. There are few of them.
const MAX_PROCESSES: usize = 4096;

/// The processes whose runtimes do so.
#[derive(Debug, Default)]
pub(super) struct Thunks {
    by_pid: Map<u32, Known>,
}

/// Reports about a process. The holder's reports overtake records: the event of a program's end may arrive after the report about
/// the next program.
#[derive(Debug, Default)]
struct Known {
    /// Times of the first and the last report about the current program.
    open: Option<(u64, u64)>,
    /// Start and end of the previous such period. Rows of a program also arrive some time after its end.
    ended: Option<(u64, u64)>,
}

impl Thunks {
    /// Processes an event, which may be such a report, or may end its validity.
    pub(super) fn apply(&mut self, event: &Event<'_>) {
        match event {
            Event::Thunk(origin, Some(true)) => self.begin(origin.pid, origin.time_ns),
            Event::Thunk(origin, Some(false) | None) | Event::Exec(origin, _) | Event::Exit(origin) => {
                if let Some(known) = self.by_pid.get_mut(&origin.pid) {
                    known.end(origin.time_ns);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, pid: u32, time_ns: u64) {
        if self.by_pid.len() >= MAX_PROCESSES {
            self.by_pid.retain(|_, known| !known.is_over(time_ns));
        }
        if self.by_pid.len() < MAX_PROCESSES || self.by_pid.contains_key(&pid) {
            let known = self.by_pid.entry(pid).or_default();
            let (first, last) = known.open.unwrap_or((time_ns, time_ns));
            known.open = Some((first, last.max(time_ns)));
        }
    }

    /// Sets the path of a packet to the thunk, if its process handed doorbells over at that time.
    pub(super) fn set_path(&self, fact: &mut Fact) {
        let (pid, time_ns, path) = match fact {
            Fact::Dispatch(dispatch) => (dispatch.pid, dispatch.time_ns, &mut dispatch.path),
            Fact::Packet(packet) => (packet.pid, packet.time_ns, &mut packet.path),
            _ => return,
        };
        if *path == Path::Doorbell && self.by_pid.get(&pid).is_some_and(|known| known.holds(time_ns)) {
            *path = Path::Thunk;
        }
    }
}

impl Known {
    /// Notes that a program ended, or that its reports are no longer valid. Later reports are about the next program.
    fn end(&mut self, time_ns: u64) {
        if let Some((first, last)) = self.open
            && first <= time_ns
        {
            self.ended = Some((first, time_ns));
            self.open = (last > time_ns).then_some((last, last));
        }
    }

    fn holds(&self, time_ns: u64) -> bool {
        let in_open = self.open.is_some_and(|(first, _)| first <= time_ns);
        in_open || self.ended.is_some_and(|(from, to)| (from..=to).contains(&time_ns))
    }

    fn is_over(&self, now: u64) -> bool {
        let since = self.ended.map_or(0, |(_, to)| to);
        self.open.is_none() && since.saturating_add(LINGER_NS) <= now
    }
}
