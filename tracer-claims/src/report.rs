//! The report on claims, in the form that is written. Names and order are stable, and `null` means unknown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use tracer_core::verify::Missing;

/// What the evidence says. The order is the precedence: the greatest verdict of a claim's checks is the verdict on the claim.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Standing {
    /// The evidence exists, and agrees with the claim.
    Holds,
    /// Nothing here could test the claim: it is about another GPU, or about something for which this version has no probe.
    #[strum(serialize = "not tested")]
    NotTested,
    /// The claim was tested, and the evidence does not suffice.
    Inconclusive,
    /// The evidence exists, and disagrees with the claim.
    Contradicted,
}

impl Standing {
    /// Returns whether the evidence decided.
    #[must_use]
    pub const fn decided(self) -> bool {
        matches!(self, Self::Holds | Self::Contradicted)
    }
}

/// The findings on all requested claims, at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Where and when the claims were tested.
    pub place: Place,
    /// Number of claims per verdict.
    pub tally: Tally,
    /// The claims, in the order of their numbers.
    pub claims: Vec<ClaimVerdict>,
}

/// Where and when claims were tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Start of the first recording, UTC, RFC 3339.
    pub time: String,
    /// Version of tracer.
    pub tracer: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The machine, as its firmware names it; `null` if the firmware does not.
    pub machine: Option<String>,
    /// HSA runtime: file and version, as the dispatcher reports them; `null` if it does not.
    pub runtime: Option<String>,
    /// The dispatcher's command, to which workloads were appended. Its words are without their folders.
    pub dispatcher: String,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// The evidence that GPUs were simulated. `null` does not claim that the GPUs were real.
    pub simulated: Option<String>,
    /// Whether jobs on rings of the kernel driver were watched.
    pub ring_events: bool,
    /// A command that submits jobs on compute rings, which was run to check that tracer would see such jobs; `null` if there was
    /// none.
    pub control: Option<Control>,
    /// Whether functions of the kernel driver were watched.
    pub driver_functions: bool,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Instruction set, as LLVM names it: `gfx1100`.
    pub name: String,
    /// Product name, as the runtime reports it; `null` if it does not.
    pub product: Option<String>,
    /// Instruction set, in the numbers of the KFD; 0 if unknown.
    pub gfx_target_version: u32,
    /// The scheduler of its user queues: `mes`, `hws`, `nohws`; `null` if unknown.
    pub scheduler: Option<String>,
    /// The evidence for the scheduler, in sentences.
    pub evidence: Vec<String>,
}

/// A command that is known to submit jobs on compute rings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The command.
    pub command: String,
    /// Number of its jobs on `comp_*` and `gfx*` rings that were seen; `null` if rings were not watched.
    pub jobs: Option<u64>,
}

/// Number of claims per verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    /// Claims that hold.
    pub holds: u64,
    /// Claims that are contradicted.
    pub contradicted: u64,
    /// Claims on which the evidence does not suffice.
    pub inconclusive: u64,
    /// Claims that could not be tested here.
    pub not_tested: u64,
    /// Claims whose verdict differs from what the sources say.
    pub against_sources: u64,
}

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimVerdict {
    /// `C1` to `C12`.
    pub id: String,
    /// Text of the claim.
    pub claim: String,
    /// What the sources of the driver and the runtime say.
    pub sources: String,
    /// The verdict that follows from the sources; `null` if the claim can only be measured.
    pub sources_verdict: Option<Standing>,
    /// The recorded workload: the words that were appended to the dispatcher's command; `null` if no workload tests the claim.
    pub scenario: Option<String>,
    /// What is checked.
    pub checked: String,
    /// What the evidence says.
    pub verdict: Standing,
    /// Whether the verdict agrees with the sources; `null` if the evidence did not decide, or if the claim can only be measured.
    pub as_sources_say: Option<bool>,
    /// The checks. The greatest verdict of them decides.
    pub checks: Vec<Check>,
    /// Further information; it did not decide the verdict.
    pub notes: Vec<String>,
    /// The part that was simulated; `null` if nothing was simulated.
    pub simulated: Option<String>,
}

/// A part of a claim, and what the evidence says about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The part, in the words of the claim.
    pub what: String,
    /// What the evidence says about it.
    pub verdict: Standing,
    /// The evidence, in a sentence.
    pub evidence: String,
    /// Counts; `null` if tracer did not watch what is counted.
    pub counts: BTreeMap<String, Option<u64>>,
    /// Evidence that was missing, and how to get it.
    pub missing: Vec<Missing>,
}

impl Report {
    /// Creates the report of these verdicts.
    #[must_use]
    pub fn new(place: Place, claims: Vec<ClaimVerdict>) -> Self {
        let count = |of: &dyn Fn(&ClaimVerdict) -> bool| claims.iter().filter(|claim| of(claim)).count() as u64;
        let with = |standing| count(&|claim| claim.verdict == standing);
        Self {
            tally: Tally {
                holds: with(Standing::Holds),
                contradicted: with(Standing::Contradicted),
                inconclusive: with(Standing::Inconclusive),
                not_tested: with(Standing::NotTested),
                against_sources: count(&|claim| claim.as_sources_say == Some(false)),
            },
            place,
            claims,
        }
    }
}
