//! Wakes a thread that waits for a descriptor.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::{read, write},
};

/// Wakes one thread. Copies wake the same one.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Creates one.
    ///
    /// # Errors
    /// Fails if no descriptor is left.
    pub fn new() -> io::Result<Self> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self(Arc::new(event)))
    }

    /// Ends the wait of the thread, or its next one if it does not wait now.
    pub fn wake(&self) {
        // The only error is that the counter is full: then the thread is woken already.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Waits until another thread calls [`Self::wake`], the descriptor is readable, or `timeout` is over; returns whether the descriptor
    /// is readable. It may return early.
    pub(crate) fn wait(&self, readable: Option<BorrowedFd<'_>>, timeout: Duration) -> bool {
        let mut waits = [
            PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(readable.unwrap_or(self.0.as_fd()), PollFlags::IN),
        ];
        // An interrupted or failed wait only makes the next check early.
        let _ = poll(&mut waits, Timespec::try_from(timeout).ok().as_ref());
        let [is_woken, is_readable] = waits.map(|wait| !wait.revents().is_empty());
        if is_woken {
            let _ = read(&self.0, &mut [0; 8]);
        }
        readable.is_some() && is_readable
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_thread_is_woken_once_for_each_wait() {
        let waker = Waker::new().unwrap();
        let other = waker.clone();
        // Long enough that the test would not end without the wake.
        const NEVER: Duration = Duration::from_secs(3600);
        let thread = std::thread::spawn(move || other.wait(None, NEVER));
        waker.wake();
        assert!(!thread.join().unwrap(), "there is no other descriptor");
        // That wake is over.
        let began = Instant::now();
        assert!(!waker.wait(None, Duration::from_millis(20)));
        assert!(began.elapsed() >= Duration::from_millis(20));
        // The other descriptor ends a wait, too.
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        assert!(waker.wait(Some(reader.as_fd()), NEVER));
    }
}
