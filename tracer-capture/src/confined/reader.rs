//! The reader: copies bytes of files and memory, whatever they are.
//!
//! It takes no decision on what it copies. It sends every answer after it has closed what it opened for that answer: a file system
//! can delay a close, too (FUSE asks its server at each close), and the next request must not wait for it.

mod file;
mod memory;

use std::{
    fs,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use super::{
    channel::{Channel, MAX_INLINE, Message},
    request::{Body, MAX_PROC, MAX_THREADS, ProcFile, Reply, Request},
    sealed,
};
use tracer_core::words::Named;

/// A reply that is ready to be sent, and the descriptors beside it.
type Answer = (Reply, Vec<OwnedFd>);

/// Answers requests until the recorder has no more.
pub fn serve(channel: &Channel) {
    while let Ok(mut message) = channel.receive() {
        let Ok(request) = message.value::<Request>() else {
            return;
        };
        let (reply, descriptors) = answer(&request, &mut message)
            .unwrap_or_else(|error| (Reply::Failed(error.raw_os_error().unwrap_or(libc::EIO)), Vec::new()));
        drop(message);
        let descriptors: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        if channel.send(&reply, &descriptors).is_err() {
            return;
        }
    }
}

fn answer(request: &Request, message: &mut Message) -> io::Result<Answer> {
    match request {
        Request::Mapped {
            pid,
            start,
            end,
            device,
            inode,
            path,
            want,
        } => file::mapped(*pid, (*start, *end), (device, *inode), path, want),
        Request::Changes { pid, mappings } => file::changes(*pid, mappings),
        Request::InRoot { pid, path, want } => file::in_root(*pid, path, want),
        Request::Own { path, want } => file::own(path, want),
        Request::Again { want } => {
            let file = message.descriptors.pop().ok_or(io::ErrorKind::InvalidInput)?;
            file::again(file, want)
        }
        Request::Memory { pid, pieces } => memory::read(*pid, pieces),
        Request::Proc { pid, file } => bytes(proc_file(*pid, *file)?),
        Request::Calls { pid } => calls(*pid),
        Request::List { pid, path } => bytes(file::names(*pid, path)?),
        Request::Root { pid } => {
            let link = rustix::fs::readlink(format!("/proc/{pid}/root"), Vec::new())?;
            bytes(link.into_bytes())
        }
    }
}

fn bytes(bytes: Vec<u8>) -> io::Result<Answer> {
    let (body, file) = body(bytes)?;
    Ok((Reply::Bytes(body), file))
}

fn proc_file(pid: u32, file: ProcFile) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(format!("/proc/{pid}/{}", file.name()))?;
    opened.take(MAX_PROC).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn calls(pid: u32) -> io::Result<Answer> {
    let mut calls = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten().take(MAX_THREADS) {
        let number = task.file_name().to_str().and_then(|name| name.parse().ok());
        // The thread may have exited.
        if let (Some(tid), Ok(text)) = (number, fs::read_to_string(task.path().join("syscall"))) {
            calls.push((tid, text));
        }
    }
    Ok((Reply::Calls(calls), Vec::new()))
}

/// Returns bytes as a body: in the message, or in a memory file beside it.
fn body(bytes: Vec<u8>) -> io::Result<(Body, Vec<OwnedFd>)> {
    if bytes.len() <= MAX_INLINE {
        Ok((Body::Inline(bytes), Vec::new()))
    } else {
        Ok((Body::Sealed, vec![sealed::file_of(&bytes)?]))
    }
}
