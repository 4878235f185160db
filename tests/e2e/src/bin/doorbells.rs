//! Decodes the records of some doorbells and reconstructs the dispatches, for a test that counts instructions.
//!
//! `doorbells N` makes the records of N reservations of a packet, each with its doorbell, as the programs write them for a usual
//! program, and prints how many dispatches and doorbells came out. Making the records takes the same time as reading them at most,
//! and is the same for each N.

use std::hint::black_box;

use anyhow::{Context, Result, ensure};
use tracer_capture::decode::{self, Functions};
use tracer_common::aql::{PACKET_LEN, Packet};
use tracer_common::record::{Call, Header, NextDoorbell, Reserve, kind, reserve_op};
use tracer_core::{model::Model, tables::Fact};

/// The queue, and the packets in its ring.
const QUEUE: u64 = 0x7f00_0000_0000;
const SIZE: u32 = 16_384;

fn main() -> Result<()> {
    let count: u64 = std::env::args().nth(1).context("usage: doorbells N")?.parse()?;
    let mut model = Model::new();
    let functions = Functions::default();
    let (mut dispatches, mut doorbells) = (0, 0);
    let mut take = |fact: Fact| match black_box(fact) {
        Fact::Dispatch(_) => dispatches += 1,
        Fact::Doorbell(_) => doorbells += 1,
        _ => {}
    };
    for index in 0..count {
        let time_ns = 1_000_000_000 + index * 1_000;
        let mut apply = |bytes: &[u8]| {
            decode::record(bytes, &functions, &mut (), &mut |event| model.apply(event, &mut take));
        };
        let header = |kind, flags, time_ns| Header {
            kind,
            flags,
            site: 0,
            time_ns,
            tgid: 7,
            tid: 8,
        };
        apply(bytes(&black_box(Reserve {
            header: header(kind::RESERVE, reserve_op::ADD, time_ns),
            queue: QUEUE,
            arg: 1,
            arg2: 0,
            write_index: index,
        })));
        apply(bytes(&black_box(NextDoorbell::<1, 0> {
            header: header(kind::NEXT_DOORBELL, 0, time_ns + 80),
            queue: QUEUE,
            value: index,
            read_index: index.saturating_sub(3),
            write_index: index + 1,
            size: SIZE,
            count: 1,
            call: Call { call: 0, stream: 0 },
            packets: [packet(index)],
            stamps: [],
        })));
    }
    model.finish(1_000_000_000 + count * 1_000, &mut take);
    println!("dispatches={dispatches} doorbells={doorbells}");
    ensure!((dispatches, doorbells) == (count, count), "some are missing");
    Ok(())
}

/// Returns a kernel dispatch of one work-item (HSA Platform System Architecture Specification 1.2, section 2.9.6).
fn packet(index: u64) -> Packet {
    let mut bytes = [0; PACKET_LEN];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, &0x1502_u16.to_le_bytes());
    put(2, &1_u16.to_le_bytes());
    for (at, value) in [(4, 1_u16), (6, 1), (8, 1)] {
        put(at, &value.to_le_bytes());
    }
    for at in [12, 16, 20] {
        put(at, &1_u32.to_le_bytes());
    }
    put(32, &0x7f12_3400_0000_u64.to_le_bytes());
    put(40, &(0x7f12_5600_0000 + index % 1024 * 0x100).to_le_bytes());
    Packet { bytes }
}

/// Returns the bytes of a record.
fn bytes<T>(record: &T) -> &[u8] {
    // SAFETY: records are `repr(C)`, of integers and bytes, without padding.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(record).cast(), size_of::<T>()) }
}
