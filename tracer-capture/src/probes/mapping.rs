//! Executable mappings, and the entry of `hsa_init`: the places where processes are paused.

use aya::{EbpfLoader, Pod};
use tracer_common::{offset::ABSENT, pause::TaskLayout};

use super::{Prober, Site, Target, second_programs};
use crate::{
    inventory::Probe,
    kernel::btf::Btf,
    runtime::resolver::{Resolution, ResolverStep},
};
use tracer_core::family::Family;

/// The offsets, in the kernel's structures, of what the programs read about processes and files.
pub struct Tasks(Plain);

/// A layout as the loader takes it.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Plain(TaskLayout);
// SAFETY: the type is `repr(C)` and consists of u32 only.
unsafe impl Pod for Plain {}

impl Tasks {
    /// Takes the offsets from the kernel's BTF. Without BTF files are not recognised, and each mapping is examined.
    #[must_use]
    pub fn of(btf: Option<&Btf>) -> Self {
        Self(Plain(btf.map_or(TaskLayout::NONE, layout)))
    }

    /// Passes the layout to the programs.
    pub fn apply<'a>(&'a self, loader: &mut EbpfLoader<'a>) {
        loader.override_global("TASK", &self.0, true);
    }
}

/// The names of `inode`'s change time, by kernel: since 6.13, since 6.6, before; each with seconds and nanoseconds.
const CHANGE_TIMES: [[&[&str]; 2]; 3] = [
    [&["i_ctime_sec"], &["i_ctime_nsec"]],
    [&["__i_ctime", "tv_sec"], &["__i_ctime", "tv_nsec"]],
    [&["i_ctime", "tv_sec"], &["i_ctime", "tv_nsec"]],
];

fn layout(btf: &Btf) -> TaskLayout {
    let at = |name, path: &[&str]| btf.offset(name, path).unwrap_or(ABSENT);
    let mut times = CHANGE_TIMES.into_iter();
    let times = times.find_map(|[sec, nsec]| Some((btf.offset("inode", sec)?, btf.offset("inode", nsec)?)));
    let (i_ctime_sec, i_ctime_nsec) = times.unwrap_or((ABSENT, ABSENT));
    TaskLayout {
        group_leader: at("task_struct", &["group_leader"]),
        start_boottime: at("task_struct", &["start_boottime"]),
        tgid: at("task_struct", &["tgid"]),
        files: at("task_struct", &["files"]),
        fdt: at("files_struct", &["fdt"]),
        max_fds: at("fdtable", &["max_fds"]),
        fd: at("fdtable", &["fd"]),
        f_inode: at("file", &["f_inode"]),
        i_sb: at("inode", &["i_sb"]),
        i_ino: at("inode", &["i_ino"]),
        i_ctime_sec,
        i_ctime_nsec,
        s_dev: at("super_block", &["s_dev"]),
    }
}

/// Attaches to the mmap events.
pub fn attach(prober: &mut Prober, second_programs: bool) -> Vec<Probe> {
    second_programs::attach(
        prober,
        second_programs,
        Family::Mapping,
        [
            ["mmap_enter", "mmap_enter_twin", "sys_enter_mmap"],
            ["mmap_exit", "mmap_exit_twin", "sys_exit_mmap"],
        ],
    )
}

/// Attaches to `hsa_init`. By its entry, the library's API table is filled.
pub fn attach_init(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Option<Probe> {
    let init = resolution.exports.init.as_ref()?;
    let site = Site {
        point: init.probe,
        upper: 0,
        role: "hsa_init".to_owned(),
        found: Some((ResolverStep::Export, init.confidence)),
    };
    Some(prober.uprobe("runtime_init", Family::Mapping, target, site))
}
