//! The argument of an ioctl, where a C library calls the kernel: for backends whose samples of system calls lack it.

use super::{Prober, Site, Target};
use crate::{
    inventory::Probe,
    runtime::resolver::{IoctlCall, ProbePoint},
};
use tracer_core::family::Family;

/// Attaches to both places, first to the later one: an ioctl whose argument was seen at its entry waits for that of its exit.
pub fn attach(prober: &mut Prober, target: &Target<'_>, call: IoctlCall) -> Vec<Probe> {
    let mut at = |program, point: ProbePoint, role: &str| {
        let site = Site {
            point,
            upper: 0,
            role: role.to_owned(),
            found: None,
        };
        prober.uprobe(program, Family::Ioctl, target, site)
    };
    let exit = at("ioctl_argument_out", call.exit, "arguments of ioctls at their exit");
    if !exit.attached() {
        return vec![exit];
    }
    vec![
        exit,
        at("ioctl_argument_in", call.entry, "arguments of ioctls at their entry"),
    ]
}
