//! The ladder to the doorbell functions, and the account of its decisions with their reasons.
//!
//! Names come first: those of the library, else those of its debug file. The shape of vtables is examined in any case. If both
//! steps find the functions and agree, the result is the best possible. If they contradict each other, one of them is wrong, and
//! neither is used. For a function that does not ring, a contradiction discards only this function.

use super::aql_queue::{self, AqlQueue, Search};
use super::debug::{DebugFiles, DebugKey, NamedFunction, NotUsed};
use super::decision::{Outcome, Sought};
use super::doorbells::{self, Rung};
use super::elf::Image;
use super::error::Absence;
use super::functions::Functions;
use super::step::{Confidence, ResolverStep};
use super::vtables::queue_classes;
use super::{Resolution, queue_functions};

/// A completed step.
struct Taken {
    step: ResolverStep,
    looked_at: String,
    found: Result<(AqlQueue, Rung), Absence>,
}

impl Taken {
    fn new(functions: &Functions<'_>, step: ResolverStep, (looked_at, found): Search) -> Self {
        Self {
            step,
            looked_at,
            found: found.and_then(|queue| Ok((queue, doorbells::rung(functions, &queue, step)?))),
        }
    }
}

/// Finds the doorbell functions. Returns names from a debug file, for other searches.
pub(super) fn climb(
    resolution: &mut Resolution,
    functions: &Functions<'_>,
    debug: &mut dyn DebugFiles,
) -> Vec<NamedFunction> {
    let take = |step, search| Taken::new(functions, step, search);
    let mut names = Vec::new();
    let own = functions.image.symtab().functions();
    let mut named = take(ResolverStep::Symtab, aql_queue::by_names(".symtab", own));
    if named.found.is_err() {
        resolution.failed(&named);
        if let Some((path, found)) = resolution.search_debug_file(functions.image, debug) {
            names = found;
            let symbols = names.iter().map(|function| (function.name.as_str(), function.vaddr));
            named = take(ResolverStep::DebugFile, aql_queue::by_names(&path, symbols));
            resolution.failed(&named);
        }
    }
    let classes = queue_classes(functions);
    let by_shape = aql_queue::by_vtable_shape(functions, &classes);
    resolution.choose(functions, named, take(ResolverStep::VtableShape, by_shape));
    resolution.proxy_stores = aql_queue::proxy_stores(functions, &classes, &resolution.functions);
    names
}

/// Makes the decision about the exported functions that store to signals.
pub(super) fn last_resort(resolution: &mut Resolution) {
    let exports = &resolution.exports.signal_stores;
    let names: Vec<String> = exports.iter().flat_map(|site| site.names.clone()).collect();
    let (outcome, reason) = match (resolution.doorbells.is_empty(), exports.is_empty()) {
        (false, _) => (Outcome::NotTried, "not needed: the runtime's own functions were found"),
        (true, true) => (Outcome::Absent, "no hsa_signal_store_* is exported"),
        (true, false) => (
            Outcome::Used,
            "as a last resort: what the API table of an initialised process has for them is probed, or they themselves; \
             doorbells that the runtime rings itself are not seen, confidence low",
        ),
    };
    let looked_at = format!("exports, {} that store to signals: {}", names.len(), names.join(", "));
    resolution.decide(Sought::Doorbells, ResolverStep::ApiTable, looked_at, outcome, reason);
}

impl Resolution {
    /// Searches for a debug file. Places without a usable file go into the account.
    fn search_debug_file(
        &mut self,
        image: &Image<'_>,
        debug: &mut dyn DebugFiles,
    ) -> Option<(String, Vec<NamedFunction>)> {
        let link = image.debug_link().and_then(|(name, checksum)| {
            // A path would lead out of the searched folders.
            let name = str::from_utf8(name)
                .ok()
                .filter(|name| !name.contains('/') && !name.is_empty())?;
            Some((name.to_owned(), checksum))
        });
        let build_id = self.build_id.clone();
        let lookup = debug.find(&DebugKey { build_id, link });
        for tried in lookup.tried {
            let (outcome, reason) = match tried.why_not {
                NotUsed::Absent(why) => (Outcome::Absent, why),
                NotUsed::Refused(why) => (Outcome::Refused, why),
                NotUsed::NotTried(why) => (Outcome::NotTried, why),
            };
            let step = ResolverStep::DebugFile;
            self.decide(Sought::Doorbells, step, tried.place, outcome, reason);
        }
        lookup.found
    }

    /// Takes the result of the better step, unless the other one contradicts it.
    fn choose(&mut self, functions: &Functions<'_>, mut named: Taken, shape: Taken) {
        if let (Ok((by_name, _)), Ok((by_shape, _))) = (&mut named.found, &shape.found) {
            if by_name.entries() != by_shape.entries() {
                let absence = Absence::StepsDisagree {
                    step: named.step,
                    named: by_name.store_relaxed,
                    shaped: by_shape.store_relaxed,
                };
                let reason = self.miss(&absence);
                for taken in [&named, &shape] {
                    self.decide_step(taken, Outcome::Refused, reason.clone());
                }
                return;
            }
            by_name.keep_agreed(by_shape);
        }
        let (used, other) = if named.found.is_ok() {
            (named, Some(shape))
        } else {
            (shape, None)
        };
        let Ok((queue, rung)) = &used.found else {
            self.failed(&used);
            return;
        };
        let agrees = other.as_ref().is_some_and(|other| other.found.is_ok());
        let confidence = Confidence::of(agrees);
        let reason = format!("{}, confidence {confidence}", rung.words());
        self.decide_step(&used, Outcome::Used, reason);
        // A failure of the other step is not an absence.
        if let Some(other) = &other {
            let (outcome, reason) = match &other.found {
                Ok(_) => (Outcome::Agrees, "it finds the same functions".to_owned()),
                Err(absence) => (Outcome::Refused, absence.to_string()),
            };
            self.decide_step(other, outcome, reason);
        }
        self.doorbells.clone_from(&rung.sites);
        for site in &mut self.doorbells {
            site.confidence = confidence;
        }
        self.functions.clone_from(&rung.functions);
        self.notes.extend(rung.missed.iter().map(Absence::to_string));
        queue_functions::find(self, functions, queue, used.step, confidence);
    }

    /// Records a step if it has no result.
    fn failed(&mut self, taken: &Taken) {
        let Err(absence) = &taken.found else { return };
        let (outcome, reason) = match absence {
            Absence::NotNamed => (Outcome::Absent, absence.to_string()),
            Absence::NoQueueClass => (Outcome::Absent, self.miss(absence)),
            _ => (Outcome::Refused, self.miss(absence)),
        };
        self.decide_step(taken, outcome, reason);
    }

    fn decide_step(&mut self, taken: &Taken, outcome: Outcome, reason: String) {
        let looked_at = taken.looked_at.as_str();
        self.decide(Sought::Doorbells, taken.step, looked_at, outcome, reason);
    }
}
