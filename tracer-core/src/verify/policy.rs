//! What a policy can require. Built-in policies and the user's own policies have the same form: TOML, described in
//! docs/policies.md.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The built-in policies: the files in the `policies` folder beside this file.
const BUILT_IN: [(&str, &str); 4] = [
    ("mes-bypass", include_str!("policies/mes-bypass.toml")),
    ("doorbell-bypass", include_str!("policies/doorbell-bypass.toml")),
    ("hws", include_str!("policies/hws.toml")),
    ("ring-submission", include_str!("policies/ring-submission.toml")),
];

/// The requirements that a trace must meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policy {
    /// Name of the policy, as verdicts show it.
    pub name: String,
    /// The purpose of the policy, in a sentence.
    #[serde(default)]
    pub description: String,
    /// The rules that must hold.
    #[serde(default)]
    pub rules: Rules,
    /// Limits beyond which the policy fails.
    #[serde(default)]
    pub limits: Limits,
    /// Limits beyond which the policy warns.
    #[serde(default)]
    pub warnings: Warnings,
}

/// The rules that must hold. `sound-capture` and `dispatches` (there is something to judge) are rules of every policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rules {
    /// This scheduler maps the user queues of every GPU in use.
    pub scheduler: Option<Scheduler>,
    /// A doorbell that was seen published every index of every compute queue.
    pub coverage: bool,
    /// No traced process submitted a job on a `comp_*` or `gfx*` ring of the kernel driver.
    pub no_ring: bool,
    /// Between the reserve of a dispatch and its doorbell, its thread made no ioctl on a KFD or DRM device.
    pub no_syscall: Option<Scope>,
    /// Kernels are submitted as jobs on `comp_*` rings, and no kernel is submitted by a doorbell.
    pub ring_submission: bool,
    /// The recorded command succeeded. This rule is on unless it is set to false.
    pub command: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            scheduler: None,
            coverage: false,
            no_ring: false,
            no_syscall: None,
            ring_submission: false,
            command: true,
        }
    }
}

/// The dispatches whose reserve must be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Every dispatch. The rule is inconclusive if a reserve is unknown and the process made an ioctl after the earliest time at
    /// which that reserve can have happened.
    Every,
    /// The rule judges the dispatches that it can decide. It counts the others, and reports them as not judged. A reserve is
    /// unknown if another thread made it than the thread that rang the doorbell, or if it bypassed the watched functions.
    Seen,
}

/// A scheduler of user queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Scheduler {
    /// Micro-engine scheduler (MES).
    Mes,
    /// Hardware scheduler of the compute microcode (HWS, CPSCH).
    Hws,
    /// No scheduler: the driver maps queues itself.
    Nohws,
}

/// Limits beyond which a policy fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Least share of dispatches (and jobs on `comp_*` rings) that are submitted by doorbell: 0.0 to 1.0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_doorbell_share: Option<f64>,
    /// Greatest number of packets between a queue's read index and the end of its published packets, as seen at a doorbell.
    pub max_queue_depth: Option<u64>,
    /// By name of an ioctl: greatest 99th percentile of its time, ns.
    pub max_ioctl_p99_ns: BTreeMap<String, u64>,
    /// Greatest time from a reserve to its doorbell, ns.
    pub max_reserve_to_doorbell_ns: Percentiles,
}

/// Limits of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Percentiles {
    /// Limit of the median.
    pub p50: Option<u64>,
    /// Limit of the 99th percentile.
    pub p99: Option<u64>,
    /// Limit of the maximum.
    pub max: Option<u64>,
}

/// Limits beyond which a policy warns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Warnings {
    /// Compute queues of traced processes that exist at the same time on one GPU. If there are more than the GPU has hardware
    /// queues, the scheduler must run them in turns.
    pub queues_per_gpu: Option<u64>,
}

/// The reason why a policy is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The text is not TOML, or does not have the form of a policy.
    #[error("line {line}: {reason}; the keys of a policy are in docs/policies.md")]
    Form {
        /// Line in the text, counted from 1.
        line: usize,
        /// What is wrong on that line.
        reason: String,
    },
    /// The policy contradicts itself, or requires something impossible.
    #[error("{0}")]
    Nonsense(&'static str),
}

impl Policy {
    /// Returns the names of the built-in policies.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// Returns the text of a built-in policy, as a start for a user's own policy; `None` if there is no policy of that name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(of, _)| *of == name).map(|(_, text)| *text)
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// Returns an error if the text is not TOML, has unknown keys, or contradicts itself.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            PolicyError::Form {
                line: text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1,
                reason: error.message().to_owned(),
            }
        })?;
        policy.check()?;
        Ok(policy)
    }

    fn check(&self) -> Result<(), PolicyError> {
        let rules = &self.rules;
        if rules.ring_submission && (rules.coverage || rules.no_ring) {
            return Err(PolicyError::Nonsense(
                "`ring-submission` contradicts `coverage` and `no-ring`: set one or the others",
            ));
        }
        let share = self.limits.min_doorbell_share;
        if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return Err(PolicyError::Nonsense(
                "`min-doorbell-share` is not a share; set a number from 0.0 to 1.0",
            ));
        }
        Ok(())
    }
}
