//! Arbitrary API calls.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tracer_core::tables::{ApiCall, ApiStats, Durations, Fact};

use crate::any::number;

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

pub fn api_stats() -> impl Strategy<Value = Fact> {
    let ids = any::<(u32, Option<u32>)>();
    let optional = vec(option::of(number()), 2);
    let durations = vec((number(), number()), 0..5);
    let words = any::<(String, String)>();
    (ids, vec(number(), 6), optional, durations, words).prop_map(
        |((counter, pid), n, some, durations, (layer, function))| {
            Fact::ApiStats(ApiStats {
                counter,
                pid,
                time_ns: n[0],
                layer: layer.into(),
                function: function.into(),
                calls: n[1],
                returned: n[2],
                failed: n[3],
                left: n[4],
                total_ns: n[5],
                min_ns: some[0],
                max_ns: some[1],
                durations: Durations(durations),
            })
        },
    )
}
