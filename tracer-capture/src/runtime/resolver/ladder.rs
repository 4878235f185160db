//! The ladder to the doorbell functions, and the account of its decisions with their reasons.
//!
//! Names come first: those of the library, else those of its debug file. The shape of vtables is examined in any case. If both
//! steps find the functions and agree, the result is the best possible. If they contradict each other, one of them is wrong, and
//! neither is used. For a function that does not ring, a contradiction discards only this function.

use std::collections::BTreeSet;

use super::aql_queue::{self, AqlQueue, Search};
use super::debug::{DebugFiles, DebugKey, NamedFunction, NotUsed};
use super::decision::{Decision, Outcome, Sought};
use super::doorbells::{self, Rung};
use super::elf::Image;
use super::error::Absence;
use super::functions::Functions;
use super::queue_functions::{self, QueueFunction};
use super::step::{Confidence, ResolverStep};
use super::vtables::queue_classes;
use super::{DoorbellFunction, DoorbellSite, ExportSite, OwnReserveSite, own_reserve};

/// The result of the ladder.
#[derive(Default)]
pub(super) struct Climb {
    pub(super) doorbells: Vec<DoorbellSite>,
    pub(super) functions: Vec<DoorbellFunction>,
    pub(super) own_reserve: Option<OwnReserveSite>,
    pub(super) queue_functions: Vec<QueueFunction>,
    /// Store functions of the signals of proxy queues, which tools put in front of queues.
    pub(super) proxy_stores: BTreeSet<u64>,
    pub(super) account: Vec<Decision>,
    pub(super) absent: Vec<Absence>,
    /// Names from a debug file, for other searches.
    pub(super) names: Vec<NamedFunction>,
}

/// A completed step.
struct Taken {
    step: ResolverStep,
    looked_at: String,
    found: Result<Option<(AqlQueue, Rung)>, Absence>,
}

impl Taken {
    fn new(image: &Image<'_>, functions: &Functions, step: ResolverStep, search: Search) -> Self {
        let sites = |queue: AqlQueue| Ok((queue, doorbells::rung(image, functions, &queue, step)?));
        Self {
            step,
            looked_at: search.looked_at,
            found: search.found.and_then(|queue| queue.map(sites).transpose()),
        }
    }

    fn queue(&self) -> Option<&AqlQueue> {
        self.found.as_ref().ok()?.as_ref().map(|(queue, _)| queue)
    }
}

/// Finds the doorbell functions.
pub(super) fn climb(image: &Image<'_>, functions: &Functions, debug: &mut dyn DebugFiles) -> Climb {
    let mut climb = Climb::default();
    let take = |step, search| Taken::new(image, functions, step, search);
    let own = image.symtab_functions();
    let mut named = take(
        ResolverStep::Symtab,
        aql_queue::by_names(".symtab", own.map(|symbol| (symbol.name, symbol.vaddr))),
    );
    if named.queue().is_none() {
        climb.say(&named, None);
        if let Some((path, names)) = climb.look(image, debug) {
            let symbols = names.iter().map(|function| (function.name.as_str(), function.vaddr));
            named = take(ResolverStep::DebugFile, aql_queue::by_names(&path, symbols));
            if named.queue().is_none() {
                climb.say(&named, None);
            }
            climb.names = names;
        }
    }
    let classes = queue_classes(image, functions);
    let shape = take(
        ResolverStep::VtableShape,
        aql_queue::by_vtable_shape(image, functions, &classes),
    );
    climb.choose(image, functions, named, shape);
    climb.proxy_stores = aql_queue::proxy_stores(image, functions, &classes, &climb.functions);
    climb
}

/// Returns the decision for a library without function boundaries, in which no step is possible.
pub(super) fn no_functions() -> Decision {
    Decision {
        sought: Sought::Doorbells,
        step: ResolverStep::VtableShape,
        looked_at: ".eh_frame".to_owned(),
        outcome: Outcome::Absent,
        reason: Absence::NoFunctions.to_string(),
    }
}

/// Returns the decision about the exported functions that store to signals.
pub(super) fn last_resort(climb: &Climb, exports: &[ExportSite]) -> Decision {
    let names: Vec<&str> = exports
        .iter()
        .flat_map(|site| &site.names)
        .map(String::as_str)
        .collect();
    let (outcome, reason) = match (climb.doorbells.is_empty(), exports.is_empty()) {
        (false, _) => (Outcome::NotTried, "not needed: the runtime's own functions were found"),
        (true, true) => (Outcome::Absent, "no hsa_signal_store_* is exported"),
        (true, false) => (
            Outcome::Used,
            "as a last resort: what the API table of an initialised process has for them is probed, or they themselves; \
             doorbells that the runtime rings itself are not seen, confidence low",
        ),
    };
    Decision {
        sought: Sought::Doorbells,
        step: ResolverStep::ApiTable,
        looked_at: format!("exports, {} that store to signals: {}", names.len(), names.join(", ")),
        outcome,
        reason: reason.to_owned(),
    }
}

impl Climb {
    /// Searches for a debug file. Places without a usable file go into the account.
    fn look(&mut self, image: &Image<'_>, debug: &mut dyn DebugFiles) -> Option<(String, Vec<NamedFunction>)> {
        let link = image.debug_link().and_then(|(name, checksum)| {
            // A path would lead out of the searched folders.
            let name = str::from_utf8(name)
                .ok()
                .filter(|name| !name.contains('/') && !name.is_empty())?;
            Some((name.to_owned(), checksum))
        });
        let lookup = debug.look(&DebugKey {
            build_id: image.build_id(),
            link,
        });
        self.account.extend(lookup.tried.into_iter().map(|tried| {
            let (outcome, reason) = match tried.why_not {
                NotUsed::Absent(why) => (Outcome::Absent, why),
                NotUsed::Refused(why) => (Outcome::Refused, why),
                NotUsed::NotTried(why) => (Outcome::NotTried, why),
            };
            Decision {
                sought: Sought::Doorbells,
                step: ResolverStep::DebugFile,
                looked_at: tried.place,
                outcome,
                reason,
            }
        }));
        lookup.found
    }

    /// Takes the result of the better step, unless the other one contradicts it.
    fn choose(&mut self, image: &Image<'_>, functions: &Functions, mut named: Taken, shape: Taken) {
        if let (Some(by_name), Some(by_shape)) = (named.queue(), shape.queue())
            && !by_name.agrees_with(by_shape)
        {
            let absence = Absence::StepsDisagree {
                step: named.step,
                named: by_name.store_relaxed,
                shaped: by_shape.store_relaxed,
            };
            for taken in [&named, &shape] {
                self.decide(taken, Outcome::Refused, absence.to_string());
            }
            self.absent.push(absence);
            return;
        }
        let both = named.queue().is_some() && shape.queue().is_some();
        if let (Ok(Some((by_name, _))), Some(by_shape)) = (&mut named.found, shape.queue()) {
            by_name.keep_agreed(by_shape);
        }
        let (used, other) = if named.queue().is_some() {
            (named, Some(shape))
        } else {
            (shape, None)
        };
        let confidence = if both { Confidence::High } else { Confidence::Medium };
        self.say(&used, Some(confidence));
        if let Some(other) = other {
            self.second(&other);
        }
        if let Ok(Some((queue, rung))) = used.found {
            self.doorbells = rung.sites;
            for site in &mut self.doorbells {
                site.confidence = confidence;
            }
            self.functions = rung.functions;
            self.absent.extend(rung.missed);
            self.own_reserve(image, functions, &queue, used.step, confidence);
            let (found, decisions) = queue_functions::find(image, functions, &queue, (used.step, confidence));
            self.queue_functions = found;
            self.account.extend(decisions);
        }
    }

    fn own_reserve(
        &mut self,
        image: &Image<'_>,
        functions: &Functions,
        queue: &AqlQueue,
        step: ResolverStep,
        confidence: Confidence,
    ) {
        self.own_reserve = own_reserve::site(image, functions, queue, step, confidence);
        let function = queue.add_write_index;
        let reason = match &self.own_reserve {
            Some(site) => format!("adds to the write index of the queue at rdi{:+#x}", site.queue_offset),
            None => Absence::NoOwnReserve.to_string(),
        };
        self.account.push(Decision {
            sought: Sought::OwnReserve,
            step,
            looked_at: function.map_or_else(
                || "no function that every step found".to_owned(),
                |vaddr| format!("AqlQueue::AddWriteIndexAcqRel at {vaddr:#x}"),
            ),
            outcome: match (&self.own_reserve, function) {
                (Some(_), _) => Outcome::Used,
                (None, Some(_)) => Outcome::Refused,
                (None, None) => Outcome::Absent,
            },
            reason,
        });
        self.absent
            .extend(self.own_reserve.is_none().then_some(Absence::NoOwnReserve));
    }

    /// Records a step: one whose result is used, with its confidence, or one without a result.
    fn say(&mut self, taken: &Taken, confidence: Option<Confidence>) {
        match &taken.found {
            Ok(Some((_, rung))) => {
                let confidence = confidence.map_or_else(String::new, |c| format!(", confidence {c}"));
                self.decide(taken, Outcome::Used, format!("{}{confidence}", rung.words()));
            }
            Ok(None) => self.decide(
                taken,
                Outcome::Absent,
                "it does not name a function of AqlQueue".to_owned(),
            ),
            Err(absence) => {
                let outcome = if matches!(absence, Absence::NoQueueClass) {
                    Outcome::Absent
                } else {
                    Outcome::Refused
                };
                self.decide(taken, outcome, absence.to_string());
                self.absent.push(absence.clone());
            }
        }
    }

    /// Records a step that is not needed any more. Its failure is not an absence.
    fn second(&mut self, taken: &Taken) {
        match &taken.found {
            Ok(Some(_)) => self.decide(taken, Outcome::Agrees, "it finds the same functions".to_owned()),
            Ok(None) => {}
            Err(absence) => self.decide(taken, Outcome::Refused, absence.to_string()),
        }
    }

    fn decide(&mut self, taken: &Taken, outcome: Outcome, reason: String) {
        self.account.push(Decision {
            sought: Sought::Doorbells,
            step: taken.step,
            looked_at: taken.looked_at.clone(),
            outcome,
            reason,
        });
    }
}
