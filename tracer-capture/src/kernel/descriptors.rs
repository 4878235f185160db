//! How many files this process may have open. On kernels that attach probes one by one, each probe is a file, and the API functions
//! of two copies of the libraries exceed the usual limit of 1024.

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

/// The limit before [`allow_all`].
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises this process's limit as far as it may.
pub fn allow_all() {
    let before = BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let all = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    // A process may always raise it that far; if it cannot, a probe that finds no room reports it.
    let _ = setrlimit(Resource::Nofile, all);
}

/// Descriptors that probes leave free for files that are open for a moment: files of processes in /proc, libraries, parts of a
/// trace. Without them, tracer could not even examine a paused process.
const FOR_FILES: u64 = 32;

/// Descriptors that probes leave free for other uses.
static RESERVED: AtomicU64 = AtomicU64::new(0);

/// Returns how many descriptors this process may have; after [`allow_all`], the most that it may allow itself.
#[must_use]
pub fn limit() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Keeps that many more descriptors free of probes, for the rest of this process's life.
pub fn reserve(count: u64) {
    RESERVED.fetch_add(count, Ordering::Relaxed);
}

/// Checks that a probe may take descriptors. `any` is an open file of this process.
///
/// # Errors
/// Returns EMFILE if only reserved descriptors are left.
pub(crate) fn room_for_probe(any: impl AsFd) -> io::Result<()> {
    // The kernel returns the lowest free descriptor.
    let lowest = fcntl_dupfd_cloexec(any, 0)?;
    let lowest = u64::try_from(lowest.as_raw_fd()).unwrap_or(u64::MAX);
    if lowest < for_probes(limit(), RESERVED.load(Ordering::Relaxed)) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::EMFILE))
    }
}

/// Returns the first descriptor that probes may not take. However low the limit is, probes get half of it.
fn for_probes(limit: u64, reserved: u64) -> u64 {
    limit.saturating_sub(reserved.saturating_add(FOR_FILES)).max(limit / 2)
}

/// The limit of a command. The recorder's limit must not affect the command: programs that use `select` rely on the original one.
#[derive(Clone, Copy)]
pub struct OfCommand(Option<Rlimit>);

impl OfCommand {
    /// Returns the limit as it was before [`allow_all`].
    pub fn now() -> Self {
        Self(BEFORE.get().copied())
    }

    /// Sets the limit of the calling process. Makes one system call and allocates no memory, so it may run between fork and exec.
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
