//! The path of the trace, and its owner.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
};

use tracer_capture::target::launch::User;
use tracer_files::Owner;
use tracer_store::manifest::ClockSnapshot;

/// Returns the directory, with the placeholders in its name filled in.
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

/// Returns the user with whose rights tracer writes files: the user who called sudo, unless `as_root` makes root the owner.
pub fn owner(as_root: bool) -> anyhow::Result<Owner> {
    let user = if as_root { None } else { User::to_act_as()? };
    Ok(user.map_or_else(Owner::process, |user| Owner::user(user.uid, user.gid, user.groups())))
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
