//! What is added to facts after tracking: names of kernels, the thunk path, copies by kernels, and the submissions of API calls.

use super::api::OpenCalls;
use super::code_objects::CodeObjects;
use super::kernel_copies::KernelCopies;
use super::thunks::Thunks;
use crate::event::Event;
use crate::tables::Fact;

/// The state of all annotations.
#[derive(Debug, Default)]
pub(super) struct Annotations {
    pub(super) code_objects: CodeObjects,
    open_calls: OpenCalls,
    kernel_copies: KernelCopies,
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

    /// Annotates and reports a fact, and what follows from it.
    pub(super) fn annotate(&mut self, mut fact: Fact, out: &mut impl FnMut(Fact)) {
        self.open_calls.count(&fact);
        self.code_objects.set_name(&mut fact);
        self.thunks.set_path(&mut fact);
        if let Some(call) = self.kernel_copies.take(&fact, out) {
            self.open_calls.copies(call, 1);
        }
        out(fact);
    }

    /// Processes an event after its facts were annotated.
    pub(super) fn after(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        self.thunks.apply(event);
        if let Event::ApiCall(call) = event {
            let copies = self.kernel_copies.end(call, out);
            self.open_calls.copies(call.call, copies);
            out(Fact::ApiCall(self.open_calls.end(call)));
        }
    }

    /// Ends the trace: reports what still waits.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        self.kernel_copies.finish(out);
        self.code_objects.finish(out);
    }
}
