//! Any API calls.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tracer_core::fact::{ApiCall, Fact};

use crate::round_trip::number;

pub fn api_call() -> impl Strategy<Value = Fact> {
    let ids = any::<(u32, u32, Option<i64>, Option<bool>)>();
    let optional = vec(option::of(number()), 5);
    let words = any::<(String, String)>();
    (ids, vec(number(), 4), optional, words).prop_map(|((pid, tid, ret, failed), n, some, (layer, function))| {
        Fact::ApiCall(ApiCall {
            call: n[0],
            parent: some[0],
            pid,
            tid,
            enter_ns: n[1],
            exit_ns: some[1],
            layer: layer.into(),
            function: function.into(),
            ret,
            failed,
            stream: some[2],
            bytes: some[3],
            object: some[4],
            dispatches: n[2],
            copies: n[3],
        })
    })
}
