//! Messages between the recorder and its helper processes: packets of a socket pair, with descriptors beside them.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{
        AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
    },
};
use serde::{Serialize, de::DeserializeOwned};

/// The maximum number of bytes that a message carries inline. More bytes go into a sealed memory file.
pub const MAX_INLINE: usize = 64 << 10;
/// The maximum number of bytes of a whole message. The kernel's default for a socket's buffer is 208 KiB.
const MAX_MESSAGE: usize = MAX_INLINE + (16 << 10);
/// The maximum number of descriptors beside one message.
const MAX_DESCRIPTORS: usize = 2;

/// One end of a connection. Packets arrive whole or not at all.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
    /// The buffer for arriving messages. It is kept, because clearing a new buffer for each message would cost more than most
    /// messages.
    arrivals: Mutex<Vec<u8>>,
}

/// A received message.
#[derive(Debug)]
pub struct Message {
    bytes: Vec<u8>,
    /// The descriptors, in the order in which they were sent.
    pub descriptors: Vec<OwnedFd>,
}

impl Message {
    /// Decodes the value in the message.
    ///
    /// # Errors
    /// Fails with `InvalidData` if the message is not a value of this type.
    pub fn value<T: DeserializeOwned>(&self) -> io::Result<T> {
        decode(&self.bytes)
    }
}

impl Channel {
    /// Creates two connected ends.
    ///
    /// # Errors
    /// Fails with EMFILE.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Self::new(a), Self::new(b)))
    }

    /// Creates the end of a channel from a socket.
    pub fn new(socket: OwnedFd) -> Self {
        let arrivals = Mutex::default();
        Self { socket, arrivals }
    }

    /// Sends a value and descriptors; waits for room.
    ///
    /// # Errors
    /// Fails with EPIPE if the other end is gone, and with EMSGSIZE for a message that is too long.
    pub fn send(&self, value: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        self.send_bytes(&encode(value)?, descriptors, SendFlags::NOSIGNAL)
    }

    /// Sends a value and descriptors; waits for room until `deadline`.
    ///
    /// # Errors
    /// Fails as [`Self::send`] does, and with `TimedOut`.
    pub fn send_until(
        &self,
        value: &impl Serialize,
        descriptors: &[BorrowedFd<'_>],
        deadline: Instant,
    ) -> io::Result<()> {
        let bytes = encode(value)?;
        loop {
            match self.send_bytes(&bytes, descriptors, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(PollFlags::OUT, deadline)?,
                done => return done,
            }
        }
    }

    fn send_bytes(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>], flags: SendFlags) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        rustix::io::retry_on_intr(|| sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut ancillary, flags))?;
        Ok(())
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// Fails with `UnexpectedEof` if the other end is gone, and with `InvalidData` for a message beyond the maximum length.
    pub fn receive(&self) -> io::Result<Message> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC)
    }

    /// Returns the next message, if it is there.
    ///
    /// # Errors
    /// Fails as [`Self::receive`] does.
    pub fn try_receive(&self) -> io::Result<Option<Message>> {
        match self.receive_with(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            done => done.map(Some),
        }
    }

    /// Waits for the next message until `deadline`.
    ///
    /// # Errors
    /// Fails as [`Self::receive`] does, and with `TimedOut`.
    pub fn receive_until(&self, deadline: Instant) -> io::Result<Message> {
        loop {
            if let Some(message) = self.try_receive()? {
                return Ok(message);
            }
            self.wait(PollFlags::IN, deadline)?;
        }
    }

    fn receive_with(&self, flags: RecvFlags) -> io::Result<Message> {
        let mut bytes = self.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.resize(MAX_MESSAGE, 0);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let got = rustix::io::retry_on_intr(|| {
            recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags)
        })?;
        let descriptors: Vec<OwnedFd> = ancillary
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        if got.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let bytes = bytes.get(..got.bytes).unwrap_or_default().to_vec();
        Ok(Message { bytes, descriptors })
    }

    fn wait(&self, what: PollFlags, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A time that is too long for the system is as long as any.
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&self.socket, what)], left.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Decodes a value from bytes; no bytes may follow the value.
///
/// # Errors
/// Fails with `InvalidData` if the bytes are not a value of this type.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    let decoded = postcard::take_from_bytes(bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e));
    match decoded? {
        (value, []) => Ok(value),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn encode(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let bytes = postcard::to_stdvec(value).map_err(|e| io::Error::new(io::ErrorKind::InvalidInput, e))?;
    if bytes.len() > MAX_MESSAGE {
        return Err(rustix::io::Errno::MSGSIZE.into());
    }
    Ok(bytes)
}
