//! Copies only.

use crate::clock;
use crate::error::Result;
use crate::hip::Context;
use crate::hip::memory::{DeviceBuffer, HostBuffer};
use crate::hip::report::Outcome;
use crate::hip::stream::Stream;
use crate::workloads::check;
use crate::workloads::copy::{CopyOnly, pattern};

/// Copies to the GPU and back: in even rounds ordinary memory by `hipMemcpy`, in odd rounds pinned memory on a stream.
pub fn run(options: &CopyOnly, context: &Context, outcome: &mut Outcome) -> Result<()> {
    let len = options.bytes as usize;
    let runtime = &context.runtime;
    let mut device = DeviceBuffer::<u8>::new(runtime, len)?;
    let mut pinned = HostBuffer::<u8>::new(runtime, len)?;
    let stream = Stream::new(runtime)?;
    let mut result = Ok(());
    let start = clock::now();
    for round in 0..options.n {
        let source: Vec<u8> = (0..len).map(|i| pattern(round, i)).collect();
        let found = if round % 2 == 0 {
            let mut target = vec![0; len];
            device.upload(&source)?;
            device.download(&mut target)?;
            target
        } else {
            pinned.write(&source);
            device.upload_on(&stream, &pinned)?;
            stream.synchronize()?;
            pinned.write(&vec![0; len]);
            device.download_on(&stream, &mut pinned)?;
            stream.synchronize()?;
            pinned.read()
        };
        outcome.add_copies(2, len);
        result = result.and(check(&format!("bytes copied in round {round}"), &found, |i| {
            pattern(round, i)
        }));
    }
    outcome.set_times(start, clock::now());
    result
}
