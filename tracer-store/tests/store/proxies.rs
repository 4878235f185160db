//! Arbitrary proxies, requests and GPU times.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tracer_core::tables::{Evidence, Fact, GpuTime, Proxy, Request};

use crate::any::number;

pub fn proxy() -> impl Strategy<Value = Fact> {
    (any::<[u32; 2]>(), vec(number(), 9), vec(option::of(number()), 3)).prop_map(|([proxy, pid], n, some)| {
        Fact::Proxy(Proxy {
            proxy,
            pid,
            handle: n[0],
            ring_base: n[1],
            ring_bytes: n[2],
            created_ns: n[3],
            ended_ns: some[0],
            doorbells: n[4],
            requested: n[5],
            dispatches: n[6],
            other_packets: n[7],
            unread: n[8],
            first_index: some[1],
            last_index: some[2],
        })
    })
}

pub fn request() -> impl Strategy<Value = Fact> {
    let evidence = prop_oneof![Just(Evidence::Header), Just(Evidence::Body)];
    let small = any::<([u32; 3], [u32; 3], [u16; 3])>();
    let kernel = any::<Option<String>>();
    (small, evidence, kernel, vec(number(), 5), vec(option::of(number()), 3)).prop_map(
        |(([proxy, pid, tid], grid, workgroup), evidence, kernel, n, some)| {
            Fact::Request(Request {
                proxy,
                index: n[0],
                pid,
                tid,
                time_ns: n[1],
                evidence,
                reserve_ns: some[0],
                kernel_object: n[2],
                kernel: kernel.map(Into::into),
                kernarg: n[3],
                grid,
                workgroup,
                completion_signal: n[4],
                api_call: some[1],
                stream: some[2],
            })
        },
    )
}

pub fn gpu_time() -> impl Strategy<Value = Fact> {
    let kernel = any::<(Option<String>, Option<u32>)>();
    (
        any::<[u32; 2]>(),
        kernel,
        vec(number(), 5),
        vec(option::of(number()), 3),
    )
        .prop_map(|([queue, pid], (kernel, gpu_id), n, some)| {
            Fact::GpuTime(GpuTime {
                queue,
                index: n[0],
                pid,
                time_ns: n[1],
                kernel_object: n[2],
                kernel: kernel.map(Into::into),
                gpu_id,
                start_ticks: n[3],
                end_ticks: n[4],
                start_ns: some[0],
                end_ns: some[1],
                clock_error_ns: some[2],
            })
        })
}
