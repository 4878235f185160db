//! What a manifest says of a trace, for the metadata of an export.

use std::collections::BTreeMap;

use serde::Serialize;

/// What a reader of an export must know of the trace. The names of the fields are those of the metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct About {
    /// The tool that wrote the trace, with its version.
    pub tool: String,
    /// Name of the host.
    pub host: String,
    /// Release of its kernel.
    pub kernel: String,
    /// Architecture of the host.
    pub machine: String,
    /// Id of the boot, if it is known: times of traces with the same id can be compared.
    pub boot_id: Option<String>,
    /// The traced command, or what was traced instead.
    pub subject: String,
    /// Clocks at the start of the recording.
    pub started: Clocks,
    /// CLOCK_MONOTONIC at its end, ns; `None` if the recorder was killed.
    pub ended_ns: Option<u64>,
    /// Whether the recorder finished and wrote everything.
    pub complete: bool,
    /// Why the GPU is known to be simulated. `None` does not claim that it is not.
    pub simulated: Option<String>,
    /// Events lost, by source.
    pub losses: BTreeMap<String, u64>,
    /// Sources that were watched.
    pub watched: Vec<String>,
    /// Sources that were not watched: the export has nothing of them, which does not mean that nothing happened.
    pub not_watched: Vec<String>,
    /// Warnings of the recorder.
    pub warnings: Vec<String>,
    /// Parts of the trace that cannot be read, as far as this was known before they were read.
    pub damage: Vec<String>,
    /// GPUs, in the order of the manifest.
    pub gpus: Vec<Gpu>,
    /// The part of the trace that is exported.
    pub window: Window,
}

/// Clocks at one moment, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Clocks {
    /// CLOCK_MONOTONIC, the clock of every time in a trace.
    pub monotonic_ns: u64,
    /// CLOCK_BOOTTIME.
    pub boottime_ns: u64,
    /// CLOCK_REALTIME since 1970.
    pub realtime_ns: u64,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Gpu {
    /// The KFD's id of it.
    pub gpu_id: u32,
    /// Its target, such as `gfx942`; empty if it is unknown.
    pub name: String,
    /// What schedules its queues: `mes`, `hws`, `nohws`, or `unknown`.
    pub scheduler: String,
    /// Its product name, if it is known.
    pub product: Option<String>,
}

/// The times that are exported: from the first, and before the second. `None` is no limit. CLOCK_MONOTONIC, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Window {
    /// The first time.
    pub from_ns: Option<u64>,
    /// The time at which the window ends, exclusive.
    pub to_ns: Option<u64>,
}

impl Window {
    /// Returns whether a time is in the window.
    #[must_use]
    pub fn has(&self, time_ns: u64) -> bool {
        self.from_ns.is_none_or(|from| from <= time_ns) && !self.is_over(time_ns)
    }

    /// Returns whether a time is after the window.
    #[must_use]
    pub fn is_over(&self, time_ns: u64) -> bool {
        self.to_ns.is_some_and(|to| to <= time_ns)
    }
}

/// What a name says if the GPU is simulated: names are what a viewer shows first.
const SIMULATED: &str = " (SIMULATED GPU)";

impl About {
    /// Returns a name of a process or queue, which says if the GPU is simulated.
    pub(crate) fn named(&self, name: &str) -> String {
        match self.simulated {
            Some(_) => format!("{name}{SIMULATED}"),
            None => name.to_owned(),
        }
    }

    /// Returns when the export ends, ns, if its last row has this time: with the recording, or with the window.
    pub(crate) fn end_ns(&self, last_ns: u64) -> u64 {
        let end = self.ended_ns.unwrap_or(last_ns).max(last_ns);
        self.window.to_ns.map_or(end, |to| to.min(end))
    }

    /// Returns the metadata as names and texts, for formats whose metadata are texts. `damage` is what reading found.
    pub(crate) fn texts(&self, damage: &[String]) -> Vec<(&'static str, String)> {
        let list = |words: &[String]| {
            if words.is_empty() {
                "none".to_owned()
            } else {
                words.join("; ")
            }
        };
        let losses: Vec<String> = self.losses.iter().map(|(source, n)| format!("{source}: {n}")).collect();
        let gpus = self.gpus.iter().map(|gpu| {
            let Gpu {
                gpu_id,
                name,
                scheduler,
                product,
            } = gpu;
            let product = product.as_ref().map_or_else(String::new, |name| format!("{name}, "));
            format!("{gpu_id}: {product}{name}, scheduler {scheduler}")
        });
        let time = |time: Option<u64>| time.map_or_else(|| "unknown".to_owned(), |ns| ns.to_string());
        // An imported text does not name them.
        let named = |text: &str| if text.is_empty() { "unknown" } else { text }.to_owned();
        let limit = |time: Option<u64>| time.map_or_else(|| "none".to_owned(), |ns| ns.to_string());
        let damage: Vec<String> = if damage.is_empty() {
            self.damage.clone()
        } else {
            damage.to_vec()
        };
        vec![
            ("tool", self.tool.clone()),
            ("host", named(&self.host)),
            ("kernel", named(&self.kernel)),
            ("machine", named(&self.machine)),
            ("boot_id", self.boot_id.clone().unwrap_or_else(|| "unknown".to_owned())),
            ("subject", self.subject.clone()),
            ("started_monotonic_ns", self.started.monotonic_ns.to_string()),
            (
                "started_realtime_ns",
                time(Some(self.started.realtime_ns).filter(|&ns| ns != 0)),
            ),
            ("ended_monotonic_ns", time(self.ended_ns)),
            ("complete", self.complete.to_string()),
            (
                "simulated",
                self.simulated.clone().unwrap_or_else(|| "not known to be".to_owned()),
            ),
            ("losses", list(&losses)),
            ("watched", list(&self.watched)),
            ("not_watched", list(&self.not_watched)),
            ("warnings", list(&self.warnings)),
            ("damage", list(&damage)),
            ("gpus", list(&gpus.collect::<Vec<_>>())),
            ("from_monotonic_ns", limit(self.window.from_ns)),
            ("to_monotonic_ns", limit(self.window.to_ns)),
        ]
    }

    /// Returns 128 bits that differ between recordings: a hash (FNV-1a) of what identifies one.
    pub(crate) fn identity(&self) -> u128 {
        const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        let text = format!(
            "{:?} {} {} {}",
            self.boot_id, self.host, self.subject, self.started.monotonic_ns
        );
        let mix = |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(PRIME);
        text.bytes()
            .chain(self.started.realtime_ns.to_le_bytes())
            .fold(BASIS, mix)
    }
}
