//! Ioctls: an event at the entry and one at the exit, each with sixteen words of the argument.

use std::collections::HashMap;

use tracer_common::kfd::{self, QueueType, create_queue};
use tracer_common::record::IOCTL_ARG_LEN;
use tracer_core::event::{Event, Ioctl, Origin};

use super::{fields, number, numbers, origin};
use crate::event_line::EventLine;

/// Most threads that are inside an ioctl at once.
const MAX_OPEN: usize = 1 << 16;
/// Words of an argument.
const WORDS: usize = IOCTL_ARG_LEN / 8;

/// An argument, and how many of its bytes could be read.
#[derive(Clone, Copy, Debug)]
struct Argument {
    bytes: [u8; IOCTL_ARG_LEN],
    len: usize,
}

impl Argument {
    /// Parses the words up to the first one that is missing.
    fn of(body: &str) -> Self {
        let mut words = [None; WORDS];
        for (name, value) in fields(body) {
            let at = name.strip_prefix('w').and_then(|at| at.parse::<usize>().ok());
            if let Some(word) = at.and_then(|at| words.get_mut(at)) {
                *word = number(value);
            }
        }
        let mut read = Self {
            bytes: [0; IOCTL_ARG_LEN],
            len: 0,
        };
        for word in words.iter().map_while(|word| *word) {
            read.bytes[read.len..read.len + 8].copy_from_slice(&word.to_le_bytes());
            read.len += 8;
        }
        read
    }

    /// Returns the argument of a command, if all of it is there.
    fn for_command(&self, cmd: u32) -> Option<&[u8]> {
        let len = kfd::ioc_size(cmd).min(IOCTL_ARG_LEN);
        self.bytes[..self.len].get(..len)
    }
}

/// An ioctl that a thread is in.
#[derive(Clone, Copy, Debug)]
struct Entered {
    origin: Origin,
    fd: i32,
    cmd: u32,
    address: u64,
    argument: Argument,
}

impl Entered {
    /// Returns the address of the write index of the AQL queue that it creates, if it creates one.
    fn created(&self) -> Option<u64> {
        let is_create = kfd::ioc_type(self.cmd) == kfd::IOC_TYPE_KFD && kfd::ioc_nr(self.cmd) == kfd::NR_CREATE_QUEUE;
        let bytes = self.argument.for_command(self.cmd).filter(|_| is_create)?;
        let half = bytes.get(create_queue::QUEUE_TYPE..)?.first_chunk()?;
        let word = bytes.get(create_queue::WRITE_POINTER..)?.first_chunk()?;
        let kind = QueueType::from_raw(u32::from_le_bytes(*half));
        (!kind.is_sdma()).then(|| u64::from_le_bytes(*word))
    }

    fn event<'a>(&'a self, exit_ns: u64, ret: Option<i64>, after: Option<&'a Argument>) -> Event<'a> {
        Event::Ioctl(Ioctl {
            origin: self.origin,
            exit_ns,
            fd: self.fd,
            cmd: self.cmd,
            ret,
            arg_in: self.argument.for_command(self.cmd),
            arg_out: after.and_then(|after| after.for_command(self.cmd)),
        })
    }
}

/// The ioctls that are under way, by thread.
#[derive(Debug, Default)]
pub struct Ioctls {
    open: HashMap<u32, Entered>,
    /// Ioctls whose entry is not in the text.
    pub missing: u64,
}

impl Ioctls {
    /// Takes an entry.
    ///
    /// # Errors
    /// Says what the line lacks.
    pub fn enter(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Result<(), String> {
        let [fd, cmd, address] = numbers(line.body, ["fd", "cmd", "arg"]);
        let cmd = u32::try_from(cmd.ok_or("it has no command")?).map_err(|_| "its command is too large")?;
        let is_kfd = kfd::ioc_type(cmd) == kfd::IOC_TYPE_KFD && kfd::ioc_dir(cmd) != 0;
        if !is_kfd && kfd::ioc_type(cmd) != kfd::IOC_TYPE_DRM {
            // The filter of the script compares single bits.
            return Ok(());
        }
        let entered = Entered {
            origin: origin(line)?,
            fd: fd.ok_or("it has no descriptor")? as u32 as i32,
            cmd,
            address: address.ok_or("it has no address of an argument")?,
            argument: Argument::of(line.body),
        };
        if self.open.len() >= MAX_OPEN && !self.open.contains_key(&line.tid) {
            return Err("too many threads are inside ioctls".to_owned());
        }
        if let Some(before) = self.open.insert(line.tid, entered) {
            // Its exit is missing.
            self.missing += 1;
            out(&before.event(line.time_ns, None, None));
        }
        Ok(())
    }

    /// Takes an exit. Returns the address of the write index of the AQL queue that the ioctl created, if it created one.
    ///
    /// # Errors
    /// Says what the line lacks.
    pub fn exit(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Result<Option<u64>, String> {
        let [cmd, address] = numbers(line.body, ["cmd", "arg"]);
        let ret = fields(line.body).find(|(name, _)| *name == "ret");
        let ret: i64 = ret.and_then(|(_, ret)| ret.parse().ok()).ok_or("it has no result")?;
        let is_it = |entered: &Entered| {
            let same = (Some(u64::from(entered.cmd)), Some(entered.address)) == (cmd, address);
            same && line.pid.is_none_or(|pid| pid == entered.origin.pid)
        };
        match self.open.remove(&line.tid) {
            Some(entered) if is_it(&entered) => {
                out(&entered.event(line.time_ns, Some(ret), Some(&Argument::of(line.body))));
                return Ok(entered.created().filter(|_| ret == 0));
            }
            other => {
                let cmd = cmd.unwrap_or_default() as u32;
                let is_ours = [kfd::IOC_TYPE_KFD, kfd::IOC_TYPE_DRM].contains(&kfd::ioc_type(cmd));
                self.missing += u64::from(is_ours);
                if let Some(entered) = other {
                    self.missing += 1;
                    out(&entered.event(line.time_ns, None, None));
                }
            }
        }
        Ok(None)
    }

    /// Returns whether a thread is about to destroy a queue.
    pub fn destroys_queue(&self, tid: u32) -> bool {
        let destroys = |entered: &Entered| {
            kfd::ioc_type(entered.cmd) == kfd::IOC_TYPE_KFD && kfd::ioc_nr(entered.cmd) == kfd::NR_DESTROY_QUEUE
        };
        self.open.get(&tid).is_some_and(destroys)
    }

    /// Passes on the ioctls that did not end, as calls without a result.
    pub fn finish(&mut self, now_ns: u64, out: &mut impl FnMut(&Event<'_>)) {
        let mut open: Vec<Entered> = self.open.drain().map(|(_, entered)| entered).collect();
        open.sort_by_key(|entered| (entered.origin.time_ns, entered.origin.tid));
        for entered in open {
            out(&entered.event(now_ns.max(entered.origin.time_ns), None, None));
        }
    }
}
