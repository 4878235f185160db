//! Comparison of what the backends without eBPF capture of a device: queues, packets, doorbells and ioctls. They do not watch copies,
//! creations of queues by programs, times by the GPU's clock, or what no doorbell announces.

use std::collections::BTreeSet;

use tracer_core::{
    backend::Backend,
    tables::{Fact, Ioctl, Unread},
};

use super::{Compared, doorbells, ioctls, names, no_losses, packets, product, queues, rung};
use crate::scenario::Run;

/// Compares everything that a recording by this backend has. Panics at the first difference.
pub fn without_ebpf(run: &Run, backend: Backend) -> Compared {
    let manifest = run.trace.manifest();
    assert_eq!(manifest.backend, Some(backend));
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
    arguments(run, backend);
    rung::own(run);
    compared.named = names::own(run);
    compared.named_by_device = names::of_device(run);
    rung::counts(run);
    product(run);
    compared
}

/// Compares a recording of a burst, during which the recorder may have come so late that slots were used again. Then it compares
/// the doorbells, and the trace must say how many packets are unread.
pub fn burst_without_ebpf(run: &Run, backend: Backend) -> Compared {
    if run.queues().all(|queue| queue.unread == 0) {
        return without_ebpf(run, backend);
    }
    assert_eq!(run.trace.manifest().backend, Some(backend));
    no_losses(run);
    let mut compared = Compared::default();
    for (truth, queue) in queues(run).iter().filter(|(truth, _)| truth.is_aql()) {
        compared.queues += 1;
        compared.doorbells += doorbells(run, truth, queue);
        let packets = queue.dispatches + queue.other_packets + queue.unread;
        assert_eq!(
            (packets, queue.published),
            (truth.packets.len() as u64, packets),
            "{queue:?}"
        );
        compared.dispatches += truth.packets.len();
    }
    compared.ioctls = ioctls(run);
    compared
}

/// Checks which arguments of ioctls are unread.
fn arguments(run: &Run, backend: Backend) {
    let pids: BTreeSet<u32> = run.truth.ioctls.iter().map(|ioctl| ioctl.pid).collect();
    let own = run.facts.iter().filter_map(|fact| match fact {
        Fact::Ioctl(ioctl) if pids.contains(&ioctl.pid) => Some(ioctl),
        _ => None,
    });
    let mut own: Vec<&Ioctl> = own.collect();
    own.sort_by_key(|ioctl| ioctl.enter_ns);
    for (place, ioctl) in own.iter().enumerate() {
        if ioctl.arg_in.is_some() && ioctl.arg_out.is_some() {
            continue;
        }
        let is_expected = match backend {
            // libdrm allocates the argument of this one. Those of all other calls are variables on the caller's stack.
            Backend::Perf => ioctl.name == "DRM_VERSION",
            // The C library gets its probes after the first ioctl, before the first queue.
            _ => !own[..place]
                .iter()
                .any(|before| before.pid == ioctl.pid && before.name == "CREATE_QUEUE"),
        };
        assert!(is_expected, "{ioctl:?}");
    }
}
