//! Comparison of ioctls.

use std::collections::{BTreeMap, BTreeSet};

use tracer_core::tables::{Fact, Ioctl};

use super::unhex;
use crate::{scenario::Run, truth};

/// Compares every ioctl of every thread, in order, with arguments and result.
pub fn ioctls(run: &Run) -> usize {
    let pids: BTreeSet<u32> = run.truth.ioctls.iter().map(|ioctl| ioctl.pid).collect();
    let mut truth: BTreeMap<u32, Vec<&truth::Ioctl>> = BTreeMap::new();
    for ioctl in &run.truth.ioctls {
        truth.entry(ioctl.tid).or_default().push(ioctl);
    }
    let mut traced: BTreeMap<u32, Vec<&Ioctl>> = BTreeMap::new();
    for fact in &run.facts {
        if let Fact::Ioctl(ioctl) = fact
            && pids.contains(&ioctl.pid)
        {
            traced.entry(ioctl.tid).or_default().push(ioctl);
        }
    }
    let mut count = 0;
    for (tid, mut truth) in truth {
        truth.sort_by_key(|ioctl| ioctl.enter_ns);
        let mut own = traced.remove(&tid).unwrap_or_default();
        own.sort_by_key(|ioctl| ioctl.enter_ns);
        // The device did not answer an ioctl that a signal ended on the way to it.
        let (own, open): (Vec<&Ioctl>, Vec<&Ioctl>) = own.into_iter().partition(|ioctl| ioctl.ret.is_some());
        if own.len() != truth.len() {
            let has = |truth: &truth::Ioctl, own: &Ioctl| (own.enter_ns..=own.exit_ns).contains(&truth.enter_ns);
            let missing: Vec<_> = truth
                .iter()
                .filter(|truth| !own.iter().any(|own| has(truth, own)))
                .collect();
            let more: Vec<_> = own
                .iter()
                .filter(|own| !truth.iter().any(|truth| has(truth, own)))
                .collect();
            // Of all calls, the message would be too long for a log of CI.
            panic!("thread {tid}: missing {missing:?}; not of the device {more:?}; without a result {open:?}");
        }
        for (truth, own) in truth.into_iter().zip(own) {
            ioctl_fields(truth, own);
            count += 1;
        }
    }
    traced.retain(|_, calls| calls.iter().any(|ioctl| ioctl.ret.is_some()));
    assert!(traced.is_empty(), "calls that the device does not know: {traced:?}");
    count
}

fn ioctl_fields(truth: &truth::Ioctl, own: &Ioctl) {
    assert_eq!(own.cmd, truth.cmd, "{truth:?}\n{own:?}");
    assert_eq!(own.pid, truth.pid);
    assert_eq!(own.device, if truth.dev == "kfd" { "kfd" } else { "drm" }, "{truth:?}");
    assert_eq!(own.ret, Some(truth.ret), "{truth:?}\n{own:?}");
    assert!(
        own.enter_ns <= truth.enter_ns && truth.enter_ns <= own.exit_ns,
        "{truth:?}\n{own:?}"
    );
    let in_direction = own.cmd >> 30 & 1 != 0;
    let out_direction = own.cmd >> 31 != 0;
    if in_direction && let Some(bytes) = &own.arg_in {
        same_bytes(bytes, &truth.arg_in, truth);
    }
    if out_direction && let Some(bytes) = &own.arg_out {
        same_bytes(bytes, &truth.arg_out, truth);
    }
}

/// Compares argument bytes. The trace keeps only the start of long arguments.
fn same_bytes(own: &[u8], truth: &str, of: &truth::Ioctl) {
    let truth = unhex(truth);
    let common = own.len().min(truth.len());
    assert_eq!(own[..common], truth[..common], "{of:?}");
    assert!(common == truth.len() || common == 128, "{} bytes of {of:?}", own.len());
}
