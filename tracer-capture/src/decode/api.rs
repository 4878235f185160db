//! API calls.

use tracer_common::{
    api::FUNCTIONS,
    record::{self, NO_STREAM, api_flags as flag},
};
use tracer_core::event::{ApiCall, Event, InCall};

use super::origin;

/// Returns the call that a thread was in.
pub(super) fn in_call(call: record::Call) -> Option<InCall> {
    (call.call != 0).then_some(InCall {
        call: call.call,
        stream: stream(call.stream),
    })
}

fn stream(stream: u64) -> Option<u64> {
    (stream != NO_STREAM).then_some(stream)
}

/// Reports an API call; `None` for a function that this build does not know.
pub(super) fn call(r: &record::ApiCall, sink: &mut impl FnMut(&Event<'_>)) -> Option<()> {
    let has = |bit| r.header.flags & bit != 0;
    let returned = !has(flag::NEVER_RETURNED);
    sink(&Event::ApiCall(ApiCall {
        origin: origin(&r.header),
        call: r.call,
        parent: (r.parent != 0).then_some(r.parent),
        function: FUNCTIONS.get(r.function as usize)?,
        returned: returned.then_some((r.exit_ns, r.ret)),
        stream: stream(r.stream),
        bytes: has(flag::BYTES).then_some(r.bytes),
        object: has(flag::OBJECT).then_some(r.object),
    }));
    Some(())
}
