//! The eBPF objects in the kernel: programs, links and maps, by their ids. A probe is a program that a link or a descriptor keeps.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use aya::{
    maps::loaded_maps,
    programs::{loaded_links, loaded_programs},
};

/// The time that the kernel may take to release unused objects: it removes probes one after the other, about 0.1 s each.
const PATIENCE: Duration = Duration::from_secs(60);

/// The objects that are loaded at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded(BTreeMap<(&'static str, u32), String>);

impl Loaded {
    /// Returns the objects that are loaded now. Needs root.
    ///
    /// # Panics
    /// Panics if the kernel does not list them.
    #[must_use]
    pub fn now() -> Self {
        let mut all = BTreeMap::new();
        for program in loaded_programs() {
            // The program was unloaded between two calls.
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

    /// Returns the objects that were loaded since, one per line.
    #[must_use]
    pub fn since(&self, before: &Self) -> Vec<String> {
        let new = self.0.iter().filter(|(key, _)| !before.0.contains_key(key));
        new.map(|((kind, id), name)| format!("{kind} {id} {name}")).collect()
    }

    /// Waits until no object is loaded that was not loaded at this moment.
    ///
    /// # Errors
    /// Returns the objects that are left after a minute.
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
