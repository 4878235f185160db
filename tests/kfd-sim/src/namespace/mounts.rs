//! Wrappers of mount(2) and umount2(2).

use std::ffi::{CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use anyhow::{Context, Result, ensure};

/// The source name of these mounts in /proc/mounts.
const SOURCE: &str = "kfd-sim";

/// Hides all further mounts from the rest of the system.
pub fn make_private() -> Result<()> {
    mount(None, Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE, None)
}

/// Mounts an empty tmpfs.
pub fn mount_tmpfs(target: &Path, mode: u32) -> Result<()> {
    mount(
        Some(OsStr::new(SOURCE)),
        target,
        Some("tmpfs"),
        0,
        Some(&format!("mode={mode:o}")),
    )
    .with_context(|| format!("cover {}", target.display()))
}

/// Mounts the file system that is served through the descriptor of /dev/fuse.
pub fn mount_fuse(fd: i32, target: &Path) -> Result<()> {
    let options = format!("fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other");
    mount(
        Some(OsStr::new(SOURCE)),
        target,
        Some("fuse"),
        libc::MS_NOSUID | libc::MS_NODEV,
        Some(&options),
    )
}

/// Mounts the files that control FUSE connections.
pub fn mount_fusectl(target: &Path) -> Result<()> {
    mount(Some(OsStr::new(SOURCE)), target, Some("fusectl"), 0, None)
}

/// Binds a file or folder, with the mounts below it, to another place.
pub fn bind_recursive(source: &Path, target: &Path) -> Result<()> {
    mount(
        Some(source.as_os_str()),
        target,
        None,
        libc::MS_BIND | libc::MS_REC,
        None,
    )
    .with_context(|| format!("bind {} to {}", source.display(), target.display()))
}

/// Unmounts a path. Binds at other places stay.
pub fn unmount(path: &Path) -> Result<()> {
    let text = c_string(path.as_os_str())?;
    // SAFETY: `text` is NUL-terminated.
    let result = unsafe { libc::umount2(text.as_ptr(), libc::MNT_DETACH) };
    ensure!(
        result == 0,
        "unmount {}: {}",
        path.display(),
        io::Error::last_os_error()
    );
    Ok(())
}

fn c_string(text: &OsStr) -> Result<CString> {
    CString::new(text.as_bytes()).context("a NUL in a path")
}

fn mount(
    source: Option<&OsStr>,
    target: &Path,
    kind: Option<&str>,
    flags: libc::c_ulong,
    options: Option<&str>,
) -> Result<()> {
    let source = source.map(c_string).transpose()?;
    let target = c_string(target.as_os_str())?;
    let kind = kind.map(CString::new).transpose()?;
    let options = options.map(CString::new).transpose()?;
    let pointer = |text: &Option<CString>| text.as_ref().map_or(ptr::null(), |text| text.as_ptr());
    // SAFETY: all pointers are null or point to NUL-terminated strings that outlive the call.
    let result = unsafe {
        libc::mount(
            pointer(&source),
            target.as_ptr(),
            pointer(&kind),
            flags,
            pointer(&options).cast(),
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error().into());
    }
    Ok(())
}
