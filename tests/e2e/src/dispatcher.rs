//! The dispatcher's own log: what it submitted, packet by packet.

use std::{fs, path::Path};

use serde::Deserialize;

/// A packet, as the dispatcher submitted it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Submission {
    /// Address of the queue.
    #[serde(deserialize_with = "hex")]
    pub queue: u64,
    /// Index in its queue.
    pub index: u64,
    /// Value of the doorbell that published it.
    pub doorbell: u64,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// In no order.
    pub submissions: Vec<Submission>,
}

impl Log {
    /// Reads a log.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the dispatcher's log");
        let submissions = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("a line of the log"))
            .collect();
        Self { submissions }
    }
}

fn hex<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(serde::de::Error::custom)
}
