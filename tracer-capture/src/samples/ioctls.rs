//! Ioctls of the KFD and of DRM: the trace events of their entry and exit, joined.
//!
//! A trace event has the address of an ioctl's argument, not its bytes. These come beside it, as they were at that moment: with the
//! sample of the thread's stack, because callers pass the address of a local variable, or from probes where the C library calls the
//! kernel. An argument that neither has is unread: a later copy could be of something else.

use std::{collections::HashMap, ffi::CStr};

use tracer_common::{
    kfd::{self, ioc_dir, ioc_size, ioc_type},
    record::IOCTL_ARG_LEN,
};
use tracer_core::event::{Event, Ioctl, Origin};

use super::{
    places::ArgumentOf,
    record::{Argument, Call, half, word},
};
use crate::{CaptureError, probes::tracefs::Format};

/// The events, by their names in the group `syscalls`.
pub const EVENTS: [&str; 2] = ["sys_enter_ioctl", "sys_exit_ioctl"];

/// Bits that the commands of the KFD (type `K`, 0x4b) and of DRM (type `d`, 0x64) have in common, and those of terminals (type `T`,
/// 0x54) do not: ftrace's filters compare single bits of a number.
pub const OURS: &CStr = c"(cmd & 0x4000) && !(cmd & 0x9000)";

/// A thread: its process, and itself.
type Thread = (u32, u32);

/// Offsets in the records.
#[derive(Clone, Copy, Debug)]
struct Layout {
    fd: usize,
    cmd: usize,
    arg: usize,
    ret: usize,
}

/// The bytes of an argument, where the C library calls the kernel.
#[derive(Clone, Copy, Debug)]
struct Passed {
    cmd: u32,
    address: u64,
    bytes: [u8; IOCTL_ARG_LEN],
}

/// An ioctl that is under way.
#[derive(Clone, Copy, Debug)]
struct Entered {
    time_ns: u64,
    fd: i32,
    cmd: u32,
    arg: u64,
    arg_in: Option<[u8; IOCTL_ARG_LEN]>,
    /// Whether the C library that called the kernel has probes: the argument comes once the kernel has returned to it.
    is_probed: bool,
    /// When the kernel returned, and its result. Only the argument is missing.
    returned: Option<(u64, i64)>,
}

impl Entered {
    fn len(&self) -> usize {
        ioc_size(self.cmd).min(IOCTL_ARG_LEN)
    }

    fn is_of(&self, argument: &Argument<'_>) -> bool {
        (self.cmd, self.arg) == (argument.cmd, argument.address)
    }

    /// Returns whether the kernel begins the ioctl again, as it does after a signal (include/linux/errno.h).
    fn is_restarted(&self) -> bool {
        self.returned.is_some_and(|(_, ret)| (-516..=-512).contains(&ret))
    }

    /// Returns the ioctl as an event.
    fn event<'a>(&'a self, (pid, tid): Thread, now_ns: u64, arg_out: Option<&'a [u8; IOCTL_ARG_LEN]>) -> Event<'a> {
        let len = self.len();
        // The kernel could not read there, and so no probe could.
        let is_there = self.returned.is_none_or(|(_, ret)| ret != -i64::from(libc::EFAULT));
        Event::Ioctl(Ioctl {
            origin: Origin {
                time_ns: self.time_ns,
                pid,
                tid,
            },
            exit_ns: self.returned.map_or(now_ns, |(time_ns, _)| time_ns),
            fd: self.fd,
            cmd: self.cmd,
            ret: self.returned.map(|(_, ret)| ret),
            arg_in: self.arg_in.as_ref().filter(|_| is_there).map(|bytes| &bytes[..len]),
            arg_out: arg_out.filter(|_| is_there).map(|bytes| &bytes[..len]),
        })
    }
}

/// The ioctls that are under way.
#[derive(Debug)]
pub struct Ioctls {
    layout: Layout,
    /// Arguments of ioctls that the kernel has not been seen to enter.
    passed: HashMap<Thread, Passed>,
    entered: HashMap<Thread, Entered>,
}

impl Ioctls {
    /// Reads the formats of the events. The calling thread must see tracefs.
    ///
    /// # Errors
    /// Fails if the kernel does not have the events.
    pub fn read() -> Result<Self, CaptureError> {
        let [enter, exit] = EVENTS;
        let format = Format::read("syscalls", enter)?;
        let at = |name| format.require(name, 8).map(|offset| offset as usize);
        let layout = Layout {
            fd: at("fd")?,
            cmd: at("cmd")?,
            arg: at("arg")?,
            ret: Format::read("syscalls", exit)?.require("ret", 8)? as usize,
        };
        Ok(Self::of(layout))
    }

    fn of(layout: Layout) -> Self {
        Self {
            layout,
            passed: HashMap::new(),
            entered: HashMap::new(),
        }
    }

    /// Returns the command of the ioctl that the thread is in.
    #[must_use]
    pub fn entered(&self, thread: Origin) -> Option<u32> {
        self.entered.get(&(thread.pid, thread.tid)).map(|entered| entered.cmd)
    }

    /// Returns the command of an entry, if it is an ioctl of the KFD or of DRM. Its exit is waited for if it `counts`.
    pub fn enter(
        &mut self,
        origin: Origin,
        call: &Call<'_>,
        counts: bool,
        sink: &mut impl FnMut(&Event<'_>),
    ) -> Option<u32> {
        let thread = (origin.pid, origin.tid);
        let mut passed = self.passed.remove(&thread);
        let before = self.entered.get(&thread).copied();
        self.hand_over(thread, origin.time_ns, sink);
        let cmd = word(call.raw, self.layout.cmd)? as u32;
        // Console ioctls also have the KFD's type, but no direction.
        let is_kfd = ioc_type(cmd) == kfd::IOC_TYPE_KFD && ioc_dir(cmd) != 0;
        if !is_kfd && ioc_type(cmd) != kfd::IOC_TYPE_DRM {
            return None;
        }
        let arg = word(call.raw, self.layout.arg)?;
        // The kernel enters again without the library after a signal.
        if let Some(before) = before.filter(Entered::is_restarted)
            && let Some(bytes) = before.arg_in.filter(|_| before.is_probed)
        {
            passed = passed.or(Some(Passed {
                cmd: before.cmd,
                address: before.arg,
                bytes,
            }));
        }
        let passed = passed.filter(|passed| (passed.cmd, passed.address) == (cmd, arg));
        let mut entered = Entered {
            time_ns: origin.time_ns,
            fd: word(call.raw, self.layout.fd)? as i32,
            cmd,
            arg,
            arg_in: None,
            is_probed: passed.is_some(),
            returned: None,
        };
        entered.arg_in = passed
            .map(|passed| passed.bytes)
            .or_else(|| on_the_stack(call, &entered));
        if counts {
            self.entered.insert(thread, entered);
        }
        Some(cmd)
    }

    /// Joins an exit with its entry, and hands over the ioctl, unless its argument is still to come. Returns what it did, if it was
    /// one of the KFD's and succeeded.
    pub fn exit(&mut self, origin: Origin, call: &Call<'_>, sink: &mut impl FnMut(&Event<'_>)) -> Option<Done> {
        let thread = (origin.pid, origin.tid);
        if self.entered.get(&thread)?.returned.is_some() {
            // This is the exit of another ioctl, whose entry the filter dropped, or that was lost.
            self.hand_over(thread, origin.time_ns, sink);
        }
        let mut entered = self.entered.remove(&thread)?;
        let ret = word(call.raw, self.layout.ret)?.cast_signed();
        entered.returned = Some((origin.time_ns, ret));
        if entered.is_probed {
            self.entered.insert(thread, entered);
        } else {
            let arg_out = on_the_stack(call, &entered);
            sink(&entered.event(thread, origin.time_ns, arg_out.as_ref()));
        }
        Some(Done {
            cmd: entered.cmd,
            arg_in: entered.arg_in,
        })
        .filter(|_| ret == 0 && ioc_type(entered.cmd) == kfd::IOC_TYPE_KFD)
    }

    /// Notes the argument of an ioctl, where the C library calls the kernel, and hands over the ioctl if it is complete.
    pub fn argument(
        &mut self,
        origin: Origin,
        of: ArgumentOf,
        argument: &Argument<'_>,
        sink: &mut impl FnMut(&Event<'_>),
    ) {
        let thread = (origin.pid, origin.tid);
        match of {
            ArgumentOf::Entry => {
                let passed = Passed {
                    cmd: argument.cmd,
                    address: argument.address,
                    bytes: *argument.bytes,
                };
                self.passed.insert(thread, passed);
            }
            ArgumentOf::Exit => {
                let is_it = |entered: &Entered| entered.returned.is_some() && entered.is_of(argument);
                if let Some(entered) = self.entered.get(&thread).filter(|entered| is_it(entered)) {
                    sink(&entered.event(thread, origin.time_ns, Some(argument.bytes)));
                    self.entered.remove(&thread);
                }
            }
        }
    }

    /// Hands over the ioctl of a thread that exits inside it.
    pub fn thread_exits(&mut self, origin: Origin, sink: &mut impl FnMut(&Event<'_>)) {
        let thread = (origin.pid, origin.tid);
        self.passed.remove(&thread);
        self.hand_over(thread, origin.time_ns, sink);
    }

    /// Hands over the ioctl of a thread as it is.
    fn hand_over(&mut self, thread: Thread, now_ns: u64, sink: &mut impl FnMut(&Event<'_>)) {
        if let Some(entered) = self.entered.remove(&thread) {
            sink(&entered.event(thread, now_ns, None));
        }
    }

    /// Hands over the ioctls that are under way, as calls without a result.
    pub fn report_open(&self, time_ns: u64, sink: &mut impl FnMut(&Event<'_>)) {
        for (&thread, entered) in &self.entered {
            sink(&entered.event(thread, time_ns, None));
        }
    }
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
fn on_the_stack(call: &Call<'_>, entered: &Entered) -> Option<[u8; IOCTL_ARG_LEN]> {
    let len = entered.len();
    let mut bytes = [0; IOCTL_ARG_LEN];
    if len > 0 {
        bytes[..len].copy_from_slice(call.memory(entered.arg, len)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout {
        fd: 0,
        cmd: 8,
        arg: 16,
        ret: 0,
    };
    /// A command of the KFD with an argument of 8 bytes.
    const CMD: u32 = 0x8008_4b01;

    fn at(time_ns: u64) -> Origin {
        Origin {
            time_ns,
            pid: 1,
            tid: 2,
        }
    }

    fn raw(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn call(raw: &[u8]) -> Call<'_> {
        Call {
            raw,
            stack_pointer: 0,
            stack: &[],
        }
    }

    /// Lists what comes of these steps: result, argument before and after.
    fn run(steps: impl FnOnce(&mut Ioctls, &mut dyn FnMut(&Event<'_>))) -> Vec<(Option<i64>, Option<u8>, Option<u8>)> {
        let mut found = Vec::new();
        let mut sink = |event: &Event<'_>| {
            let Event::Ioctl(ioctl) = event else { panic!("an ioctl") };
            let first = |bytes: Option<&[u8]>| bytes.map(|bytes| bytes[0]);
            found.push((ioctl.ret, first(ioctl.arg_in), first(ioctl.arg_out)));
        };
        let mut ioctls = Ioctls::of(LAYOUT);
        steps(&mut ioctls, &mut sink);
        ioctls.report_open(99, &mut sink);
        found
    }

    fn argument(bytes: &[u8; IOCTL_ARG_LEN]) -> Argument<'_> {
        Argument {
            cmd: CMD,
            address: 0x7000,
            bytes,
        }
    }

    #[test]
    fn an_argument_from_the_library_completes_its_ioctl() {
        let (before, after) = ([5; IOCTL_ARG_LEN], [6; IOCTL_ARG_LEN]);
        let enter = raw(&[3, CMD.into(), 0x7000]);
        let found = run(|ioctls, mut sink| {
            ioctls.argument(at(1), ArgumentOf::Entry, &argument(&before), &mut sink);
            assert_eq!(ioctls.enter(at(2), &call(&enter), true, &mut sink), Some(CMD));
            assert!(ioctls.exit(at(3), &call(&raw(&[0])), &mut sink).is_some());
            ioctls.argument(at(4), ArgumentOf::Exit, &argument(&after), &mut sink);
        });
        assert_eq!(found, [(Some(0), Some(5), Some(6))]);
    }

    #[test]
    fn an_argument_that_is_not_seen_is_unread() {
        let (before, other) = ([5; IOCTL_ARG_LEN], [6; IOCTL_ARG_LEN]);
        let enter = raw(&[3, CMD.into(), 0x7000]);
        let found = run(|ioctls, mut sink| {
            // No library has probes.
            ioctls.enter(at(2), &call(&enter), true, &mut sink);
            ioctls.exit(at(3), &call(&raw(&[0])), &mut sink);
            // The record after the kernel's return was lost: the next call shows it.
            ioctls.argument(at(4), ArgumentOf::Entry, &argument(&before), &mut sink);
            ioctls.enter(at(5), &call(&enter), true, &mut sink);
            ioctls.exit(at(6), &call(&raw(&[7])), &mut sink);
            ioctls.enter(at(7), &call(&enter), true, &mut sink);
            // It never returns, and the argument of another call is not its own.
            let elsewhere = Argument {
                address: 0x8000,
                ..argument(&other)
            };
            ioctls.argument(at(8), ArgumentOf::Exit, &elsewhere, &mut sink);
        });
        assert_eq!(
            found,
            [(Some(0), None, None), (Some(7), Some(5), None), (None, None, None)]
        );
    }
}
