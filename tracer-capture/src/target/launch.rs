//! Starts the command: as the invoking user, and only once it is traced.

use std::{
    env,
    ffi::{CString, OsStr, OsString},
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Command, ExitStatus, Stdio},
    sync::{Arc, mpsc},
    time::Duration,
};

use nix::unistd::{Gid, Uid, setgid, setgroups, setuid};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::{
    CaptureError,
    kernel::{descriptors::OfCommand, rights},
};

/// The user that the command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Login name, if known; names the supplementary groups.
    pub name: Option<String>,
    /// Home directory, if known.
    pub home: Option<String>,
}

impl User {
    /// Returns the user who called sudo, by SUDO_UID and SUDO_GID; `None` if sudo was not used, if root called it, or if this
    /// process is not root and so has no other user's rights to give up.
    ///
    /// # Errors
    /// Returns [`CaptureError::Sudo`] if these variables do not name a user: to continue as root would give away root's rights.
    pub fn invoking() -> Result<Option<Self>, CaptureError> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let value = |name| env::var_os(name);
        let ids = sudo_ids(value("SUDO_UID").as_deref(), value("SUDO_GID").as_deref())?;
        Ok(ids
            .filter(|(uid, _)| *uid != 0)
            .map(|(uid, gid)| Self::of_ids(uid, gid)))
    }

    /// As [`Self::invoking`], for a user as whom tracer is to run commands and write files.
    ///
    /// # Errors
    /// Also returns [`CaptureError::Lacking`] without the rights to do so.
    pub fn to_act_as() -> Result<Option<Self>, CaptureError> {
        let user = Self::invoking()?;
        if user.is_some() {
            rights::require(&rights::FOR_A_USER)?;
        }
        Ok(user)
    }

    fn of_ids(uid: u32, gid: u32) -> Self {
        let entry = nix::unistd::User::from_uid(uid.into()).ok().flatten();
        let (name, home) = entry.map_or_else(
            || (env::var("SUDO_USER").ok(), None),
            |user| (Some(user.name), user.dir.into_os_string().into_string().ok()),
        );
        Self { uid, gid, name, home }
    }

    /// Returns the user's groups, including the primary one.
    #[must_use]
    pub fn groups(&self) -> Vec<u32> {
        let name = self.name.as_ref().and_then(|name| CString::new(name.as_str()).ok());
        match name.map(|name| nix::unistd::getgrouplist(&name, self.gid.into())) {
            Some(Ok(groups)) => groups.into_iter().map(Gid::as_raw).collect(),
            _ => vec![self.gid],
        }
    }
}

/// Returns the ids in the values of SUDO_UID and SUDO_GID; `None` if neither is set.
fn sudo_ids(uid: Option<&OsStr>, gid: Option<&OsStr>) -> Result<Option<(u32, u32)>, CaptureError> {
    let id = |name: &'static str, value: Option<&OsStr>| {
        let text = value.and_then(OsStr::to_str).unwrap_or_default();
        let digits = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
        // -1 is not an id: system calls take it for "leave it as it is".
        let id = text.parse().ok().filter(|&id| digits && id != u32::MAX);
        id.ok_or_else(|| CaptureError::Sudo {
            name,
            value: value.map(|value| format!("{value:?}")),
        })
    };
    if uid.is_none() && gid.is_none() {
        return Ok(None);
    }
    Ok(Some((id("SUDO_UID", uid)?, id("SUDO_GID", gid)?)))
}

/// Whether the command may use the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The command shares everything with its recorder: streams, and the signals of Ctrl-C.
    Shared,
    /// Another program draws on the terminal: the command's streams are /dev/null, and no signal of a key reaches it.
    Away,
}

/// A command that exists as a process but has not begun: it waits for [`Waiting::go`].
#[derive(Debug)]
pub struct Waiting {
    process: Arc<Process>,
    go: io::PipeWriter,
    news: mpsc::Receiver<News>,
    program: String,
}

/// A child process of tracer.
#[derive(Debug)]
pub struct Process {
    /// Its id, which may be reused for another process once it has exited.
    pub pid: u32,
    /// Refers to it, and is readable once it has exited.
    pub descriptor: OwnedFd,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    /// Its process.
    pub process: Arc<Process>,
    news: mpsc::Receiver<News>,
}

/// A message of the thread that started the command: first `None` if the command has begun, then its exit status.
type News = io::Result<Option<ExitStatus>>;

impl Waiting {
    /// Forks the process. `user` is the user that it becomes first.
    ///
    /// # Errors
    /// Returns [`CaptureError::System`] if no process can be created.
    pub fn spawn(command: &[OsString], user: Option<&User>, terminal: Terminal) -> Result<Self, CaptureError> {
        let system = |e| CaptureError::system("starting the command", e);
        let program = command.first().cloned().unwrap_or_default();
        let (mut pid_reader, pid_writer) = io::pipe().map_err(system)?;
        let (go_reader, go) = io::pipe().map_err(system)?;
        let mut child = Command::new(&program);
        child.args(command.get(1..).unwrap_or_default());
        if terminal == Terminal::Away {
            child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            child.process_group(0);
        }
        if let Some(home) = user.and_then(|u| u.home.as_ref()) {
            child.env("HOME", home);
        }
        wait_before_exec(&mut child, pid_writer, go_reader, go.as_raw_fd(), user);
        let (sender, news) = mpsc::channel();
        // `spawn` returns only once the program runs, so it must wait on a thread of its own. That thread stays until the command
        // exits: a command that asks to be killed with its parent means the thread that forked it.
        let body = move || {
            let ended = child.spawn().and_then(|mut child| {
                let _ = sender.send(Ok(None));
                child.wait()
            });
            let _ = sender.send(ended.map(Some));
        };
        std::thread::Builder::new()
            .name("command".into())
            .spawn(body)
            .map_err(system)?;
        let mut pid = [0; 4];
        pid_reader.read_exact(&mut pid).map_err(system)?;
        Ok(Self {
            // The process waits to begin, so that the id is still its own.
            process: Arc::new(Process::open(u32::from_ne_bytes(pid)).map_err(system)?),
            go,
            news,
            program: program.to_string_lossy().into_owned(),
        })
    }

    /// Returns its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.pid
    }

    /// Lets the process become the command.
    ///
    /// # Errors
    /// Returns [`CaptureError::Command`] if the program does not exist or cannot be run.
    pub fn go(mut self) -> Result<Running, CaptureError> {
        self.go
            .write_all(&[1])
            .map_err(|e| CaptureError::system("starting the command", e))?;
        match self.news.recv() {
            Ok(Ok(_)) => Ok(Running {
                process: self.process,
                news: self.news,
            }),
            Ok(Err(source)) => Err(CaptureError::Command {
                command: self.program,
                source,
            }),
            Err(mpsc::RecvError) => Err(CaptureError::system(
                "starting the command",
                io::Error::other("its thread ended"),
            )),
        }
    }
}

impl Process {
    /// Opens a child process that was not waited for.
    ///
    /// # Errors
    /// EINVAL for a number that cannot be a process id; otherwise the error of the kernel.
    pub fn open(pid: u32) -> io::Result<Self> {
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let id = id.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let descriptor = pidfd_open(id, PidfdFlags::empty())?;
        Ok(Self { pid, descriptor })
    }

    /// Sends it a signal.
    ///
    /// # Errors
    /// ESRCH once it has exited, EPERM.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.descriptor, signal)?)
    }
}

impl Running {
    /// Waits at most `timeout` for the command's exit; returns its exit status, or `None` if it still runs.
    ///
    /// # Errors
    /// Returns [`CaptureError::System`] if it cannot be waited for.
    pub fn wait(&self, timeout: Duration) -> Result<Option<ExitStatus>, CaptureError> {
        let system = |e| CaptureError::system("waiting for the command", e);
        match self.news.recv_timeout(timeout) {
            Ok(status) => status.map_err(system),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(system(io::Error::other("its thread ended"))),
        }
    }
}

/// Makes the child process send its id and wait for a byte, between fork and exec. A recorder that dies in between closes the pipe,
/// and the child process exits without having begun.
fn wait_before_exec(
    child: &mut Command,
    mut pid_writer: io::PipeWriter,
    mut go_reader: io::PipeReader,
    recorders_end: i32,
    user: Option<&User>,
) {
    let open_files = OfCommand::now();
    // These ids are looked up before the fork: afterwards no code may allocate or take a lock.
    let identity = user.map(|user| {
        let groups: Vec<Gid> = user.groups().into_iter().map(Gid::from_raw).collect();
        (groups, Gid::from_raw(user.gid), Uid::from_raw(user.uid))
    });
    let prepare = move || -> io::Result<()> {
        pid_writer.write_all(&std::process::id().to_ne_bytes())?;
        // SAFETY: a descriptor that this process inherited and never uses. Open, it would hide the recorder's death.
        unsafe { libc::close(recorders_end) };
        go_reader.read_exact(&mut [0])?;
        open_files.assume()?;
        if let Some((groups, gid, uid)) = &identity {
            // The groups come first: without the right to change users they could not be changed any more.
            setgroups(groups)?;
            setgid(*gid)?;
            setuid(*uid)?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls, on memory allocated before the fork.
    unsafe { child.pre_exec(prepare) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn who_called_sudo_is_a_user_or_an_error() {
        let ids = |uid: Option<&str>, gid: Option<&str>| sudo_ids(uid.map(OsStr::new), gid.map(OsStr::new));
        assert_eq!(ids(None, None).unwrap(), None);
        assert_eq!(ids(Some("1000"), Some("100")).unwrap(), Some((1000, 100)));
        assert_eq!(ids(Some("0"), Some("0")).unwrap(), Some((0, 0)));
        let bad = ["-1", "abc", "", " 1", "+1", "4294967295", "4294967296", "0x0", "1000 "];
        for bad in bad {
            for (uid, gid, wrong) in [(bad, "1000", "SUDO_UID"), ("1000", bad, "SUDO_GID")] {
                let refused = ids(Some(uid), Some(gid)).unwrap_err();
                assert!(
                    matches!(&refused, CaptureError::Sudo { name, .. } if *name == wrong),
                    "{bad}: {refused}"
                );
            }
        }
        for (uid, gid, missing) in [(Some("1000"), None, "SUDO_GID"), (None, Some("1000"), "SUDO_UID")] {
            let refused = ids(uid, gid).unwrap_err();
            assert!(
                matches!(&refused, CaptureError::Sudo { name, value: None } if *name == missing),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_command_begins_when_it_is_told_and_its_status_comes_back() {
        let waiting = Waiting::spawn(&argv(&["/bin/sh", "-c", "exit 7"]), None, Terminal::Shared).unwrap();
        let comm = std::fs::read_to_string(format!("/proc/{}/comm", waiting.pid())).unwrap();
        assert_ne!(comm.trim(), "sh");
        let running = waiting.go().unwrap();
        let status = running.wait(Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(status.code(), Some(7));
    }

    #[test]
    fn away_from_the_terminal_nothing_of_it_is_left() {
        let script =
            "test ! -t 0 && test /proc/self/fd/1 -ef /dev/null && test \"$(cut -d' ' -f5 /proc/$$/stat)\" = $$";
        let waiting = Waiting::spawn(&argv(&["/bin/sh", "-c", script]), None, Terminal::Away).unwrap();
        let status = waiting.go().unwrap().wait(Duration::from_secs(20)).unwrap();
        assert_eq!(status.and_then(|status| status.code()), Some(0));
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Waiting::spawn(&argv(&["/no/such/program"]), None, Terminal::Shared)
            .unwrap()
            .go()
            .unwrap_err();
        assert!(error.to_string().contains("/no/such/program"), "{error}");
        assert!(matches!(error, CaptureError::Command { source, .. } if source.kind() == io::ErrorKind::NotFound));
    }

    #[test]
    fn a_command_that_nobody_lets_go_ends_without_having_begun() {
        let waiting = Waiting::spawn(&argv(&["/bin/sh", "-c", "exit 7"]), None, Terminal::Shared).unwrap();
        let Waiting { go, news, .. } = waiting;
        drop(go);
        assert!(news.recv().unwrap().is_err());
    }
}
