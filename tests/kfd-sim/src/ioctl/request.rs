//! A pending ioctl: its bytes, its caller, and the way to answer it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use fuser::ReplyIoctl;
use serde_json::json;

use super::abi::{self, Abi};
use super::{Errno, IoctlResult};
use crate::clock::monotonic_ns;
use crate::truth::{Truth, hex};
use crate::vm::{AddressSpace, Fault};

/// The device file of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// /dev/kfd
    Kfd,
    /// /dev/dri/renderD(128 + index)
    Render(usize),
    /// A dmabuf.
    Dmabuf(u64),
}

impl Node {
    fn name(self) -> String {
        match self {
            Self::Kfd => "kfd".into(),
            Self::Render(index) => format!("renderD{}", crate::topology::FIRST_RENDER_MINOR as usize + index),
            Self::Dmabuf(id) => crate::dmabuf::file_name(id),
        }
    }
}

/// An ioctl that is not answered yet. It must be finished, because the caller waits for it.
pub struct PendingIoctl {
    /// The device file.
    pub node: Node,
    /// The command word.
    pub cmd: u32,
    /// Thread-group id of the caller.
    pub pid: i32,
    /// Thread id of the caller.
    pub tid: i32,
    /// The caller's memory.
    pub space: Arc<AddressSpace>,
    bytes_in: Vec<u8>,
    out_size: usize,
    enter_ns: u64,
    truth: Arc<Truth>,
    reply: ReplyIoctl,
}

/// The parts of a call that FUSE reports.
pub struct Call {
    /// The device file.
    pub node: Node,
    /// The command word.
    pub cmd: u32,
    /// Thread-group id of the caller.
    pub pid: i32,
    /// Thread id of the caller.
    pub tid: i32,
    /// The argument bytes, if the command's direction includes them.
    pub bytes: Vec<u8>,
    /// Bytes to copy back.
    pub out_size: usize,
}

impl PendingIoctl {
    /// Takes the call. The clock for its log entry starts here.
    pub fn new(call: Call, space: Arc<AddressSpace>, truth: Arc<Truth>, reply: ReplyIoctl) -> Self {
        let Call {
            node,
            cmd,
            pid,
            tid,
            bytes,
            out_size,
        } = call;
        Self {
            node,
            cmd,
            pid,
            tid,
            space,
            bytes_in: bytes,
            out_size,
            enter_ns: monotonic_ns(),
            truth,
            reply,
        }
    }

    /// Returns the argument bytes, padded with zeros for callers whose struct is older and shorter.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.bytes_in.clone();
        bytes.resize(bytes.len().max(self.out_size).max(128), 0);
        bytes
    }

    /// Writes to the caller's memory, for arguments behind pointers.
    pub fn write_client(&self, va: u64, bytes: &[u8]) -> Result<(), Fault> {
        self.space.write(va, bytes)
    }

    /// Returns whether the calling thread has a signal to handle (or is being killed). A blocking call must return then.
    ///
    /// FUSE reports this by an INTERRUPT request, which the fuser crate does not pass on.
    pub fn is_interrupted(&self) -> bool {
        let Ok(status) = fs::read_to_string(format!("/proc/{}/task/{}/status", self.pid, self.tid)) else {
            return true;
        };
        let mask = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(line.trim(), 16).ok()
        };
        let pending = mask("SigPnd:").unwrap_or(0) | mask("ShdPnd:").unwrap_or(0);
        pending & !mask("SigBlk:").unwrap_or(0) != 0
    }

    /// Answers with the argument struct.
    pub fn finish_with<A: Abi>(self, result: IoctlResult, args: &A) {
        let mut bytes = self.bytes();
        args.store(&mut bytes);
        self.finish(result, &bytes);
    }

    /// Answers with argument bytes.
    pub fn finish(self, result: IoctlResult, bytes: &[u8]) {
        let out = bytes.get(..self.out_size).unwrap_or(bytes);
        let ret = result.map_or_else(|Errno(errno)| -errno, |()| 0);
        let (nr, ..) = abi::decode_cmd(self.cmd);
        log::debug!("{} {} {:#04x} -> {result:?}", self.pid, self.node.name(), nr);
        let exit_ns = monotonic_ns();
        self.truth.counts.ioctls.fetch_add(1, Ordering::Relaxed);
        self.truth.line(|| {
            let name = if self.node == Node::Kfd {
                abi::kfd_name(nr)
            } else {
                abi::drm_name(nr)
            };
            json!({
                "ev": "ioctl", "pid": self.pid, "tid": self.tid, "dev": self.node.name(), "cmd": self.cmd, "nr": nr,
                "name": name, "arg_in": hex(&self.bytes_in), "arg_out": hex(out), "ret": ret,
                "enter_ns": self.enter_ns, "exit_ns": exit_ns,
            })
        });
        // The result goes into the ioctl's own field, not into FUSE's error, so that the bytes are copied back on failure too.
        self.reply.ioctl(ret, out);
    }
}
