//! The work of a simple application: copy in, compute, copy out; with a fill, a copy within the GPU, and events.

use crate::arguments::{Reduce, Saxpy, VectorAdd};
use crate::clock;
use crate::error::{Error, Result};
use crate::hip::Context;
use crate::hip::memory::{DeviceBuffer, HostBuffer};
use crate::hip::report::Outcome;
use crate::hip::stream::{Event, Stream};
use crate::packet::Grid;
use crate::workloads::check;
use crate::workloads::mixed::{FACTOR, Mixed, value_a, value_b, value_input};

/// Arrays in GPU memory.
struct Arrays {
    a: DeviceBuffer<f32>,
    b: DeviceBuffer<f32>,
    c: DeviceBuffer<f32>,
    copy: DeviceBuffer<f32>,
    input: DeviceBuffer<u32>,
    out: DeviceBuffer<u32>,
}

/// Runs the rounds on one stream.
pub fn run(options: &Mixed, context: &Context, outcome: &mut Outcome) -> Result<()> {
    let (runtime, len) = (&context.runtime, options.elements as usize);
    let mut arrays = Arrays {
        a: DeviceBuffer::new(runtime, len)?,
        b: DeviceBuffer::new(runtime, len)?,
        c: DeviceBuffer::new(runtime, len)?,
        copy: DeviceBuffer::new(runtime, len)?,
        input: DeviceBuffer::new(runtime, len)?,
        out: DeviceBuffer::new(runtime, 1)?,
    };
    let mut floats = [HostBuffer::new(runtime, len)?, HostBuffer::new(runtime, len)?];
    let mut numbers = HostBuffer::new(runtime, len)?;
    let stream = Stream::new(runtime)?;
    let (begin, end) = (Event::new(runtime)?, Event::new(runtime)?);
    // Bytes that the copies within the GPU do not overwrite keep this value.
    arrays.copy.fill(u8::MAX)?;
    outcome.add_fill(arrays.copy.bytes());
    let mut result = Ok(());
    let start = clock::now();
    for round in 0..options.n {
        floats[0].write(&(0..len).map(|i| value_a(round, i)).collect::<Vec<_>>());
        floats[1].write(&(0..len).map(value_b).collect::<Vec<_>>());
        numbers.write(&(0..len).map(|i| value_input(round, i)).collect::<Vec<_>>());
        begin.record(&stream)?;
        arrays.a.upload_on(&stream, &floats[0])?;
        arrays.b.upload_on(&stream, &floats[1])?;
        arrays.input.upload_on(&stream, &numbers)?;
        arrays.out.fill_on(&stream, 0)?;
        outcome.add_copies(3, arrays.a.bytes());
        outcome.add_fill(arrays.out.bytes());
        for i in 0..options.dispatches {
            arrays.launch(options, context, &stream, i)?;
            outcome.dispatches += 1;
        }
        arrays.copy.copy_from_on(&stream, &arrays.c)?;
        arrays.copy.download_on(&stream, &mut floats[0])?;
        outcome.add_copies(2, arrays.copy.bytes());
        end.record(&stream)?;
        end.synchronize()?;
        if end.since(&begin)? < 0.0 {
            return Err(Error::Unexpected("the stream ended before it began".to_owned()));
        }
        let mut sum = [0];
        arrays.out.download(&mut sum)?;
        outcome.add_copies(1, arrays.out.bytes());
        result = result.and(verify(options, round, &floats[0].read(), sum));
    }
    outcome.set_times(start, clock::now());
    result
}

impl Arrays {
    /// Submits launch number `i` of a round. Each kernel has its own workgroup size.
    fn launch(&self, options: &Mixed, context: &Context, stream: &Stream, i: u32) -> Result<()> {
        let (a, b, c, n) = (self.a.address(), self.b.address(), self.c.address(), options.elements);
        let grid = |workgroup| Grid { items: n, workgroup };
        let module = &context.module;
        match i % 3 {
            0 => module.launch(stream, grid(64), &VectorAdd { a, b, c, n }),
            1 => module.launch(
                stream,
                grid(96),
                &Saxpy {
                    a: FACTOR,
                    x: a,
                    y: c,
                    n,
                },
            ),
            _ => {
                let (input, out) = (self.input.address(), self.out.address());
                module.launch(stream, grid(256), &Reduce { input, out, n })
            }
        }
    }
}

fn verify(options: &Mixed, round: u32, c: &[f32], sum: [u32; 1]) -> Result<()> {
    // A saxpy counts only if it ran after the last `vector_add`, because `vector_add` overwrote the results of earlier ones.
    let factor = if options.dispatches % 3 == 1 { 0.0 } else { FACTOR };
    check("c", c, |i| {
        factor * value_a(round, i) + (value_a(round, i) + value_b(i))
    })?;
    let once = (0..c.len()).fold(0, |sum: u32, i| sum.wrapping_add(value_input(round, i)));
    check("out", &sum, |_| once.wrapping_mul(options.dispatches / 3))
}
