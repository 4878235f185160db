//! The messages of the eBPF programs, passed on to [`log`].

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use aya::Ebpf;
use aya_log::EbpfLogger;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::CaptureError;

/// Interval at which the listener checks whether it should end.
const IDLE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Starts to listen to the programs of a diagnostic object, until `stop` is set.
///
/// # Errors
/// Returns [`CaptureError::Missing`] if the object's programs have no messages.
pub fn listen(ebpf: &mut Ebpf, stop: Arc<AtomicBool>) -> Result<JoinHandle<()>, CaptureError> {
    let mut logger = EbpfLogger::init(ebpf).map_err(|_| CaptureError::Missing("AYA_LOGS"))?;
    let listen = move || {
        loop {
            let last = stop.load(Ordering::Acquire);
            logger.flush();
            if last {
                return;
            }
            // An interrupted or failed wait only makes the next check early.
            let _ = poll(&mut [PollFd::new(&logger, PollFlags::IN)], Some(&IDLE));
        }
    };
    std::thread::Builder::new()
        .name("diagnostics".into())
        .spawn(listen)
        .map_err(|e| CaptureError::system("starting a thread", e))
}
