//! The calls that each thread is in: API calls, with other calls and ioctls inside them.

use std::collections::HashMap;

use crate::tables::{ApiCall, Dispatch, Ioctl};

/// Number of calls that a thread can be in at a time. Calls that never returned are forgotten first.
const MAX_DEPTH: usize = 64;

/// A thread: process and thread id.
type Thread = (u32, u32);

/// The calls of each thread, the outermost first.
#[derive(Debug, Default)]
pub(super) struct Threads {
    threads: HashMap<Thread, Vec<Open>>,
}

/// A call that a thread is in.
#[derive(Debug)]
struct Open {
    call: u64,
    parent: Option<u64>,
    function: Option<usize>,
    /// Its row among nested calls.
    node: Option<usize>,
    enter_ns: u64,
    exit_ns: Option<u64>,
    /// Time in calls and ioctls directly inside it.
    inside_ns: u64,
}

/// A call that ended, or whose end was not seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// Its function, as numbered by the counter of calls; `None` if it is beyond that counter's limit.
    pub(super) function: Option<usize>,
    /// Its row among nested calls; `None` if it is beyond that counter's limit.
    pub(super) node: Option<usize>,
    /// Time in the call; `None` if it did not return.
    pub(super) ns: Option<u64>,
    /// The part of it in calls and ioctls inside.
    pub(super) inside_ns: u64,
}

/// The calls around an ioctl.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around {
    /// The innermost call's row among nested calls.
    pub(super) node: Option<usize>,
    /// Whether one of them fulfils the condition.
    pub(super) is_wanted: bool,
}

impl Threads {
    /// Returns the row among nested calls of the call that is around another.
    pub(super) fn around(&self, call: &ApiCall) -> Option<usize> {
        let (calls, parent) = self.threads.get(&(call.pid, call.tid)).zip(call.parent)?;
        calls.iter().rfind(|open| open.call == parent)?.node
    }

    /// Takes a call with its function and its row among nested calls. Reports the calls of its thread that ended before.
    pub(super) fn enter(
        &mut self,
        call: &ApiCall,
        function: Option<usize>,
        node: Option<usize>,
        done: &mut impl FnMut(Done),
    ) {
        let calls = self.threads.entry((call.pid, call.tid)).or_default();
        leave(calls, call.enter_ns, done);
        if let (Some(parent), Some(exit_ns)) = (call.parent, call.exit_ns)
            && let Some(around) = calls.iter_mut().rfind(|open| open.call == parent)
        {
            around.inside_ns = around.inside_ns.saturating_add(exit_ns.saturating_sub(call.enter_ns));
        }
        if calls.len() >= MAX_DEPTH {
            done(calls.remove(0).done());
        }
        calls.push(Open {
            call: call.call,
            parent: call.parent,
            function,
            node,
            enter_ns: call.enter_ns,
            exit_ns: call.exit_ns,
            inside_ns: 0,
        });
    }

    /// Takes an ioctl. Returns the calls around it, and whether one of them fulfils the condition.
    pub(super) fn ioctl(&mut self, ioctl: &Ioctl, is_wanted: impl Fn(usize) -> bool) -> Around {
        let calls = self.threads.get_mut(&(ioctl.pid, ioctl.tid));
        let is_around = |open: &&mut Open| open.exit_ns.is_some_and(|exit| ioctl.enter_ns < exit);
        let Some((calls, (call, node))) = calls.and_then(|calls| {
            let around = calls.iter_mut().rfind(is_around)?;
            around.inside_ns = around.inside_ns.saturating_add(ioctl.duration_ns().unwrap_or(0));
            let found = (around.call, around.node);
            Some((calls, found))
        }) else {
            return Around::default();
        };
        let mut functions = chain(calls, Some(call)).filter_map(|open| open.function);
        Around {
            node,
            is_wanted: functions.any(is_wanted),
        }
    }

    /// Returns the time from the entry of the outermost call around a dispatch's doorbell; `None` if no call is known.
    pub(super) fn launch_ns(&self, dispatch: &Dispatch) -> Option<u64> {
        let calls = self.threads.get(&(dispatch.pid, dispatch.tid))?;
        let outermost = chain(calls, dispatch.api_call).last()?;
        dispatch.time_ns.checked_sub(outermost.enter_ns)
    }

    /// Reports every call that was not reported.
    pub(super) fn finish(&mut self, done: &mut impl FnMut(Done)) {
        let calls = self.threads.drain().flat_map(|(_, calls)| calls);
        calls.for_each(|open| done(open.done()));
    }
}

/// Reports and removes the calls that ended until then.
fn leave(calls: &mut Vec<Open>, now_ns: u64, done: &mut impl FnMut(Done)) {
    calls.retain(|open| {
        let is_over = open.exit_ns.is_some_and(|exit| exit <= now_ns);
        if is_over {
            done(open.done());
        }
        !is_over
    });
}

/// Returns a call and those around it, outwards.
fn chain(calls: &[Open], call: Option<u64>) -> impl Iterator<Item = &Open> {
    let find = move |call: Option<u64>| calls.iter().rfind(|open| Some(open.call) == call);
    // A call is around another only if it is another: a damaged trace may say otherwise.
    let around = move |open: &&Open| find(open.parent.filter(|&parent| parent < open.call));
    std::iter::successors(find(call), around)
}

impl Open {
    fn done(&self) -> Done {
        Done {
            function: self.function,
            node: self.node,
            ns: self.exit_ns.map(|exit| exit.saturating_sub(self.enter_ns)),
            inside_ns: self.inside_ns,
        }
    }
}
