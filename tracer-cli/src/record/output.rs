//! The path of the trace, and its owner.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use tracer_files::Owner;
use tracer_store::manifest::ClockSnapshot;

use crate::target;

/// Returns the directory, with the placeholders in its name filled in. The default has the name of the program, and the time if
/// there may be several recordings.
pub fn directory(wanted: Option<&Path>, program: &OsStr, pid: u32, several: bool) -> PathBuf {
    let mut name = Path::new(program).file_name().unwrap_or_default().to_owned();
    let wanted = match wanted {
        Some(wanted) => wanted,
        None if several => {
            name.push("-%time%.trace");
            Path::new(&name)
        }
        None => return PathBuf::from(name).with_added_extension("trace"),
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

/// Returns the user with whose rights tracer writes files: the user who called sudo, unless `as_root` makes root the owner.
pub fn owner(as_root: bool) -> anyhow::Result<Owner> {
    let user = target::user(as_root)?;
    Ok(user.map_or_else(Owner::process, |user| Owner::user(user.uid, user.gid, user.groups())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_named_after_the_command() {
        let command = OsStr::new("/opt/bin/app.py");
        assert_eq!(directory(None, command, 1, false), Path::new("app.py.trace"));
        assert_eq!(
            directory(Some(Path::new("a/%pid%.t")), command, 77, false),
            Path::new("a/77.t")
        );
    }
}
