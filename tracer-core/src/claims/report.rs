//! What is said of claims, in the form that is written: names and order are stable, and `null` means unknown.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::verify::Missing;

/// What the evidence says. The order is that of precedence: the greatest of a claim's checks is its verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The evidence is there, and it is as the claim says.
    Holds,
    /// Nothing here could test it: it is about another GPU, or about something that this version has no probe for.
    NotTested,
    /// It was tested, and the evidence does not suffice.
    Inconclusive,
    /// The evidence is there, and it is otherwise than the claim says.
    Contradicted,
}

impl Standing {
    /// The words for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::NotTested => "not tested",
            Self::Inconclusive => "inconclusive",
            Self::Contradicted => "contradicted",
        }
    }

    /// Whether the evidence decided.
    #[must_use]
    pub const fn decided(self) -> bool {
        matches!(self, Self::Holds | Self::Contradicted)
    }
}

/// What was found about all claims that were asked for, at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Where and when.
    pub place: Place,
    /// How many claims have which verdict.
    pub tally: Tally,
    /// The claims, in the order of their numbers.
    pub claims: Vec<ClaimVerdict>,
}

/// Where and when claims were tested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// Start of the first recording, UTC, RFC 3339.
    pub time: String,
    /// Version of the tracer.
    pub tracer: String,
    /// Release of the kernel.
    pub kernel: String,
    /// The machine, as its firmware calls it; `null` if it does not tell.
    pub machine: Option<String>,
    /// HSA runtime: file and version, as the dispatcher tells; `null` if it does not.
    pub runtime: Option<String>,
    /// The dispatcher's command, which workloads were appended to, without the folders of its words.
    pub dispatcher: String,
    /// GPUs.
    pub gpus: Vec<Gpu>,
    /// The sign that GPUs were simulated; `null` is no claim that they were not.
    pub simulated: Option<String>,
    /// Whether jobs on rings of the kernel driver were watched.
    pub ring_events: bool,
    /// A command that submits jobs on compute rings, run to see whether such jobs would be seen; `null` if there was none.
    pub control: Option<Control>,
    /// Whether functions of the kernel driver were watched.
    pub driver_functions: bool,
}

/// A GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gpu {
    /// Instruction set, as LLVM calls it: `gfx1100`.
    pub name: String,
    /// Name of the product, as the runtime tells; `null` if it does not.
    pub product: Option<String>,
    /// Instruction set, as the KFD numbers it; 0 if unknown.
    pub gfx_target_version: u32,
    /// What schedules its user queues: `mes`, `hws`, `nohws`; `null` if unknown.
    pub scheduler: Option<String>,
    /// What says so, in sentences.
    pub evidence: Vec<String>,
}

/// A command that is known to submit jobs on compute rings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// The command.
    pub command: String,
    /// Its jobs on `comp_*` and `gfx*` rings that were seen; `null` if nobody looked.
    pub jobs: Option<u64>,
}

/// How many claims have which verdict.
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
    /// Claims that were decided otherwise than the sources say.
    pub against_sources: u64,
}

/// What was found about a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimVerdict {
    /// `C1` to `C12`.
    pub id: String,
    /// The claim.
    pub claim: String,
    /// What the sources of the driver and the runtime say.
    pub sources: String,
    /// What would follow from that; `null` if it can only be measured.
    pub sources_verdict: Option<Standing>,
    /// What was recorded: the words that were appended to the dispatcher's command; `null` if nothing tests it.
    pub scenario: Option<String>,
    /// What is checked.
    pub checked: String,
    /// What the evidence says.
    pub verdict: Standing,
    /// Whether that is what the sources say; `null` if it is not decided, or can only be measured.
    pub as_sources_say: Option<bool>,
    /// The checks, of which the greatest decides.
    pub checks: Vec<Check>,
    /// What else a reader should know; it did not decide.
    pub notes: Vec<String>,
    /// What of this was simulated; `null` if nothing was.
    pub simulated: Option<String>,
}

/// A part of a claim, and what the evidence says of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// The part, as the claim has it.
    pub what: String,
    /// What the evidence says of it.
    pub verdict: Standing,
    /// The evidence, in a sentence.
    pub evidence: String,
    /// What was counted; `null` where nobody looked.
    pub counts: BTreeMap<String, Option<u64>>,
    /// Evidence that was missing, and how to get it.
    pub missing: Vec<Missing>,
}

impl Report {
    /// The report of these verdicts.
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
