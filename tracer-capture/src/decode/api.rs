//! API calls.

use std::borrow::Cow;

use tracer_common::{
    api::{FUNCTIONS, Function, Layer, Returns},
    record::{self, NO_STREAM, api_flags as flag},
};
use tracer_core::{
    event::{Event, InCall, Origin},
    tables::ApiCall,
};

use super::origin;

/// Returns the call that a thread was in.
pub(super) fn in_call(call: record::Call) -> Option<InCall> {
    (call.call != 0).then_some(InCall {
        call: call.call,
        stream: stream(call.stream),
    })
}

/// Returns the stream of a call; `None` if the call has none.
pub(crate) fn stream(stream: u64) -> Option<u64> {
    (stream != NO_STREAM).then_some(stream)
}

/// Reports an API call; `None` for a function that this build does not know.
pub(super) fn call(r: &record::ApiCall, sink: &mut impl FnMut(&Event<'_>)) -> Option<()> {
    let has = |bit| r.header.flags & bit != 0;
    let function = FUNCTIONS.get(r.function as usize)?;
    let returned = !has(flag::NEVER_RETURNED);
    sink(&Event::ApiCall(&ApiCall {
        parent: (r.parent != 0).then_some(r.parent),
        exit_ns: returned.then_some(r.exit_ns),
        ret: returned.then(|| result(function, r.ret)).flatten(),
        failed: returned.then(|| function.failed(r.ret)),
        stream: stream(r.stream),
        bytes: has(flag::BYTES).then_some(r.bytes),
        object: has(flag::OBJECT).then_some(r.object),
        ..begun(origin(&r.header), r.call, function)
    }));
    Some(())
}

/// Returns what a function returned, from the return register; `None` if it returns nothing. HIP and HSA count their errors from 0 up,
/// OpenCL from 0 down.
fn result(function: &Function, register: i64) -> Option<i64> {
    match (function.returns, function.layer) {
        (Returns::Status, Layer::OpenCl) => Some(i64::from(register as i32)),
        (Returns::Status, _) => Some(i64::from(register as u32)),
        (Returns::Value, _) => Some(register),
        (Returns::Nothing, _) => None,
    }
}

/// Returns the row of a call that has only begun.
pub(crate) fn begun(origin: Origin, call: u64, function: &'static Function) -> ApiCall {
    ApiCall {
        call,
        parent: None,
        pid: origin.pid,
        tid: origin.tid,
        enter_ns: origin.time_ns,
        exit_ns: None,
        layer: Cow::Borrowed(function.layer.name()),
        function: Cow::Borrowed(function.name),
        ret: None,
        failed: None,
        stream: None,
        bytes: None,
        object: None,
        dispatches: 0,
        copies: 0,
    }
}
