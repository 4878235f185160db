use std::slice::from_ref;
use std::sync::Arc;

use super::*;
use crate::sample;

const COPY: &str = "__amd_rocclr_copyBuffer";

fn dispatch(index: u64, kernel: Option<&str>, call: Option<u64>) -> Fact {
    Fact::Dispatch(Dispatch {
        kernel: kernel.map(Arc::from),
        api_call: call,
        ..sample::dispatch(index, 100 + index)
    })
}

fn call(call: u64, parent: Option<u64>, layer: &'static str, function: &'static str, bytes: Option<u64>) -> ApiCall {
    ApiCall {
        parent,
        layer: layer.into(),
        function: function.into(),
        bytes,
        ..sample::api_call(call, (100, 200))
    }
}

/// Takes facts, ends calls, and returns the operation and bytes of each row.
fn rows(facts: &[Fact], calls: &[ApiCall]) -> Vec<(u64, Option<CopyOp>, Option<u64>)> {
    let (mut copies, mut rows) = (KernelCopies::default(), Vec::new());
    let mut out = |fact| {
        let Fact::Copy(copy) = fact else { panic!("{fact:?}") };
        assert!(copy.is_kernel() && copy.end == copy.begin + 64);
        rows.push((copy.begin / 64, copy.op, copy.bytes));
    };
    for fact in facts {
        copies.take(fact, &mut out);
    }
    for call in calls {
        copies.end(call, &mut out);
    }
    copies.finish(&mut out);
    assert_eq!((copies.waiting, copies.calls.len()), (0, 0));
    rows
}

#[test]
fn a_copy_call_gives_its_bytes_to_its_only_kernel() {
    let own = call(3, None, "hip", "hipMemcpyAsync", Some(4096));
    let copied = (1, Some(CopyOp::Copy), Some(4096));
    assert_eq!(rows(&[dispatch(1, Some(COPY), Some(3))], from_ref(&own)), [copied]);
    // A kernel of the runtime has no name.
    assert_eq!(
        rows(&[dispatch(1, None, Some(3))], from_ref(&own)),
        [(1, None, Some(4096))]
    );
    // An inner call that stores to the signal.
    let store = call(4, Some(3), "hsa", "hsa_signal_store_relaxed", None);
    assert_eq!(
        rows(&[dispatch(1, Some(COPY), Some(4))], &[store, own.clone()]),
        [copied]
    );
    // The runtime copies for HIP: both calls have the bytes.
    let inner = call(4, Some(3), "hsa", "hsa_amd_memory_async_copy", Some(4096));
    assert_eq!(
        rows(&[dispatch(1, None, Some(4))], &[inner, own]),
        [(1, None, Some(4096))]
    );
}

#[test]
fn bytes_that_may_be_those_of_something_else_stay_unknown() {
    let own = call(3, None, "hip", "hipMemcpyAsync", Some(4096));
    let unknown = |index| (index, Some(CopyOp::Copy), None);
    let (first, second) = (dispatch(1, Some(COPY), Some(3)), dispatch(2, Some(COPY), Some(3)));
    assert_eq!(rows(&[first.clone(), second], from_ref(&own)), [unknown(1), unknown(2)]);
    let by_sdma = Fact::Copy(tables::Copy {
        api_call: Some(3),
        ..sample::copy(90)
    });
    assert_eq!(rows(&[by_sdma, first.clone()], from_ref(&own)), [unknown(1)]);
    let inner = call(4, Some(3), "hsa", "hsa_amd_memory_async_copy", Some(96));
    let of_inner = dispatch(2, Some(COPY), Some(4));
    assert_eq!(
        rows(&[first.clone(), of_inner], &[inner, own.clone()]),
        [(2, Some(CopyOp::Copy), Some(96)), unknown(1)]
    );
    let failed = ApiCall {
        failed: Some(true),
        ..own
    };
    assert_eq!(rows(from_ref(&first), &[failed]), [unknown(1)]);
    let graph = call(3, None, "hip", "hipGraphLaunch", None);
    assert_eq!(rows(from_ref(&first), &[graph]), [unknown(1)]);
    assert_eq!(rows(&[first], &[]), [unknown(1)], "no end of the call");
    assert_eq!(rows(&[dispatch(1, Some(COPY), None)], &[]), [unknown(1)], "no call");
}

#[test]
fn other_kernels_are_no_copies() {
    let launch = call(3, None, "hip", "hipLaunchKernel", None);
    let kernels = [
        dispatch(1, Some("saxpy"), Some(3)),
        dispatch(2, None, Some(3)),
        dispatch(3, None, None),
        dispatch(4, Some("__amd_rocclr_streamOpsWait"), Some(3)),
    ];
    assert_eq!(rows(&kernels, &[launch]), []);
    assert_eq!(operation("__amd_rocclr_fillBufferAligned2D"), Some(CopyOp::Fill));
    assert_eq!(operation("__amd_rocclr_copyBufferRectAligned"), Some(CopyOp::CopyRect));
    assert_eq!(operation("__amd_rocclr_copyImageToBuffer"), Some(CopyOp::CopyRect));
}

#[test]
fn what_is_kept_is_bounded() {
    let (mut copies, mut rows) = (KernelCopies::default(), 0);
    let count = MAX_WAITING as u64;
    for index in 0..count {
        copies.take(&dispatch(index, Some(COPY), Some(index)), &mut |_| rows += 1);
        assert!(copies.waiting <= MAX_WAITING + 2);
    }
    copies.finish(&mut |_| rows += 1);
    assert_eq!(rows, count);
}
