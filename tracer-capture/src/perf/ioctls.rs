//! Ioctls of the KFD and of DRM: the trace events of their entry and exit, joined.
//!
//! The argument of an ioctl comes with the sample of the thread's stack: callers pass the address of a local variable. So it is what
//! the argument was at that moment. An argument that is elsewhere is unread: a later copy could be of something else.

use std::{collections::HashMap, ffi::CStr, os::fd::OwnedFd};

use tracer_common::{
    kfd::{self, ioc_dir, ioc_size, ioc_type},
    record::IOCTL_ARG_LEN,
};
use tracer_core::event::{Event, Ioctl, Origin};

use super::{
    event,
    probes::{Probes, Program},
    record::{Call, half, word},
};
use crate::{
    CaptureError,
    probes::tracefs::{self, Format},
};

/// The events, by their names in the group `syscalls`.
pub const EVENTS: [&str; 2] = ["sys_enter_ioctl", "sys_exit_ioctl"];

/// Bits that the commands of the KFD (type `K`, 0x4b) and of DRM (type `d`, 0x64) have in common, and those of terminals (type `T`,
/// 0x54) do not: ftrace's filters compare single bits of a number.
const OURS: &CStr = c"(cmd & 0x4000) && !(cmd & 0x9000)";

/// Offsets in the records.
#[derive(Clone, Copy, Debug)]
struct Layout {
    fd: usize,
    cmd: usize,
    arg: usize,
    ret: usize,
}

/// An ioctl that is under way.
#[derive(Clone, Copy, Debug)]
struct Entered {
    time_ns: u64,
    fd: i32,
    cmd: u32,
    arg: u64,
    arg_in: Option<[u8; IOCTL_ARG_LEN]>,
}

impl Entered {
    fn len(&self) -> usize {
        ioc_size(self.cmd).min(IOCTL_ARG_LEN)
    }
}

/// The events, and the ioctls that are under way.
#[derive(Debug)]
pub struct Ioctls {
    layout: Layout,
    entered: HashMap<(u32, u32), Entered>,
    _events: Vec<OwnedFd>,
}

impl Ioctls {
    /// Opens the events. The calling thread must see tracefs.
    ///
    /// # Errors
    /// Fails if the kernel does not have the events, or refuses them.
    pub fn open(probes: &Probes) -> Result<Self, CaptureError> {
        let [enter, exit] = EVENTS;
        let format = Format::read("syscalls", enter)?;
        let at = |name| format.require(name, 8).map(|offset| offset as usize);
        let layout = Layout {
            fd: at("fd")?,
            cmd: at("cmd")?,
            arg: at("arg")?,
            ret: Format::read("syscalls", exit)?.require("ret", 8)? as usize,
        };
        let mut events = Vec::new();
        for (name, program) in EVENTS.into_iter().zip([Program::IoctlEnter, Program::IoctlExit]) {
            let attributes = event::trace_event(tracefs::number("syscalls", name)?);
            let opened = probes.trace_event(&attributes, program);
            let opened = opened.map_err(|error| CaptureError::system("opening a perf event of system calls", error))?;
            if name == enter {
                // Without the filter more records come, and none is missing.
                opened.iter().for_each(|event| drop(event::filter(event, OURS)));
            }
            events.extend(opened);
        }
        Ok(Self {
            layout,
            entered: HashMap::new(),
            _events: events,
        })
    }

    /// Returns the command of the ioctl that the thread is in.
    #[must_use]
    pub fn entered(&self, thread: Origin) -> Option<u32> {
        self.entered.get(&(thread.pid, thread.tid)).map(|entered| entered.cmd)
    }

    /// Returns the command of an entry, if it is an ioctl of the KFD or of DRM. Its exit is waited for if it `counts`.
    pub fn enter(&mut self, origin: Origin, body: &[u8], counts: bool) -> Option<u32> {
        let call = Call::parse(body)?;
        let cmd = word(call.raw, self.layout.cmd)? as u32;
        // Console ioctls also have the KFD's type, but no direction.
        let is_kfd = ioc_type(cmd) == kfd::IOC_TYPE_KFD && ioc_dir(cmd) != 0;
        if !is_kfd && ioc_type(cmd) != kfd::IOC_TYPE_DRM {
            return None;
        }
        let mut entered = Entered {
            time_ns: origin.time_ns,
            fd: word(call.raw, self.layout.fd)? as i32,
            cmd,
            arg: word(call.raw, self.layout.arg)?,
            arg_in: None,
        };
        entered.arg_in = argument(&call, &entered);
        if counts {
            self.entered.insert((origin.pid, origin.tid), entered);
        }
        Some(cmd)
    }

    /// Joins an exit with its entry, and hands over the ioctl. Returns what it did, if it was one of the KFD's and succeeded.
    pub fn exit(&mut self, origin: Origin, body: &[u8], sink: &mut impl FnMut(&Event<'_>)) -> Option<Done> {
        let entered = self.entered.remove(&(origin.pid, origin.tid))?;
        let call = Call::parse(body)?;
        let ret = word(call.raw, self.layout.ret)?.cast_signed();
        let arg_out = argument(&call, &entered);
        let len = entered.len();
        sink(&Event::Ioctl(Ioctl {
            origin: Origin {
                time_ns: entered.time_ns,
                ..origin
            },
            exit_ns: origin.time_ns,
            fd: entered.fd,
            cmd: entered.cmd,
            ret: Some(ret),
            arg_in: entered.arg_in.as_ref().map(|bytes| &bytes[..len]),
            arg_out: arg_out.as_ref().map(|bytes| &bytes[..len]),
        }));
        Some(Done {
            cmd: entered.cmd,
            arg_in: entered.arg_in,
        })
        .filter(|_| ret == 0 && ioc_type(entered.cmd) == kfd::IOC_TYPE_KFD)
    }

    /// Hands over the ioctl of a thread that exits inside it.
    pub fn thread_exits(&mut self, origin: Origin, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(entered) = self.entered.remove(&(origin.pid, origin.tid)) {
            sink(&never_returned(origin, origin.time_ns, &entered));
        }
    }

    /// Hands over the ioctls that are under way, as calls without a result.
    pub fn report_open(&self, time_ns: u64, sink: &mut impl FnMut(&Event<'_>)) {
        for (&(pid, tid), entered) in &self.entered {
            sink(&never_returned(Origin { time_ns, pid, tid }, time_ns, entered));
        }
    }
}

fn never_returned(origin: Origin, exit_ns: u64, entered: &Entered) -> Event<'_> {
    let len = entered.len();
    Event::Ioctl(Ioctl {
        origin: Origin {
            time_ns: entered.time_ns,
            ..origin
        },
        exit_ns,
        fd: entered.fd,
        cmd: entered.cmd,
        ret: None,
        arg_in: entered.arg_in.as_ref().map(|bytes| &bytes[..len]),
        arg_out: None,
    })
}

/// A KFD ioctl that succeeded.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Its command.
    pub cmd: u32,
    arg_in: Option<[u8; IOCTL_ARG_LEN]>,
}

impl Done {
    /// Returns the address of the write index of the AQL queue that the ioctl created; `None` if it created none, or if its
    /// argument is unread.
    #[must_use]
    pub fn created(&self) -> Option<u64> {
        use kfd::{QueueType, create_queue};
        let creates = kfd::ioc_nr(self.cmd) == kfd::NR_CREATE_QUEUE && ioc_size(self.cmd) >= create_queue::MIN_LEN;
        let arg = self.arg_in.as_ref().filter(|_| creates)?;
        let kind = QueueType::from_raw(half(arg, create_queue::QUEUE_TYPE)?);
        (!kind.is_sdma()).then(|| word(arg, create_queue::WRITE_POINTER))?
    }
}

/// Returns the argument, if it is in the sample of the stack.
fn argument(call: &Call<'_>, entered: &Entered) -> Option<[u8; IOCTL_ARG_LEN]> {
    let len = entered.len();
    let mut bytes = [0; IOCTL_ARG_LEN];
    if len > 0 {
        bytes[..len].copy_from_slice(call.memory(entered.arg, len)?);
    }
    Some(bytes)
}
