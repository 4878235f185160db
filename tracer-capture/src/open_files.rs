//! How many files this process may have open: on kernels that place probes one by one each of them is a file, and the usual
//! limit of 1024 is reached with the API functions of two copies of the libraries.

use std::{
    io,
    os::fd::{AsFd, AsRawFd},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::{
    io::fcntl_dupfd_cloexec,
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

/// What the limit was.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Allows this process what it may allow itself.
pub fn allow_all() {
    let before = BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let all = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    // It may always be raised that far; and if not, a probe that finds no room says so.
    let _ = setrlimit(Resource::Nofile, all);
}

/// Descriptors that probes leave free for files that are open for a moment: what /proc says of processes, libraries, parts of
/// a trace. Without one of them a paused process could not even be looked at.
const FOR_FILES: u64 = 32;

/// Descriptors that probes leave free for others.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// How many descriptors this process may have; as many as it may allow itself after [`allow_all`].
#[must_use]
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Keeps so many more descriptors free of probes, for the rest of this process's life.
pub fn reserve(count: u64) {
    RESERVED.fetch_add(count, Ordering::Relaxed);
}

/// Whether a probe may take descriptors. `any`: an open file of this process.
///
/// # Errors
/// EMFILE if only reserved ones are left.
pub(crate) fn room_for_probe(any: impl AsFd) -> io::Result<()> {
    // The kernel gives the lowest one that is free.
    let lowest = fcntl_dupfd_cloexec(any, 0)?;
    let lowest = u64::try_from(lowest.as_raw_fd()).unwrap_or(u64::MAX);
    if lowest < for_probes(limit(), RESERVED.load(Ordering::Relaxed)) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EMFILE))
    }
}

/// The first descriptor that no probe takes. However low the limit is, probes get half of what it allows.
fn for_probes(limit: u64, reserved: u64) -> u64 {
    limit.saturating_sub(reserved.saturating_add(FOR_FILES)).max(limit / 2)
}

/// The limit that a command is to have: the recorder's is none of its business, and programs that use `select` rely on it.
#[derive(Clone, Copy)]
pub struct OfCommand(Option<Rlimit>);

impl OfCommand {
    /// As it was before [`allow_all`].
    pub fn now() -> Self {
        Self(BEFORE.get().copied())
    }

    /// Gives it to the calling process. One system call, no memory: also between fork and exec.
    pub fn assume(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |limit| Ok(setrlimit(Resource::Nofile, limit)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_descriptors_are_left_to_others() {
        assert_eq!(for_probes(1024, 64), 1024 - 64 - FOR_FILES);
        assert_eq!(for_probes(40, 64), 20);
        assert_eq!(for_probes(u64::MAX, u64::MAX), u64::MAX / 2);
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(room_for_probe(&file).is_ok());
        // More than this process may have.
        let all = std::iter::repeat_with(|| file.try_clone());
        let before = getrlimit(Resource::Nofile);
        let low = Rlimit {
            current: Some(64),
            maximum: before.maximum,
        };
        setrlimit(Resource::Nofile, low).expect("it is lower");
        let taken: Vec<_> = all.map_while(Result::ok).take(40).collect();
        let full = room_for_probe(&file);
        setrlimit(Resource::Nofile, before).expect("it was so before");
        assert_eq!(taken.len(), 40);
        assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::EMFILE));
    }

    #[test]
    fn a_command_has_the_limit_that_was_there_before() {
        let before = getrlimit(Resource::Nofile);
        allow_all();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        OfCommand::now().assume().expect("it is lower");
        assert_eq!(getrlimit(Resource::Nofile), before);
    }
}
