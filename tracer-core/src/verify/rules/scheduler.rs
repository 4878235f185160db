//! `scheduler`: the required scheduler maps the user queues of every GPU on which compute queues were created (of every GPU of
//! the machine if these GPUs are unknown). Fails if another scheduler does; inconclusive if there is no evidence.

use std::collections::BTreeSet;

use super::{Counts, Rule};
use crate::losses::TOPOLOGY_UNREAD;
use crate::tables::Fact;
use crate::verify::context::{Context, Device};
use crate::verify::finding::{Finding, Offenders};
use crate::verify::policy::Scheduler;
use crate::verify::verdict::{Offender, Outcome};
use crate::words::{Named, count};

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

    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        let (wanted, name) = (self.wanted, self.wanted.name().to_uppercase());
        let all = self.unknown || self.used.is_empty();
        let in_use = |device: &&Device| all || self.used.contains(&device.gpu_id);
        let devices: Vec<&Device> = context.devices.iter().filter(in_use).collect();
        let known = |id: &u32| context.devices.iter().any(|device| device.gpu_id == *id);
        finding.require(
            !devices.is_empty() && self.used.iter().all(known),
            "the KFD topology of the GPUs in use is not known",
            "KFD topology",
            "check that /sys/devices/virtual/kfd/kfd/topology is readable, and record again",
        );
        finding.require(
            !context.losses.contains_key(TOPOLOGY_UNREAD),
            "the KFD topology of a process could not be read",
            "KFD topology",
            "check that /sys/devices/virtual/kfd/kfd/topology is readable in its container, and record again",
        );
        let (mut others, mut untold) = (Offenders::default(), Offenders::default());
        for device in &devices {
            let version = device.gfx_target_version;
            let evidence = device.evidence.join("; ");
            let known = device.scheduler.filter(|_| !device.evidence.is_empty());
            let found = known.map_or("unknown", Named::name);
            let offender = || Offender {
                what: format!("{}: scheduler {found} ({evidence})", device.name),
                gpu_id: Some(device.gpu_id),
                ..Offender::default()
            };
            // Containers can show different GPUs under one id, and a queue names its GPU by the id alone.
            let differs = |other: &&Device| other.gpu_id == device.gpu_id && other.scheduler != device.scheduler;
            match known {
                Some(_) if devices.iter().any(differs) => untold.add(offender),
                None => untold.add(offender),
                Some(scheduler) if scheduler != wanted => others.add(offender),
                // The claim is not supported by its own evidence.
                Some(Scheduler::Mes) if version < FIRST_MES => untold.add(offender),
                Some(_) => finding.note(format!("{}: {evidence}", device.name)),
            }
        }
        finding.blame(Outcome::Fail, others, "GPU", |n| {
            format!("the {name} does not schedule {n} in use")
        });
        finding.blame(Outcome::Inconclusive, untold, "GPU", |n| {
            format!("the scheduler of {n} in use is uncertain")
        });
        if context.simulated.is_some() {
            finding.note("the GPU is simulated: the scheduler is the simulator's claim");
        }
        let gpus = count(devices.len() as u64, "GPU");
        format!("the {name} schedules the user queues of {gpus} in use")
    }
}
