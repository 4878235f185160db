//! The guardians' cgroup: ending the recorder's cgroup, or its container, as a whole spares them.

use std::{fs, io, os::fd::AsFd, path::PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::process_stat::Stat;

/// Its name.
const NAME: &str = "tracer-guardian";
/// Where cgroup v2 is mounted, by custom: alone, or beside v1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The kernel's own first thread: where it is to be seen, process ids are the host's, and so is its root.
const FIRST_THREAD: u32 = 2;
/// `PF_KTHREAD` of include/linux/sched.h.
const IS_KERNEL_THREAD: u64 = 0x0020_0000;

/// The roots of cgroup v2, the host's first: in a container the others may be its own, or not to be written to.
fn roots() -> impl Iterator<Item = PathBuf> {
    let host = sees_host().then(|| PathBuf::from(format!("/proc/{FIRST_THREAD}/root")));
    let on_host = host.into_iter().flat_map(|host| {
        let below = |root: &str| host.join(root.trim_start_matches('/'));
        ROOTS.map(below)
    });
    let all = on_host.chain(ROOTS.map(PathBuf::from));
    all.filter(|root| root.join("cgroup.procs").exists() && root.join("cgroup.controllers").exists())
}

/// Whether the host's processes are seen. Otherwise another process may have that number, whose root nobody can trust.
fn sees_host() -> bool {
    Stat::of_process(FIRST_THREAD).is_some_and(|stat| stat.flags & IS_KERNEL_THREAD != 0)
}

/// Moves this process to a cgroup of its own, or to the root, where it may.
pub fn enter() {
    if sees_host()
        && let Ok(host) = fs::File::open(format!("/proc/{FIRST_THREAD}/ns/cgroup"))
    {
        // From a container's namespace of cgroups nobody leaves its cgroup. Without the right to enter the host's, what is
        // seen must do.
        let _ = move_into_link_name_space(host.as_fd(), Some(LinkNameSpaceType::ControlGroup));
    }
    for root in roots() {
        let own = root.join(NAME);
        let made = fs::create_dir(&own).or_else(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Ok(()),
            _ => Err(error),
        });
        let entered = made.and_then(|()| fs::write(own.join("cgroup.procs"), "0"));
        // Without CAP_DAC_OVERRIDE nobody makes a cgroup in the root. The root itself can be entered, and can't be killed.
        if entered.or_else(|_| fs::write(root.join("cgroup.procs"), "0")).is_ok() {
            return;
        }
    }
}

/// Takes the cgroup away behind the last guardian in it.
pub fn leave() {
    for root in roots() {
        if fs::write(root.join("cgroup.procs"), "0").is_ok() {
            let _ = fs::remove_dir(root.join(NAME));
        }
    }
}
