//! Comparison of what the perf backend captures of a device: queues, packets, doorbells and ioctls. It does not watch copies,
//! creations of queues by programs, times by the GPU's clock, or what no doorbell announces.

use std::collections::BTreeSet;

use tracer_core::{
    backend::Backend,
    tables::{Fact, Unread},
};

use super::{Compared, doorbells, ioctls, names, no_losses, packets, product, queues, rung};
use crate::scenario::Run;

/// Compares everything that the perf backend captures. Panics at the first difference.
pub fn by_perf(run: &Run) -> Compared {
    let manifest = run.trace.manifest();
    assert_eq!(manifest.backend, Some(Backend::Perf));
    no_losses(run);
    let watched = ["doorbells", "packets", "ioctls", "code_objects"];
    for name in watched {
        assert!(
            manifest.capabilities.iter().any(|capability| capability == name),
            "{name}: {manifest:?}"
        );
    }
    for name in [
        "sdma_doorbells",
        "reserves",
        "driver",
        "unseen",
        "hsa_queues",
        "requests",
        "api",
    ] {
        assert!(
            !manifest.capabilities.iter().any(|capability| capability == name),
            "{name}: {manifest:?}"
        );
    }
    let pairs = queues(run);
    let mut compared = Compared {
        queues: pairs.len(),
        ..Compared::default()
    };
    for (truth, queue) in pairs.iter().filter(|(truth, _)| truth.is_aql()) {
        packets(run, truth, queue, &mut compared);
        compared.doorbells += doorbells(run, truth, queue);
        assert_eq!(queue.unread, 0, "{queue:?}");
        // Samples show progress, but no probe samples the end of a queue.
        assert!(queue.unseen.is_none_or(|unseen| unseen == 0), "{queue:?}");
        assert_eq!(queue.watched_to_end, Some(false), "{queue:?}");
    }
    let unread = |unread: Option<Unread>| unread.is_some();
    assert!(!run.packets().any(|packet| unread(packet.unread)));
    compared.ioctls = ioctls(run);
    let pids: BTreeSet<u32> = run.truth.ioctls.iter().map(|ioctl| ioctl.pid).collect();
    let unread = run.facts.iter().filter_map(|fact| match fact {
        Fact::Ioctl(ioctl) if pids.contains(&ioctl.pid) => Some(ioctl),
        _ => None,
    });
    let unread = unread.filter(|ioctl| ioctl.arg_in.is_none() || ioctl.arg_out.is_none());
    // libdrm allocates the argument of this one. Those of all other calls are variables on the caller's stack.
    let unread: Vec<&str> = unread.map(|ioctl| ioctl.name.as_ref()).collect();
    assert!(unread.iter().all(|name| *name == "DRM_VERSION"), "{unread:?}");
    rung::own(run);
    compared.named = names::own(run);
    compared.named_by_device = names::of_device(run);
    rung::counts(run);
    product(run);
    compared
}
