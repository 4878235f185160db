//! A process that the user wants to attach to: whether tracer can attach to it, and if not, what to do instead.

use std::{fs, io, os::fd::OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{
    CaptureError,
    kernel::rights,
    target::{
        pid_namespace,
        process_stat::{self, Stat, status_field},
    },
};

/// A process that tracer can attach to.
#[derive(Debug)]
pub struct Candidate {
    /// Its id.
    pub pid: u32,
    /// Its name, at most 15 bytes.
    pub comm: Vec<u8>,
    /// The process itself: its id may be reused for another process.
    pub pidfd: OwnedFd,
}

/// Index of the class in the header of an ELF file, and the class of 32-bit files.
const EI_CLASS: usize = 4;
const ELFCLASS32: u8 = 1;
/// Number of the capability (include/uapi/linux/capability.h).
const CAP_SYS_PTRACE: u32 = 19;

impl Candidate {
    /// Examines a process.
    ///
    /// # Errors
    /// Returns [`CaptureError::NotAttached`], with the reason and the fix.
    pub fn of(pid: u32) -> Result<Self, CaptureError> {
        let refuse = |why: String| CaptureError::NotAttached { pid, why };
        pid_namespace::require_initial()?;
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| {
            let is_exited = process_stat::is_exited(&error);
            refuse(if is_exited { not_there(pid) } else { unreadable(&error) })
        })?;
        let field = |name: &str| status_field(&status, name);
        if let Some(process) = field("Tgid").and_then(|text| text.parse::<u32>().ok())
            && process != pid
        {
            return Err(refuse(format!("it is a thread of process {process}; use -p {process}")));
        }
        if !process_stat::is_alive(pid) {
            return Err(refuse("it has ended".to_owned()));
        }
        // A process without memory of its own has no such link. The program may be deleted, but then the link still names it.
        fs::read_link(format!("/proc/{pid}/exe")).map_err(|error| {
            refuse(match error.kind() {
                io::ErrorKind::NotFound => without_program(Stat::of_process(pid)).to_owned(),
                _ => unreadable(&error),
            })
        })?;
        if is_32_bit(pid) {
            return Err(refuse(
                "it is a 32-bit process; AMD's runtime and tracer's probes are for 64 bits: run a 64-bit build of it"
                    .to_owned(),
            ));
        }
        let id = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let pidfd = id.ok_or_else(|| refuse(not_there(pid)))?;
        let pidfd = pidfd_open(pidfd, PidfdFlags::NONBLOCK).map_err(|error| refuse(format!("opening it: {error}")))?;
        Ok(Self {
            pid,
            comm: field("Name").unwrap_or_default().as_bytes().to_vec(),
            pidfd,
        })
    }
}

fn is_32_bit(pid: u32) -> bool {
    use std::io::Read;
    let mut head = [0; EI_CLASS + 1];
    fs::File::open(format!("/proc/{pid}/exe")).is_ok_and(|mut file| {
        file.read_exact(&mut head).is_ok() && head.starts_with(b"\x7fELF") && head[EI_CLASS] == ELFCLASS32
    })
}

/// Returns why a process has no program. `stat` is `None` if the process is gone by now.
fn without_program(stat: Option<Stat>) -> &'static str {
    match stat {
        Some(stat) if stat.is_kernel_thread() => {
            "it is a thread of the kernel, which submits nothing from user space; what the driver's rings carry, every \
             recording shows"
        }
        _ => "it is exiting",
    }
}

fn unreadable(error: &io::Error) -> String {
    let has_ptrace = rights::effective() & 1 << CAP_SYS_PTRACE != 0;
    let why = refusal(rustix::process::geteuid().is_root(), has_ptrace);
    format!("its files in /proc can't be read ({error}); {why}")
}

/// Returns what refuses the access, and what to do.
fn refusal(root: bool, ptrace: bool) -> &'static str {
    match (root, ptrace) {
        (false, false) => "run with sudo, or give the binary cap_sys_ptrace",
        (true, false) => {
            "tracer runs as root, but without cap_sys_ptrace: allow it to the container or service that tracer runs in, as with \
             `docker run --cap-add SYS_PTRACE`"
        }
        (_, true) => {
            "tracer has cap_sys_ptrace, so a security module (AppArmor, SELinux) or the user namespace that tracer runs in \
             refuses it: run tracer outside of the container"
        }
    }
}

/// Explains that there is no such process. The id may be one that a process has inside its container.
fn not_there(pid: u32) -> String {
    let inner: Vec<String> = inside_namespaces(pid).iter().take(3).map(u32::to_string).collect();
    match &inner[..] {
        [] => "there is no such process; `pgrep -f NAME` shows the ids of running processes".to_owned(),
        some => format!(
            "there is no such process here; inside a container, that is the id of {0}: use -p {0}",
            some.join(" or ")
        ),
    }
}

/// Returns the processes whose id is `pid` in a pid namespace of their own.
fn inside_namespaces(pid: u32) -> Vec<u32> {
    let is_inside = |outer: &u32| {
        let status = fs::read_to_string(format!("/proc/{outer}/status")).unwrap_or_default();
        let ids = status_field(&status, "NSpid").unwrap_or_default();
        ids.split_whitespace().skip(1).any(|id| id.parse() == Ok(pid))
    };
    let mut found: Vec<u32> = process_stat::all().filter(is_inside).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(pid: u32) -> String {
        Candidate::of(pid).unwrap_err().to_string()
    }

    #[test]
    fn a_process_is_a_candidate_and_its_threads_are_not() {
        let own = std::process::id();
        let candidate = Candidate::of(own).unwrap();
        assert_eq!(candidate.pid, own);
        assert!(!candidate.comm.is_empty());
        let (sender, thread) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let (go, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let _ = sender.send(rustix::thread::gettid().as_raw_nonzero().get());
                let _ = wait.recv();
            });
            let thread = thread.recv().unwrap();
            assert!(why(thread as u32).contains(&format!("use -p {own}")));
            drop(go);
        });
    }

    #[test]
    fn what_cannot_be_attached_to_is_told_with_the_fix() {
        assert!(why(u32::MAX).contains("no such process"), "{}", why(u32::MAX));
        assert!(why(4_194_303).contains("pgrep"), "{}", why(4_194_303));
        // kthreadd, if ids are the kernel's.
        if fs::read_to_string("/proc/2/comm").is_ok_and(|comm| comm.trim() == "kthreadd") {
            assert!(why(2).contains("thread of the kernel"), "{}", why(2));
        }
    }

    #[test]
    fn an_exiting_process_is_no_thread_of_the_kernel() {
        let stat = |flags: u64| Stat {
            state: 'R',
            parent: 1,
            flags,
            threads: 1,
            start_ticks: 0,
        };
        assert!(without_program(Some(stat(process_stat::PF_KTHREAD | 0x40))).contains("thread of the kernel"));
        // PF_EXITING; and a process that is gone.
        assert_eq!(without_program(Some(stat(0x4))), "it is exiting");
        assert_eq!(without_program(None), "it is exiting");
        // This process, whose flags are in the expected field.
        let own = Stat::of_process(std::process::id());
        assert_eq!(without_program(own), "it is exiting");
        let second = Stat::of_process(2);
        assert!(second.is_none() || without_program(second).contains("kernel"));
    }

    #[test]
    fn sudo_is_no_advice_for_root() {
        assert!(refusal(false, false).contains("sudo"));
        for (root, ptrace) in [(true, false), (true, true), (false, true)] {
            assert!(!refusal(root, ptrace).contains("sudo"), "{root} {ptrace}");
        }
    }

    #[test]
    fn an_ended_process_is_told_so() {
        let mut child = std::process::Command::new("/bin/true").spawn().unwrap();
        while Stat::of_process(child.id()).is_none_or(|stat| stat.state != 'Z') {
            std::thread::yield_now();
        }
        assert!(why(child.id()).contains("has ended"), "{}", why(child.id()));
        child.wait().unwrap();
    }
}
