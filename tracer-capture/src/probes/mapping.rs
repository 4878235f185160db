//! Executable mappings, and the entry of `hsa_init`: the places where processes are paused.

use tracer_common::{offset::ABSENT, pause::TaskLayout};

use super::{Plain, Prober, Site, Target, second_programs};
use crate::{
    inventory::Probe,
    kernel::btf::Btf,
    runtime::resolver::{Resolution, ResolverStep},
};
use tracer_core::family::Family;

/// Returns the offsets, in the kernel's structures, of what the programs read about processes and files, from the kernel's BTF. A kernel
/// without BTF refuses the programs.
#[must_use]
pub fn tasks(btf: Option<&Btf>) -> Plain<TaskLayout> {
    Plain(btf.map_or(TaskLayout::NONE, layout))
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

/// Attaches to the return of mmap.
pub fn attach(prober: &mut Prober, second_programs: bool) -> Vec<Probe> {
    let events = [["mmap_exit", "mmap_exit_twin", "sys_exit_mmap"]];
    second_programs::attach(prober, second_programs, Family::Mapping, events)
}

/// Attaches to `hsa_init`. By its entry, the library's API table is filled.
pub fn attach_init(prober: &mut Prober, target: &Target<'_>, resolution: &Resolution) -> Option<Probe> {
    let init = resolution.exports.init.as_ref()?;
    let site = Site {
        role: "hsa_init".to_owned(),
        ..Site::of(init, init.probe, ResolverStep::Export)
    };
    Some(prober.uprobe("runtime_init", Family::Mapping, target, site))
}
