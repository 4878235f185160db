//! What is added to facts after tracking: names of kernels, the thunk path, and the submissions of API calls.

use super::api::OpenCalls;
use super::code_objects::CodeObjects;
use super::thunks::Thunks;
use crate::event::Event;
use crate::tables::Fact;

/// The state of all annotations.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    pub(super) code_objects: CodeObjects,
    open_calls: OpenCalls,
    thunks: Thunks,
}

impl Annotations {
    /// Processes an event before its facts are annotated.
    pub(super) fn before(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        match event {
            Event::CodeObject(event) => {
                self.code_objects.settle(event.origin.time_ns);
                self.code_objects.apply(event, out);
            }
            Event::Exec(origin, _) => self.code_objects.exec(*origin, out),
            Event::Exit(origin) => self.code_objects.exit(*origin, out),
            _ => {}
        }
    }

    /// Annotates a fact.
    pub(super) fn annotate(&mut self, fact: Fact) -> Fact {
        self.open_calls.count(&fact);
        self.thunks.path(self.code_objects.named(fact))
    }

    /// Processes an event after its facts were annotated.
    pub(super) fn after(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        self.thunks.apply(event);
        if let Event::ApiCall(call) = event {
            out(Fact::ApiCall(self.open_calls.end(call)));
        }
    }
}
