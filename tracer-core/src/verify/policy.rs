//! What a policy can ask for. Built-in policies and the user's own have the same form: TOML, described in
//! docs/policies.md.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Built-in policies: the files beside this one.
const BUILT_IN: [(&str, &str); 4] = [
    ("mes-bypass", include_str!("policies/mes-bypass.toml")),
    ("doorbell-bypass", include_str!("policies/doorbell-bypass.toml")),
    ("hws", include_str!("policies/hws.toml")),
    ("ring-submission", include_str!("policies/ring-submission.toml")),
];

/// What must be true of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policy {
    /// Its name, as verdicts show it.
    pub name: String,
    /// What it is for, in a sentence.
    #[serde(default)]
    pub description: String,
    /// What must hold.
    #[serde(default)]
    pub rules: Rules,
    /// Numbers beyond which it fails.
    #[serde(default)]
    pub limits: Limits,
    /// Numbers beyond which it warns.
    #[serde(default)]
    pub warnings: Warnings,
}

/// What must hold. `sound-capture` and `dispatches` (there is something to judge) are rules of every policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rules {
    /// This scheduler maps the user queues of every GPU that is used.
    pub scheduler: Option<Scheduler>,
    /// Every index of every compute queue was published by a doorbell that was seen.
    pub coverage: bool,
    /// No traced process submitted a job on a `comp_*` or `gfx*` ring of the kernel driver.
    pub no_ring: bool,
    /// Between the reserve of a dispatch and its doorbell, its thread made no ioctl on a KFD or DRM device.
    pub no_syscall: Option<Scope>,
    /// Kernels are submitted as jobs on `comp_*` rings, and none by a doorbell.
    pub ring_submission: bool,
    /// The recorded command succeeded. On unless it is set to false.
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

/// Of which dispatches the reserve has to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// Of every one: the rule is inconclusive if one is not known and its process made an ioctl since it can have been.
    Every,
    /// The rule is about those of which it can be decided; the others are counted, and said not to be judged. Not known
    /// are reserves that another thread than the one that rang made, and those past the functions that are watched.
    Seen,
}

/// A scheduler of user queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduler {
    /// Micro-engine scheduler (MES).
    Mes,
    /// Hardware scheduler of the compute microcode (HWS, CPSCH).
    Hws,
    /// None: the driver maps queues itself.
    Nohws,
}

impl Scheduler {
    /// The word in data.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mes => "mes",
            Self::Hws => "hws",
            Self::Nohws => "nohws",
        }
    }
}

/// Numbers beyond which a policy fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Least share of dispatches (and jobs on `comp_*` rings) that go by doorbell: 0.0 to 1.0.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub min_doorbell_share: Option<f64>,
    /// Most packets between a queue's read index and what is published, seen at a doorbell.
    pub max_queue_depth: Option<u64>,
    /// By name of an ioctl: the 99th percentile of its time, ns, at the most.
    pub max_ioctl_p99_ns: BTreeMap<String, u64>,
    /// Time from a reserve to its doorbell, ns, at the most.
    pub max_reserve_to_doorbell_ns: Percentiles,
}

/// Limits of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Percentiles {
    /// Of its median.
    pub p50: Option<u64>,
    /// Of its 99th percentile.
    pub p99: Option<u64>,
    /// Of its greatest.
    pub max: Option<u64>,
}

/// Numbers beyond which a policy warns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Warnings {
    /// Compute queues of traced processes that live at once on one GPU: more of them than it has hardware queues make the
    /// scheduler take turns.
    pub queues_per_gpu: Option<u64>,
}

/// Why a policy can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It is no TOML, or not of the form of a policy.
    #[error("line {line}: {reason}; the keys of a policy are in docs/policies.md")]
    Form {
        /// Line in the text, from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// What it asks for makes no sense.
    #[error("{0}")]
    Nonsense(&'static str),
}

impl Policy {
    /// Names of the built-in policies.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILT_IN.iter().map(|(name, _)| *name)
    }

    /// The text of a built-in policy, to start an own one from; `None` if there is none of that name.
    #[must_use]
    pub fn built_in(name: &str) -> Option<&'static str> {
        BUILT_IN.iter().find(|(of, _)| *of == name).map(|(_, text)| *text)
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// If it is no TOML, has unknown keys, or contradicts itself.
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
        let Rules {
            coverage,
            no_ring,
            ring_submission,
            ..
        } = self.rules;
        if ring_submission && (coverage || no_ring) {
            return Err(PolicyError::Nonsense(
                "`ring-submission` contradicts `coverage` and `no-ring`: set one or the others",
            ));
        }
        if self
            .limits
            .min_doorbell_share
            .is_some_and(|share| !(0.0..=1.0).contains(&share))
        {
            return Err(PolicyError::Nonsense(
                "`min-doorbell-share` is not a share; set a number from 0.0 to 1.0",
            ));
        }
        Ok(())
    }
}
