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

/// An answer that is ready to be sent.
struct Answer {
    reply: Reply,
    descriptors: Vec<OwnedFd>,
}

impl Answer {
    fn plain(reply: Reply) -> Self {
        Self {
            reply,
            descriptors: Vec::new(),
        }
    }

    fn bytes(bytes: Vec<u8>) -> io::Result<Self> {
        let (body, file) = body(bytes)?;
        Ok(Self {
            reply: Reply::Bytes(body),
            descriptors: file.into_iter().collect(),
        })
    }
}

/// Answers requests until the recorder has no more.
pub fn serve(channel: &Channel) {
    while let Ok(mut message) = channel.receive() {
        let Ok(request) = message.value::<Request>() else {
            return;
        };
        let answer = answer(&request, &mut message)
            .unwrap_or_else(|error| Answer::plain(Reply::Failed(error.raw_os_error().unwrap_or(libc::EIO))));
        drop(message);
        let descriptors: Vec<BorrowedFd<'_>> = answer.descriptors.iter().map(AsFd::as_fd).collect();
        if channel.send(&answer.reply, &descriptors).is_err() {
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
        Request::InRoot { pid, path, want } => file::in_root(*pid, path, want),
        Request::Own { path, want } => file::own(path, want),
        Request::Again { want } => {
            let file = message.descriptors.pop().ok_or(io::ErrorKind::InvalidInput)?;
            file::again(file, want)
        }
        Request::Memory { pid, pieces } => memory::read(*pid, pieces),
        Request::Proc { pid, file } => Answer::bytes(proc_file(*pid, *file)?),
        Request::Calls { pid } => calls(*pid),
        Request::List { pid, path } => Answer::bytes(file::names(*pid, path)?),
        Request::Root { pid } => {
            let link = rustix::fs::readlink(format!("/proc/{pid}/root"), Vec::new())?;
            Answer::bytes(link.into_bytes())
        }
    }
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
    Ok(Answer::plain(Reply::Calls(calls)))
}

/// Returns bytes as a body: in the message, or in a memory file beside it.
fn body(bytes: Vec<u8>) -> io::Result<(Body, Option<OwnedFd>)> {
    if bytes.len() <= MAX_INLINE {
        return Ok((Body::Inline(bytes), None));
    }
    let mut file = fs::File::from(sealed::new_file()?);
    io::Write::write_all(&mut file, &bytes)?;
    Ok((Body::Sealed, Some(sealed::seal(file.into())?)))
}
