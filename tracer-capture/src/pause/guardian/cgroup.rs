//! The guardians' cgroup. It spares the guardians when the recorder's cgroup, or its container, is killed as a whole.

use std::{fs, os::fd::AsFd, path::PathBuf};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::target::process_stat::Stat;

/// The name of the cgroup.
const NAME: &str = "tracer-guardian";
/// The usual mount points of cgroup v2: alone, or beside v1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
/// The kernel's own first thread. If this thread is visible, process ids are the host's, and so is its root.
const FIRST_THREAD: u32 = 2;

/// Returns the roots of cgroup v2, the host's first: in a container the other roots may be the container's own, or not writable.
fn roots() -> impl Iterator<Item = PathBuf> {
    let host = sees_host().then(|| PathBuf::from(format!("/proc/{FIRST_THREAD}/root")));
    let on_host = host.into_iter().flat_map(|host| {
        let below = |root: &str| host.join(root.trim_start_matches('/'));
        ROOTS.map(below)
    });
    let all = on_host.chain(ROOTS.map(PathBuf::from));
    all.filter(|root| root.join("cgroup.procs").exists() && root.join("cgroup.controllers").exists())
}

/// Returns whether the host's processes are visible. Otherwise another process may have that number, and its root can't be trusted.
fn sees_host() -> bool {
    Stat::of_process(FIRST_THREAD).is_some_and(|stat| stat.is_kernel_thread())
}

/// Moves this process to a cgroup of its own, or to the root, if it may.
pub fn enter() {
    if sees_host()
        && let Ok(host) = fs::File::open(format!("/proc/{FIRST_THREAD}/ns/cgroup"))
    {
        // A process can't leave its cgroup from within a container's cgroup namespace. Without the right to enter the host's
        // namespace, the visible cgroups must do.
        let _ = move_into_link_name_space(host.as_fd(), Some(LinkNameSpaceType::ControlGroup));
    }
    for root in roots() {
        let own = root.join(NAME);
        // It may exist already. If it can't be created, it can't be entered.
        let _ = fs::create_dir(&own);
        let entered = fs::write(own.join("cgroup.procs"), "0");
        // Without CAP_DAC_OVERRIDE a process can't create a cgroup in the root. It can enter the root itself, which can't be
        // killed.
        if entered.or_else(|_| fs::write(root.join("cgroup.procs"), "0")).is_ok() {
            return;
        }
    }
}

/// Removes the cgroup after the last guardian has left it.
pub fn leave() {
    for root in roots() {
        if fs::write(root.join("cgroup.procs"), "0").is_ok() {
            let _ = fs::remove_dir(root.join(NAME));
        }
    }
}
