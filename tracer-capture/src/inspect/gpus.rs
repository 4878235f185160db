//! The GPUs, and whether the user may access them.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};
use serde::Serialize;

use super::places::children;
use crate::{
    kernel::{
        devices::{self, Gpu},
        kfd_proc::{self, Numbering},
    },
    target::launch::User,
};

/// The GPUs of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gpus {
    /// The GPUs of the KFD's topology.
    pub gpus: Vec<Gpu>,
    /// The sign that they are simulated; `None` if no sign was found.
    pub simulated: Option<String>,
    /// The device files, /dev/kfd first; empty if the driver is not loaded or finds no GPU, or if a container hides them.
    pub nodes: Vec<Node>,
    /// The user as whom recorded commands run.
    pub user: String,
    /// Processes that have the KFD open, with their queues; `None` if the driver is not loaded, or does not report them.
    pub processes: Option<Vec<kfd_proc::Process>>,
}

/// A device file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Its path.
    pub path: String,
    /// Name of its group, or the group's number.
    pub group: String,
    /// Whether the user may read and write it.
    pub accessible: bool,
}

/// Examines this machine.
#[must_use]
pub fn read() -> Gpus {
    let found = devices::below(Path::new("/"));
    let user = User::invoking().ok().flatten();
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let mut paths = vec![PathBuf::from("/dev/kfd")];
    paths.extend(children(Path::new("/dev/dri"), "renderD"));
    Gpus {
        gpus: found.gpus,
        simulated: found.simulated,
        nodes: paths
            .iter()
            .filter_map(|path| node(path, user.as_ref(), &groups))
            .collect(),
        user: match &user {
            Some(user) => user.name.clone().unwrap_or_else(|| user.uid.to_string()),
            None => format!("uid {}", rustix::process::getuid().as_raw()),
        },
        processes: kfd_proc::below(Path::new("/"), Numbering::of_kernel()).ok(),
    }
}

/// Examines a device file; `None` if there is no such file.
fn node(path: &Path, user: Option<&User>, groups: &str) -> Option<Node> {
    let metadata = fs::metadata(path).ok()?;
    let accessible = match user {
        // The kernel's own answer, access lists included.
        None => access(path, Access::READ_OK | Access::WRITE_OK).is_ok(),
        // For another user the kernel cannot be asked. Access lists are not read, so this may be too strict.
        Some(user) => {
            let name = user.name.as_deref();
            let member = user.gid == metadata.gid() || name.is_some_and(|name| is_member(groups, metadata.gid(), name));
            may(metadata.mode(), metadata.uid() == user.uid, member)
        }
    };
    Some(Node {
        path: path.display().to_string(),
        group: group_name(groups, metadata.gid()).map_or_else(|| metadata.gid().to_string(), str::to_owned),
        accessible,
    })
}

/// Returns whether the mode allows reading and writing, by its class for the owner, the group or others.
fn may(mode: u32, owner: bool, member: bool) -> bool {
    let class = match (owner, member) {
        (true, _) => mode >> 6,
        (false, true) => mode >> 3,
        (false, false) => mode,
    };
    class & 0o6 == 0o6
}

/// Returns the fields of the group's line in /etc/group: `name:password:id:member,member` (group(5)).
fn group(groups: &str, id: u32) -> Option<Vec<&str>> {
    let mut all = groups.lines().map(|line| line.split(':').collect::<Vec<_>>());
    all.find(|fields| fields.get(2).is_some_and(|number| *number == id.to_string()))
}

fn group_name(groups: &str, id: u32) -> Option<&str> {
    group(groups, id)?.first().copied()
}

fn is_member(groups: &str, id: u32, user: &str) -> bool {
    let members = group(groups, id).and_then(|fields| fields.get(3).copied());
    members.is_some_and(|members| members.split(',').any(|member| member == user))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: &str = "root:x:0:\nvideo:x:44:ann\nrender:x:105:bob,ann\n";

    #[test]
    fn members_of_the_group_may() {
        assert_eq!(group_name(GROUPS, 105), Some("render"));
        assert!(is_member(GROUPS, 105, "ann") && is_member(GROUPS, 105, "bob"));
        assert!(!is_member(GROUPS, 44, "bob") && !is_member(GROUPS, 7, "bob"));
    }

    #[test]
    fn the_first_class_that_fits_decides() {
        assert!(may(0o660, false, true));
        assert!(!may(0o660, false, false));
        assert!(may(0o666, false, false));
        // An owner without rights has none, whatever rights others have.
        assert!(!may(0o066, true, true));
        assert!(!may(0o640, false, true));
    }
}
