//! Copies and fills by kernels.
//!
//! HIP and OpenCL copy within a GPU, and little amounts, by kernels of their own; the HSA runtime does so where it may not use SDMA.
//! Such a dispatch is a row of `dispatches`, and gets a row of `copies`, too. The evidence is the kernel's name or, for the runtime's
//! kernels, which have none, that the innermost recorded call around it copies or fills. A packet does not have the number of bytes.
//! The call has it, if this kernel is all that the call submitted.

use std::collections::BTreeMap;

use tracer_common::api::{self, Class};

use crate::tables::{self, ApiCall, CopiedBy, CopyOp, Dispatch, Fact};

/// Largest number of calls and of kernels in them that are kept. A call whose record was lost never ends, so the oldest is given up.
const MAX_WAITING: usize = 65_536;

/// Bytes of an AQL packet.
const PACKET: u64 = 64;

/// Kernels in calls that have not ended yet.
#[derive(Debug, Default)]
pub(super) struct KernelCopies {
    calls: BTreeMap<u64, Within>,
    /// The number of calls and kernels in it.
    waiting: usize,
}

/// What was submitted in a call.
#[derive(Debug, Default)]
struct Within {
    /// Kernels that copy or fill, or may do so.
    kernels: Vec<Candidate>,
    /// Whether the call also submitted something else that copies: to SDMA, or in an inner call.
    has_others: bool,
}

/// A dispatch that is a copy, or may be one.
#[derive(Debug)]
struct Candidate {
    row: tables::Copy,
    /// Whether its kernel's name says so.
    is_named: bool,
}

impl KernelCopies {
    /// Processes a fact. A kernel that copies outside of calls is a row at once, and one in a call when the call ends. Returns the
    /// call that will have such a row, if that is certain.
    pub(super) fn take(&mut self, fact: &Fact, out: &mut impl FnMut(Fact)) -> Option<u64> {
        match fact {
            Fact::Dispatch(dispatch) => {
                let candidate = Candidate::of(dispatch)?;
                let Some(call) = dispatch.api_call else {
                    candidate.settle(out);
                    return None;
                };
                let is_named = candidate.is_named;
                self.add(call, vec![candidate], false, out);
                is_named.then_some(call)
            }
            Fact::Copy(copy) => {
                self.add(copy.api_call?, Vec::new(), true, out);
                None
            }
            _ => None,
        }
    }

    /// Ends a call: reports the copies in it, with their bytes if they are known. Copies in an inner call that is not for copying
    /// belong to the call around it. Returns the number of rows that [`Self::take`] did not announce.
    pub(super) fn end(&mut self, call: &ApiCall, out: &mut impl FnMut(Fact)) -> u64 {
        let Some(Within { kernels, has_others }) = self.remove(call.call) else {
            return 0;
        };
        if !copies(call) {
            let named = kernels.into_iter().filter(|kernel| kernel.is_named).collect();
            match call.parent {
                Some(parent) => self.add(parent, named, has_others, out),
                None => named.into_iter().for_each(|kernel| kernel.settle(out)),
            }
            return 0;
        }
        let is_all = kernels.len() == 1 && !has_others && call.failed == Some(false);
        let bytes = call.bytes.filter(|_| is_all);
        let mut unannounced = 0;
        for Candidate { row, is_named } in kernels {
            unannounced += u64::from(!is_named);
            out(Fact::Copy(tables::Copy { bytes, ..row }));
        }
        if let Some(parent) = call.parent {
            self.add(parent, Vec::new(), true, out);
        }
        unannounced
    }

    /// Ends the trace: reports the copies in calls whose end was not seen.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        while let Some((&oldest, _)) = self.calls.first_key_value() {
            self.give_up(oldest, out);
        }
    }

    fn add(&mut self, call: u64, kernels: Vec<Candidate>, has_others: bool, out: &mut impl FnMut(Fact)) {
        if self.waiting >= MAX_WAITING
            && let Some((&oldest, _)) = self.calls.first_key_value()
        {
            self.give_up(oldest, out);
        }
        let within = self.calls.entry(call).or_insert_with(|| {
            self.waiting += 1;
            Within::default()
        });
        self.waiting += kernels.len();
        within.has_others |= has_others;
        within.kernels.extend(kernels);
    }

    fn give_up(&mut self, call: u64, out: &mut impl FnMut(Fact)) {
        let kernels = self.remove(call).map_or_else(Vec::new, |within| within.kernels);
        kernels.into_iter().for_each(|kernel| kernel.settle(out));
    }

    fn remove(&mut self, call: u64) -> Option<Within> {
        let within = self.calls.remove(&call)?;
        self.waiting -= 1 + within.kernels.len();
        Some(within)
    }
}

impl Candidate {
    /// Returns the row of a dispatch that is a copy by its kernel's name, or that may be one because its kernel has no name.
    fn of(dispatch: &Dispatch) -> Option<Self> {
        let op = match dispatch.kernel.as_deref() {
            Some(name) => Some(operation(name)?),
            None if dispatch.api_call.is_some() => None,
            None => return None,
        };
        let row = tables::Copy {
            queue: Some(dispatch.queue),
            pid: dispatch.pid,
            tid: dispatch.tid,
            time_ns: dispatch.time_ns,
            path: dispatch.path,
            by: Some(CopiedBy::Kernel),
            begin: dispatch.index.saturating_mul(PACKET),
            end: dispatch.index.saturating_add(1).saturating_mul(PACKET),
            op,
            bytes: None,
            commands: Some(1),
            source: None,
            destination: None,
            direction: None,
            engine: None,
            api_call: dispatch.api_call,
            stream: dispatch.stream,
        };
        Some(Self {
            row,
            is_named: op.is_some(),
        })
    }

    /// Reports the row without a number of bytes, if the kernel's name is the evidence.
    fn settle(self, out: &mut impl FnMut(Fact)) {
        if self.is_named {
            out(Fact::Copy(self.row));
        }
    }
}

/// Returns what a kernel of HIP and OpenCL does, by its name in rocclr/device/blitcl.cpp; `None` for any other kernel.
fn operation(kernel: &str) -> Option<CopyOp> {
    let name = kernel.strip_prefix("__amd_rocclr_")?;
    if name.starts_with("copyBufferRect") || name.starts_with("copyImage") || name.starts_with("copyBufferToImage") {
        Some(CopyOp::CopyRect)
    } else if name.starts_with("copyBuffer") {
        Some(CopyOp::Copy)
    } else if name.starts_with("fill") {
        Some(CopyOp::Fill)
    } else {
        None
    }
}

/// Returns whether a call copies or fills memory.
fn copies(call: &ApiCall) -> bool {
    api::class_of(&call.layer, &call.function) == Some(Class::Copy)
}

#[cfg(test)]
mod tests;
