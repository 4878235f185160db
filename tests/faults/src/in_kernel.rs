//! What eBPF the kernel holds: programs, links and maps, by their ids. A probe is a program that a link or a descriptor keeps.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use aya::{
    maps::loaded_maps,
    programs::{loaded_links, loaded_programs},
};

/// How long the kernel may take to give up what nobody holds any more: it takes probes away one after the other, about 0.1 s each.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is loaded at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded(BTreeMap<(&'static str, u32), String>);

impl Loaded {
    /// At this moment. Needs root.
    ///
    /// # Panics
    /// If the kernel does not tell.
    #[must_use]
    pub fn now() -> Self {
        let mut all = BTreeMap::new();
        for program in loaded_programs() {
            // One that went away between two looks.
            let Ok(program) = program else { continue };
            let name = program.name_as_str().unwrap_or_default().to_owned();
            all.insert(("program", program.id()), name);
        }
        for link in loaded_links().flatten() {
            all.insert(("link", link.id()), format!("of program {}", link.program_id()));
        }
        for map in loaded_maps().flatten() {
            all.insert(("map", map.id()), map.name_as_str().unwrap_or_default().to_owned());
        }
        Self(all)
    }

    /// What has come since, a line each.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<String> {
        let new = self.0.iter().filter(|(key, _)| !before.0.contains_key(key));
        new.map(|((kind, id), name)| format!("{kind} {id} {name}")).collect()
    }

    /// Waits until nothing is loaded that was not at this moment.
    ///
    /// # Errors
    /// What is left after a minute.
    pub fn comes_back(&self) -> Result<(), String> {
        let began = Instant::now();
        loop {
            let left = Self::now().since(self);
            if left.is_empty() {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("left in the kernel: {}", left.join(", ")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
