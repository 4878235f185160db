//! The dispatcher's own log: the packets it submitted, or the HIP calls it made.

use std::{fs, path::Path};

use serde::Deserialize;

/// A packet as the dispatcher submitted it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Submission {
    /// The address of the queue.
    #[serde(deserialize_with = "hex")]
    pub queue: u64,
    /// The packet's index in its queue.
    pub index: u64,
    /// The value of the doorbell that published it.
    pub doorbell: u64,
    /// The kernel of a dispatch, if the dispatcher knows it.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Whether the program itself stored to the doorbell, so that no function of the runtime ran.
    pub direct: bool,
    /// The time before its index was reserved.
    pub reserve_ns: u64,
    /// The time after its doorbell was stored.
    pub time_ns: u64,
}

/// A HIP call as the dispatcher made it. Fields that do not apply to it are `None`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Call {
    /// The name of the function.
    pub call: String,
    /// The thread.
    pub tid: u32,
    /// The time before the call.
    pub start_ns: u64,
    /// The time after the call.
    pub end_ns: u64,
    /// `hipError_t`.
    pub result: u32,
    /// The stream, hexadecimal; 0x0 is the default one.
    pub stream: Option<String>,
    /// The object that was created, looked up, waited for or released, hexadecimal.
    pub object: Option<String>,
    /// Bytes that are copied, filled or allocated.
    pub bytes: Option<u64>,
    /// `host-to-device`, `device-to-host` or `device-to-device`.
    pub direction: Option<String>,
    /// The name of the kernel that is launched.
    pub kernel: Option<String>,
    /// The work-items of the launch.
    pub grid: Option<[u32; 3]>,
    /// The work-items per workgroup.
    pub workgroup: Option<[u32; 3]>,
    /// The kernels of a graph that is launched.
    pub kernels: Option<u32>,
}

/// The whole log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The submissions, in no particular order.
    pub submissions: Vec<Submission>,
    /// The calls, in the order in which they returned.
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
