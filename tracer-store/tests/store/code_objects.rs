//! Rows of code objects and kernels, for the round trip.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tracer_core::code_object::{CodeObjectOrigin, KernelsUnread};
use tracer_core::tables::{CodeObject, Fact, Kernel};

use crate::any::number;

/// Generates a code object.
pub fn code_object() -> impl Strategy<Value = Fact> {
    let origin = prop_oneof![Just(CodeObjectOrigin::Loaded), Just(CodeObjectOrigin::Found)];
    let unread = prop::sample::select(vec![
        None,
        Some(KernelsUnread::Unreadable),
        Some(KernelsUnread::Changed),
        Some(KernelsUnread::Malformed),
        Some(KernelsUnread::TooLarge),
        Some(KernelsUnread::UnknownSource),
    ]);
    let names = any::<(String, Option<String>)>();
    let small = any::<(u32, u32, Option<u32>, Option<u32>)>();
    (origin, unread, names, small, vec(number(), 2), option::of(number())).prop_map(
        |(origin, unread, (uri, target), (code_object, pid, version, kernels), n, unloaded_ns)| {
            Fact::CodeObject(CodeObject {
                code_object,
                pid,
                origin,
                load_base: n[0],
                uri,
                target,
                version,
                kernels,
                unread,
                loaded_ns: n[1],
                unloaded_ns,
            })
        },
    )
}

/// Generates a kernel.
pub fn kernel() -> impl Strategy<Value = Fact> {
    (
        any::<([u32; 2], String, String)>(),
        vec(number(), 2),
        any::<[Option<u32>; 8]>(),
    )
        .prop_map(|(([code_object, pid], name, symbol), n, small)| {
            Fact::Kernel(Kernel {
                code_object,
                pid,
                loaded_ns: n[0],
                kernel_object: n[1],
                name: name.into(),
                symbol: symbol.into(),
                kernarg_bytes: small[0],
                group_bytes: small[1],
                private_bytes: small[2],
                vgprs: small[3],
                agprs: small[4],
                sgprs: small[5],
                wavefront: small[6],
                max_workgroup: small[7],
            })
        })
}
