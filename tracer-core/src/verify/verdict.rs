//! The verdict of a judge, in the form that is written. Names and order are stable, and `null` means unknown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The outcome of a rule, or of all rules. The order is the precedence: the greatest outcome of all rules is the overall outcome.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Outcome {
    /// The evidence exists, and says that the rule holds.
    #[default]
    Pass,
    /// The rule holds, but something should be checked.
    Warn,
    /// The evidence that the rule needs does not exist.
    Inconclusive,
    /// The evidence says that the rule does not hold.
    Fail,
}

/// The verdict on a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// Name of the policy.
    pub policy: String,
    /// Fail if any rule fails, else inconclusive if any is inconclusive, else warn if any warns, else pass.
    pub outcome: Outcome,
    /// The evidence that the devices were simulated. `null` does not claim that the devices were real.
    pub simulated: Option<String>,
    /// The rules, in the order of the policy's documentation.
    pub rules: Vec<RuleVerdict>,
}

/// The verdict on one rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RuleVerdict {
    /// Name of the rule.
    pub rule: String,
    /// Outcome of the rule.
    pub outcome: Outcome,
    /// The reason for the outcome, in a sentence.
    pub sentence: String,
    /// Counts; `null` if tracer did not watch what is counted.
    pub counts: BTreeMap<String, Option<u64>>,
    /// The first offenders against the rule.
    pub offenders: Vec<Offender>,
    /// Number of further offenders.
    pub more_offenders: u64,
    /// Evidence that was missing, and how to get it.
    pub missing: Vec<Missing>,
    /// Further information; it did not decide the outcome.
    pub notes: Vec<String>,
}

/// Something that violates a rule, or that prevents a decision. Fields that do not apply are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offender {
    /// What the offender is.
    pub what: String,
    /// Queue, by its number in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<u32>,
    /// First packet index in that queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Number of indexes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Ring of the kernel driver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    /// KFD gpu id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_id: Option<u32>,
    /// Process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Time, CLOCK_MONOTONIC ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<u64>,
}

/// Evidence that was missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Missing {
    /// The source that would have had it.
    pub source: String,
    /// How to get it.
    pub fix: String,
}

impl std::fmt::Display for Offender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.what)?;
        let mut number = |name: &str, n: Option<u64>| n.map_or(Ok(()), |n| write!(f, ", {name} {n}"));
        number("queue", self.queue.map(u64::from))?;
        number("index", self.index)?;
        number("count", self.count)?;
        number("gpu_id", self.gpu_id.map(u64::from))?;
        number("pid", self.pid.map(u64::from))?;
        number("tid", self.tid.map(u64::from))?;
        number("at ns", self.time_ns)?;
        let ring = self.ring.as_ref();
        ring.map_or(Ok(()), |ring| write!(f, ", ring {ring}"))
    }
}
