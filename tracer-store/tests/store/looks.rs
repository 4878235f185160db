//! Arbitrary samples of queues.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tracer_core::event::Occasion;
use tracer_core::tables::{Fact, Progress};

use crate::any::number;

/// Generates any sample.
pub fn progress() -> impl Strategy<Value = Fact> {
    let occasion = prop_oneof![Just(Occasion::Sample), Just(Occasion::ProcessEnd)];
    let ids = any::<(u32, u32)>();
    (ids, vec(number(), 4), option::of(number()), occasion).prop_map(|((queue, pid), n, published_end, occasion)| {
        Fact::Progress(Progress {
            queue,
            pid,
            time_ns: n[0],
            until_ns: n[1],
            occasion,
            read_index: n[2],
            write_index: n[3],
            published_end,
        })
    })
}
