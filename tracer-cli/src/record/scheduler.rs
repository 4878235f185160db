//! What schedules the queues: the topology's value, confirmed or corrected by calls of driver functions.

use std::collections::BTreeMap;

use tracer_core::summary::{DriverCalls, Function};
use tracer_core::words::Named;
use tracer_store::manifest::{Device, SchedulerKind};

/// Returns whether a function of this name is a sign of a scheduler.
type IsSign = fn(&str) -> bool;

/// Functions that run only under one scheduler (drivers/gpu/drm/amd/amdkfd/kfd_device_queue_manager.c and amdgpu/mes_v1*.c).
const SIGNS: [(SchedulerKind, IsSign); 3] = [
    (SchedulerKind::Mes, |name| {
        name == "add_queue_mes" || name.starts_with("mes_v") && name.ends_with("_add_hw_queue")
    }),
    (SchedulerKind::Hws, |name| name == "pm_send_runlist"),
    (SchedulerKind::Nohws, |name| name == "create_queue_nocpsch"),
];

/// Adds the evidence of driver function calls to each GPU. Where the calls contradict the topology, the calls are right.
///
/// A call does not name its GPU. If the machine has GPUs with different schedulers, a call confirms the GPUs that it fits, and
/// contradicts none.
pub fn confirm(devices: &mut [Device], simulated: bool, calls: &DriverCalls) {
    let seen: Vec<(SchedulerKind, String)> = SIGNS
        .into_iter()
        .filter_map(|(kind, is_sign)| Some((kind, sign(is_sign, &calls.by_function)?)))
        .collect();
    let alike = devices
        .windows(2)
        .all(|pair| pair[0].scheduler.kind == pair[1].scheduler.kind);
    for device in devices {
        let scheduler = &mut device.scheduler;
        let fitting = seen.iter().find(|(kind, _)| *kind == scheduler.kind);
        scheduler.evidence.push(match (fitting, &seen[..]) {
            // A simulated GPU has no driver whose functions could be called for it.
            _ if simulated => "not confirmed by kernel functions: the GPU is simulated".to_owned(),
            (Some((_, sign)), _) => format!("confirmed by {sign}"),
            (None, [(kind, sign)]) if alike => {
                let topology = std::mem::replace(&mut scheduler.kind, *kind);
                format!("not {} as the topology suggests: {sign}", topology.name())
            }
            _ if calls.total.is_none() => "not confirmed by kernel functions: none could be watched".to_owned(),
            _ => "not confirmed by kernel functions: none was called by a traced process".to_owned(),
        });
    }
}

/// Returns in words which of these functions the traced processes called.
fn sign(is_sign: IsSign, calls: &BTreeMap<String, Function>) -> Option<String> {
    let called: Vec<String> = calls
        .iter()
        .filter(|(name, function)| function.traced > 0 && is_sign(name))
        .map(|(name, function)| format!("{} calls of {name}", function.traced))
        .collect();
    (!called.is_empty()).then(|| called.join(", "))
}

#[cfg(test)]
mod tests {
    use tracer_store::manifest::Scheduler;

    use super::*;

    fn device(kind: SchedulerKind) -> Device {
        Device {
            gpu_id: 1,
            name: "gfx1100".into(),
            gfx_target_version: 110_000,
            scheduler: Scheduler {
                kind,
                evidence: vec!["topology".into()],
            },
            ..Device::default()
        }
    }

    fn calls(names: &[(&str, u64)]) -> DriverCalls {
        let function = |traced| Function {
            count: traced + 1,
            traced,
            ns: None,
        };
        DriverCalls {
            total: Some(9),
            by_function: names
                .iter()
                .map(|(name, n)| ((*name).to_owned(), function(*n)))
                .collect(),
        }
    }

    fn confirmed(kinds: &[SchedulerKind], simulated: bool, calls: &DriverCalls) -> Vec<(SchedulerKind, String)> {
        let mut devices: Vec<Device> = kinds.iter().map(|kind| device(*kind)).collect();
        confirm(&mut devices, simulated, calls);
        let shown = |device: Device| (device.scheduler.kind, device.scheduler.evidence.concat());
        devices.into_iter().map(shown).collect()
    }

    #[test]
    fn a_call_that_fits_confirms() {
        let [(kind, evidence)] = &confirmed(&[SchedulerKind::Mes], false, &calls(&[("add_queue_mes", 2)]))[..] else {
            panic!("not one");
        };
        assert_eq!(*kind, SchedulerKind::Mes);
        assert!(evidence.contains("confirmed by 2 calls of add_queue_mes"), "{evidence}");
    }

    #[test]
    fn a_call_that_does_not_fit_is_right() {
        let devices = confirmed(&[SchedulerKind::Hws; 2], false, &calls(&[("create_queue_nocpsch", 1)]));
        for (kind, evidence) in devices {
            assert_eq!(kind, SchedulerKind::Nohws);
            assert!(evidence.contains("not hws as the topology suggests"), "{evidence}");
        }
    }

    #[test]
    fn among_gpus_of_several_schedulers_it_contradicts_none() {
        let kinds = [SchedulerKind::Mes, SchedulerKind::Hws];
        let devices = confirmed(&kinds, false, &calls(&[("pm_send_runlist", 3)]));
        assert_eq!(devices[0].0, SchedulerKind::Mes);
        assert!(devices[0].1.contains("not confirmed"), "{}", devices[0].1);
        assert!(devices[1].1.contains("confirmed by 3 calls"), "{}", devices[1].1);
    }

    #[test]
    fn calls_of_others_and_of_nothing_confirm_nothing() {
        for (simulated, calls, words) in [
            (false, calls(&[("add_queue_mes", 0)]), "none was called"),
            (true, calls(&[("add_queue_mes", 5)]), "simulated"),
            (
                false,
                DriverCalls {
                    total: None,
                    ..calls(&[])
                },
                "none could be watched",
            ),
        ] {
            let devices = confirmed(&[SchedulerKind::Mes], simulated, &calls);
            assert!(
                devices[0].1.contains("not confirmed") && devices[0].1.contains(words),
                "{}",
                devices[0].1
            );
        }
    }
}
