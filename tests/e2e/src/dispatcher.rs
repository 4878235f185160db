//! The dispatcher's own log: what it submitted, packet by packet, or each call of HIP that it made.

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
    /// Of a dispatch: its kernel, if the dispatcher knows it.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Whether the program stored to the doorbell itself: no function of the runtime ran.
    pub direct: bool,
    /// Before its index was reserved.
    pub reserve_ns: u64,
    /// After its doorbell was stored.
    pub time_ns: u64,
}

/// A call of HIP, as the dispatcher made it; what does not apply to it is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// Name of the function.
    pub call: String,
    /// Thread.
    pub tid: u32,
    /// Before the call.
    pub start_ns: u64,
    /// After it.
    pub end_ns: u64,
    /// `hipError_t`.
    pub result: u32,
    /// Stream, hexadecimal; 0x0 is the default one.
    pub stream: Option<String>,
    /// What was created, looked up, waited for or released, hexadecimal.
    pub object: Option<String>,
    /// Bytes that are copied, filled or allocated.
    pub bytes: Option<u64>,
    /// `host-to-device`, `device-to-host` or `device-to-device`.
    pub direction: Option<String>,
    /// Name of the kernel that is launched.
    pub kernel: Option<String>,
    /// Its work items.
    pub grid: Option<[u32; 3]>,
    /// Its work items a workgroup.
    pub workgroup: Option<[u32; 3]>,
    /// Kernels of a graph that is launched.
    pub kernels: Option<u32>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// In no order.
    pub submissions: Vec<Submission>,
    /// In the order in which they returned.
    pub calls: Vec<Call>,
}

/// A line of the log.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Call(Call),
    Submission(Submission),
}

impl Log {
    /// Reads a log.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).expect("the dispatcher's log");
        let mut log = Self::default();
        for line in text.lines() {
            match serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")) {
                Line::Call(call) => log.calls.push(call),
                Line::Submission(submission) => log.submissions.push(submission),
            }
        }
        log
    }
}

fn hex<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    u64::from_str_radix(text.trim_start_matches("0x"), 16).map_err(serde::de::Error::custom)
}
