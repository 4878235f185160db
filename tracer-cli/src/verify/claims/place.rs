//! Where and when claims were tested.

use std::{ffi::OsString, fs, path::Path};

use serde::Deserialize;
use tracer_claims::{Control, Gpu, Observed};
use tracer_store::manifest::{Device, Manifest};

use super::recorder::Done;
use crate::record::manifest::scheduler;

/// What recordings say about the place.
#[derive(Default)]
pub struct Place {
    manifest: Option<Manifest>,
    summary: Option<Summary>,
    control: Option<Control>,
}

/// The dispatcher's description of its environment. The other fields of its summary are not needed here.
#[derive(Deserialize)]
struct Summary {
    runtime: Runtime,
    agent: Agent,
}

#[derive(Deserialize)]
struct Runtime {
    library: String,
    version: String,
}

#[derive(Deserialize)]
struct Agent {
    name: String,
    gfx: String,
}

impl Place {
    /// Takes the observations of the control command.
    pub fn control(&mut self, command: &str, observed: &Observed) {
        self.control = Some(Control {
            command: command.to_owned(),
            jobs: observed.ring_jobs(),
        });
    }

    /// Takes the observations of a scenario. The first one counts.
    pub fn scenario(&mut self, done: &Done) {
        let parse = |line: &str| serde_json::from_str(line).ok();
        if self.summary.is_none() {
            self.summary = done.said.lines().find_map(parse);
        }
        self.manifest.get_or_insert_with(|| done.manifest.clone());
    }

    /// Returns the product name of the GPU.
    pub fn product(&self) -> Option<String> {
        self.summary.as_ref().map(|summary| summary.agent.name.clone())
    }

    /// Returns the place.
    pub fn finish(self, dispatcher: &[OsString]) -> tracer_claims::Place {
        let Some(manifest) = self.manifest else {
            return tracer_claims::Place::default();
        };
        let has = |name: &str| manifest.capabilities.iter().any(|word| word == name);
        let product = |gpu: &Device| {
            let agent = self.summary.as_ref().map(|summary| &summary.agent);
            let own = agent
                .filter(|agent| agent.gfx == gpu.name)
                .map(|agent| agent.name.clone());
            own.or_else(|| gpu.product.clone())
        };
        let gpu = |gpu: &Device| Gpu {
            name: gpu.name.clone(),
            product: product(gpu),
            gfx_target_version: gpu.gfx_target_version,
            scheduler: scheduler(gpu),
            evidence: gpu.scheduler.evidence.clone(),
        };
        tracer_claims::Place {
            time: manifest.started.time.clone(),
            tracer: manifest.tool.version.clone(),
            kernel: manifest.host.kernel_release.clone(),
            machine: machine(),
            runtime: self
                .summary
                .as_ref()
                .map(|summary| format!("{} {}", summary.runtime.library, summary.runtime.version)),
            dispatcher: shown(dispatcher),
            gpus: manifest.devices.iter().map(gpu).collect(),
            simulated: manifest.simulated.clone(),
            ring_events: has("kernel_rings"),
            driver_functions: has("driver"),
            control: self.control,
        }
    }
}

/// Formats a command for people, without the folders of its words: they are private to this machine.
fn shown(command: &[OsString]) -> String {
    let name = |word: &OsString| {
        let path = Path::new(word);
        let name = path.file_name().filter(|_| path.is_absolute());
        name.unwrap_or(word).to_string_lossy().into_owned()
    };
    command.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Returns the firmware's name of the machine, which shows whether it is virtual.
fn machine() -> Option<String> {
    let read = |name: &str| fs::read_to_string(format!("/sys/class/dmi/id/{name}")).ok();
    let words = [read("sys_vendor")?, read("product_name")?];
    let name = words.each_ref().map(|word| word.trim()).join(" ");
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
