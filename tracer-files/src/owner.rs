//! The user with whose rights files are written.

use std::io;
use std::panic;
use std::thread;

use rustix::process::Gid;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities, set_thread_groups};

/// The user with whose rights files are written, and who therefore owns them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner(Option<Ids>);

/// A user as the file system identifies one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ids {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

impl Owner {
    /// Returns the user of this process.
    #[must_use]
    pub const fn process() -> Self {
        Self(None)
    }

    /// Returns another user, which only root can become. `groups` are the supplementary groups.
    #[must_use]
    pub const fn user(uid: u32, gid: u32, groups: Vec<u32>) -> Self {
        Self(Some(Ids { uid, gid, groups }))
    }

    /// Returns the id of that user.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.0
            .as_ref()
            .map_or_else(|| rustix::process::geteuid().as_raw(), |ids| ids.uid)
    }

    /// Gives the calling thread this owner's rights over files and no others, permanently. If root is the owner, a thread of root
    /// stays unchanged.
    ///
    /// # Errors
    /// If the thread may not change its ids. Then it must not write, because its rights are not known.
    pub fn assume(&self) -> io::Result<()> {
        match &self.0 {
            Some(ids) => ids.assume()?,
            None if self.keeps_rights() => return Ok(()),
            None => {}
        }
        // Leaving fsuid 0 removes the capabilities over files from the effective set, unless the secure bits say otherwise. The
        // thread needs no other capability either.
        let none = CapabilitySet::empty();
        let sets = CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        };
        Ok(set_capabilities(None, sets)?)
    }

    /// Runs `work` with this owner's rights, on a thread of its own.
    ///
    /// # Errors
    /// If there is no thread, or it may not change its ids. Then the work was not done.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        if self.keeps_rights() {
            return Ok(work());
        }
        thread::scope(|scope| {
            let body = || self.assume().map(|()| work());
            let thread = thread::Builder::new()
                .name("files".to_owned())
                .spawn_scoped(scope, body)?;
            thread.join().unwrap_or_else(|payload| panic::resume_unwind(payload))
        })
    }

    /// Returns whether the thread keeps its rights: root writes as root.
    fn keeps_rights(&self) -> bool {
        self.0.is_none() && rustix::process::geteuid().is_root()
    }
}

impl Ids {
    /// Changes the ids of the calling thread only. The functions of libc would change all threads.
    fn assume(&self) -> io::Result<()> {
        let groups: Vec<_> = self.groups.iter().map(|&group| Gid::from_raw(group)).collect();
        set_thread_groups(&groups)?;
        // The group first: without the right to change users the group could no longer be changed.
        change(libc::SYS_setfsgid, self.gid)?;
        change(libc::SYS_setfsuid, self.uid)
    }
}

/// Sets a file system id. The system call reports no error: it always returns the previous id.
fn change(call: libc::c_long, id: u32) -> io::Result<()> {
    // SAFETY: setfsuid(2) and setfsgid(2) take an integer and access no memory. -1 is not an id: that call changes nothing.
    let now = unsafe {
        libc::syscall(call, id);
        libc::syscall(call, -1)
    };
    if u32::try_from(now) == Ok(id) {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::PermissionDenied))
    }
}
