//! The file systems that programs expect, and the folders shared with the host.

use std::ffi::CString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount};

/// File system, place, options. File systems that a kernel lacks are omitted.
const MOUNTS: [(&str, &str, &str); 10] = [
    ("proc", "/proc", ""),
    ("sysfs", "/sys", ""),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666"),
    ("tmpfs", "/dev/shm", ""),
    ("tmpfs", "/run", "mode=755"),
    ("cgroup2", "/sys/fs/cgroup", ""),
    ("bpf", "/sys/fs/bpf", ""),
    ("securityfs", "/sys/kernel/security", ""),
    ("debugfs", "/sys/kernel/debug", ""),
    ("tracefs", "/sys/kernel/tracing", ""),
];
/// The number of entries, from the first on, without which nothing works.
const NEEDED: usize = 5;

/// Mounts the file systems that programs expect.
pub fn mount_all() -> Result<()> {
    for (number, (kind, place, options)) in MOUNTS.into_iter().enumerate() {
        // Folders below /dev have to be created; folders below /sys exist if the kernel has the file system.
        let made = fs::create_dir_all(place).map_err(anyhow::Error::from);
        let options = CString::new(options)?;
        let mounted = made.and_then(|()| Ok(mount(kind, place, kind, MountFlags::empty(), options.as_c_str())?));
        if number < NEEDED {
            mounted.with_context(|| format!("cannot mount {kind} on {place}"))?;
        }
    }
    for (link, target) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        // Links that exist already serve the same purpose.
        let _ = std::os::unix::fs::symlink(target, link);
    }
    Ok(())
}

/// Mounts a folder of the host at its own path, such that each side sees at once what the other writes.
pub fn share(tag: &str, path: &Path) -> Result<()> {
    let options = CString::new("trans=virtio,version=9p2000.L,msize=512000,cache=none")?;
    fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
    mount(tag, path, "9p", MountFlags::empty(), options.as_c_str())
        .with_context(|| format!("cannot mount the host's {}", path.display()))
}
