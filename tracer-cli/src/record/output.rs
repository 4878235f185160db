//! Where the trace goes, and whose it is.

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::lchown,
    path::{Path, PathBuf},
};

use tracer_capture::launch::User;
use tracer_store::manifest::ClockSnapshot;

/// The directory, with the keys of its name filled in.
pub fn directory(wanted: Option<&Path>, program: &OsStr, pid: u32) -> PathBuf {
    let Some(wanted) = wanted else {
        let program = Path::new(program).file_name().unwrap_or_default();
        return PathBuf::from(program).with_added_extension("trace");
    };
    let Some(text) = wanted.to_str() else {
        return wanted.to_owned();
    };
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let time = ClockSnapshot::now().time.replace(':', "-");
    PathBuf::from(
        text.replace("%pid%", &pid.to_string())
            .replace("%hostname%", &host)
            .replace("%time%", &time),
    )
}

/// Removes a trace that was begun for nothing.
pub fn remove(dir: &Path) {
    if let Err(error) = fs::remove_dir_all(dir) {
        log::warn!("the empty trace {} can't be removed: {error}", dir.display());
    }
}

/// Makes the trace the invoking user's: recorded as root, it would be in their way.
pub fn give_to(dir: &Path, user: &User) {
    if let Err(error) = give(dir, user) {
        log::warn!("{} stays root's: {error}", dir.display());
    }
}

fn give(path: &Path, user: &User) -> std::io::Result<()> {
    lchown(path, Some(user.uid), Some(user.gid))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), user)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_named_after_the_command() {
        let command = OsStr::new("/opt/bin/app.py");
        assert_eq!(directory(None, command, 1), Path::new("app.py.trace"));
        assert_eq!(
            directory(Some(Path::new("a/%pid%.t")), command, 77),
            Path::new("a/77.t")
        );
    }
}
