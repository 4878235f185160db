//! Calls that are still open when a recording ends: ioctls, and calls of API functions. The programs keep a call in a map
//! until it returns, and write a record only then.

use std::path::PathBuf;

use aya::{
    Pod,
    maps::{HashMap, Map, MapData, MapError},
};
use tracer_common::{
    api::{Cookie, FUNCTIONS},
    open::{OpenCall, OpenIoctl, ThreadCalls},
    record::ioctl_flags,
};
use tracer_core::{
    event::{Event, Ioctl, Origin},
    tables::ApiCall,
};

use crate::{decode::api, probes::Plain};

// SAFETY: `repr(C)`, integers and byte arrays without padding that any code reads: any bytes are a valid value.
unsafe impl Pod for Plain<OpenIoctl> {}
// SAFETY: as above.
unsafe impl Pod for Plain<ThreadCalls> {}

/// The maps that contain the open calls.
pub struct OpenCalls {
    ioctls: HashMap<MapData, u64, Plain<OpenIoctl>>,
    /// `None` if API calls are not recorded one by one.
    threads: Option<HashMap<MapData, u64, Plain<ThreadCalls>>>,
}

impl OpenCalls {
    /// Reads these maps. `calls`: whether calls of API functions are recorded one by one.
    pub(crate) fn new(ioctls: Map, threads: Map, calls: bool) -> Result<Self, MapError> {
        let threads = HashMap::try_from(threads)?;
        Ok(Self {
            ioctls: HashMap::try_from(ioctls)?,
            threads: calls.then_some(threads),
        })
    }

    /// Hands over the open calls, as calls without a result. No process may be traced any more: a system call for a map keeps the
    /// kernel from running programs, and programs would change the maps.
    pub(crate) fn report(&self, time_ns: u64, sink: &mut impl FnMut(&Event<'_>)) {
        for (key, Plain(ioctl)) in self.ioctls.iter().flatten() {
            if let Some(origin) = origin(key, ioctl.time_ns) {
                open_ioctl(origin, &ioctl, time_ns, sink);
            }
        }
        for (key, Plain(thread)) in self.threads.iter().flat_map(HashMap::iter).flatten() {
            let depth = (thread.depth as usize).min(thread.frames.len());
            // The innermost call comes first, because calls return in that order.
            for frame in thread.frames[..depth].iter().rev() {
                if let Some(origin) = origin(key, frame.enter_ns) {
                    open_call(origin, frame, sink);
                }
            }
        }
    }
}

/// Returns the thread that is in the call; `None` for a thread that exited: its exit was missed, and counted as a loss.
fn origin(key: u64, time_ns: u64) -> Option<Origin> {
    let (pid, tid) = ((key >> 32) as u32, key as u32);
    let task = PathBuf::from(format!("/proc/{pid}/task/{tid}"));
    task.exists().then_some(Origin { time_ns, pid, tid })
}

fn open_ioctl(origin: Origin, ioctl: &OpenIoctl, time_ns: u64, sink: &mut impl FnMut(&Event<'_>)) {
    let len = (ioctl.len as usize).min(ioctl.arg_in.len());
    let readable = ioctl.flags & u32::from(ioctl_flags::IN_UNREADABLE) == 0;
    sink(&Event::Ioctl(Ioctl {
        origin,
        exit_ns: time_ns,
        fd: ioctl.fd,
        cmd: ioctl.cmd,
        ret: None,
        arg_in: readable.then_some(&ioctl.arg_in[..len]),
        arg_out: None,
    }));
}

fn open_call(origin: Origin, frame: &OpenCall, sink: &mut impl FnMut(&Event<'_>)) {
    let cookie = Cookie(frame.cookie);
    let Some(function) = FUNCTIONS.get(cookie.function() as usize) else {
        return;
    };
    // The counters have it.
    if cookie.counted() {
        return;
    }
    sink(&Event::ApiCall(&ApiCall {
        parent: (frame.outer != 0).then_some(frame.outer),
        stream: api::stream(frame.stream),
        bytes: (cookie.bytes() != 0).then_some(frame.bytes),
        // An object that a call creates exists only when the call returns.
        object: (cookie.object() != 0 && !cookie.makes()).then_some(frame.object),
        ..api::begun(origin, frame.call, function)
    }));
}
