//! `scheduler`: the required scheduler maps the user queues of every GPU on which compute queues were created (of every GPU of
//! the machine if these GPUs are unknown). Fails if another scheduler does; inconclusive if there is no evidence.

use crate::words::count;
use std::collections::BTreeSet;

use super::Rule;
use crate::tables::Fact;
use crate::verify::context::{Context, Device};
use crate::verify::finding::{Finding, Offenders};
use crate::verify::policy::Scheduler;
use crate::verify::verdict::{Offender, Outcome, RuleVerdict};
use crate::words::Named;

/// `gfx_target_version` of the first GPUs with MES (gfx11): `amdgpu_discovery_set_mes_ip_blocks` of the driver.
const FIRST_MES: u32 = 110_000;

pub(super) struct InUse {
    wanted: Scheduler,
    /// GPUs on which compute queues were created.
    used: BTreeSet<u32>,
    /// Whether there are compute queues whose GPU is unknown.
    unknown: bool,
}

impl InUse {
    pub(super) fn new(wanted: Scheduler) -> Self {
        Self {
            wanted,
            used: BTreeSet::new(),
            unknown: false,
        }
    }
}

impl Rule for InUse {
    fn add(&mut self, fact: &Fact) {
        if let Fact::Queue(queue) = fact
            && queue.kind.starts_with("compute")
        {
            self.used.extend(queue.gpu_id);
            self.unknown |= queue.gpu_id.is_none();
        }
    }

    fn finish(self: Box<Self>, context: &Context) -> RuleVerdict {
        let mut finding = Finding::default();
        let wanted = self.wanted;
        let all = self.unknown || self.used.is_empty();
        let devices: Vec<&Device> = context
            .devices
            .iter()
            .filter(|device| all || self.used.contains(&device.gpu_id))
            .collect();
        let foreign = self
            .used
            .iter()
            .filter(|id| !context.devices.iter().any(|d| d.gpu_id == **id))
            .count();
        if devices.is_empty() || foreign > 0 {
            finding.lack(
                "the KFD topology of the GPUs in use is not known",
                "KFD topology",
                "check that /sys/devices/virtual/kfd/kfd/topology is readable, and record again",
            );
        }
        let (mut others, mut untold) = (Offenders::default(), Offenders::default());
        for device in &devices {
            let version = device.gfx_target_version;
            let evidence = device.evidence.join("; ");
            let told = device.scheduler.filter(|_| !device.evidence.is_empty());
            let name = told.map_or("unknown", |it| it.name());
            let offender = || Offender {
                what: format!("{}: scheduler {name} ({evidence})", device.name),
                gpu_id: Some(device.gpu_id),
                ..Offender::default()
            };
            match told {
                None => untold.add(offender),
                Some(scheduler) if scheduler != wanted => others.add(offender),
                // The claim is not supported by its own evidence.
                Some(Scheduler::Mes) if version < FIRST_MES => untold.add(offender),
                Some(_) => finding.note(format!("{}: {evidence}", device.name)),
            }
        }
        finding.blame(Outcome::Fail, others, |n| {
            format!(
                "the {} does not schedule {} in use",
                wanted.name().to_uppercase(),
                count(n, "GPU")
            )
        });
        finding.blame(Outcome::Inconclusive, untold, |n| {
            format!("the scheduler of {} in use is uncertain", count(n, "GPU"))
        });
        if context.simulated.is_some() {
            finding.note("the GPU is simulated: the scheduler is the simulator's claim");
        }
        finding.finish("scheduler", || {
            format!(
                "the {} schedules the user queues of {} in use",
                wanted.name().to_uppercase(),
                count(devices.len() as u64, "GPU")
            )
        })
    }
}
