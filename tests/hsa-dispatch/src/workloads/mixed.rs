//! The work of a simple application: copy in, compute, copy out.

use clap::Args;

use super::check;
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::copier::Copier;
use crate::error::Result;
use crate::hsa::memory::DeviceBuffer;
use crate::hsa::{Buffer, QueueKind};
use crate::kernels::{ArgumentBuffer, Reduce, Saxpy, VectorAdd};
use crate::packet::{Grid, Packet};
use crate::report::Outcome;

/// The factor of saxpy.
pub(crate) const FACTOR: f32 = 2.0;

/// Options of `mixed`.
#[derive(Args, Debug)]
pub struct Mixed {
    /// Rounds of copies in, dispatches, copies out.
    #[arg(short, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// Dispatches per round: `vector_add`, saxpy and reduce in turn.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub dispatches: u32,
    /// Elements in each array.
    #[arg(long, default_value_t = 1 << 16, value_parser = clap::value_parser!(u32).range(1..))]
    pub elements: u32,
}

/// Arrays on host and GPU.
struct Arrays {
    a: (Buffer<f32>, DeviceBuffer<f32>),
    b: (Buffer<f32>, DeviceBuffer<f32>),
    c: (Buffer<f32>, DeviceBuffer<f32>),
    input: (Buffer<u32>, DeviceBuffer<u32>),
    out: (Buffer<u32>, DeviceBuffer<u32>),
}

impl Mixed {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let mut arrays = Arrays::new(context, self.elements as usize)?;
        let arguments = arrays.arguments(context, self.elements)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut producer = context.producer(&queue, self.n as usize * self.dispatches as usize);
        let mut copier = Copier::new(context)?;
        let mut result = Ok(());
        let start = clock::now();
        for round in 0..self.n {
            arrays.fill(round);
            arrays.copy_in(&mut copier)?;
            for i in 0..self.dispatches {
                let mut packet = self.packet(context, &arguments, i);
                if i + 1 == self.dispatches {
                    done.store(1);
                    packet = packet.completing(done.handle());
                }
                producer.submit(&[packet])?;
            }
            done.wait(&format!("the kernels of round {round}"), context.timeout, &[&queue])?;
            arrays.copy_out(&mut copier)?;
            result = result.and(arrays.verify(round, self.dispatches));
        }
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        copier.report(outcome);
        result
    }

    /// Returns dispatch number `i` of a round. Each kernel has its own workgroup size.
    fn packet(&self, context: &Context, arguments: &[ArgumentBuffer; 3], i: u32) -> Packet {
        let kernels = &context.kernels;
        let (kernel, workgroup, arguments) = match i % 3 {
            0 => (&kernels.vector_add, 64, &arguments[0]),
            1 => (&kernels.saxpy, 96, &arguments[1]),
            _ => (&kernels.reduce, 256, &arguments[2]),
        };
        Packet::dispatch(
            kernel,
            Grid {
                items: self.elements,
                workgroup,
            },
            arguments.address(0),
        )
        .after_all()
    }
}

impl Arrays {
    fn new(context: &Context, len: usize) -> Result<Self> {
        let pools = &context.pools;
        Ok(Self {
            a: (pools.host(len)?, pools.device(len)?),
            b: (pools.host(len)?, pools.device(len)?),
            c: (pools.host(len)?, pools.device(len)?),
            input: (pools.host(len)?, pools.device(len)?),
            out: (pools.host(1)?, pools.device(1)?),
        })
    }

    fn arguments(&self, context: &Context, n: u32) -> Result<[ArgumentBuffer; 3]> {
        let (a, b, c) = (self.a.1.address(), self.b.1.address(), self.c.1.address());
        let pools = &context.pools;
        Ok([
            ArgumentBuffer::new(pools, &[VectorAdd { a, b, c, n }])?,
            ArgumentBuffer::new(
                pools,
                &[Saxpy {
                    a: FACTOR,
                    x: a,
                    y: c,
                    n,
                }],
            )?,
            ArgumentBuffer::new(
                pools,
                &[Reduce {
                    input: self.input.1.address(),
                    out: self.out.1.address(),
                    n,
                }],
            )?,
        ])
    }

    fn fill(&mut self, round: u32) {
        let len = self.a.0.len();
        self.a.0.write(&(0..len).map(|i| value_a(round, i)).collect::<Vec<_>>());
        self.b.0.write(&(0..len).map(value_b).collect::<Vec<_>>());
        self.c.0.write(&vec![-1.0; len]);
        self.input
            .0
            .write(&(0..len).map(|i| value_input(round, i)).collect::<Vec<_>>());
        self.out.0.write(&[0]);
    }

    fn copy_in(&self, copier: &mut Copier<'_>) -> Result<()> {
        for (host, device) in [&self.a, &self.b] {
            copier.upload(host, device)?;
        }
        for (host, device) in [&self.input, &self.out] {
            copier.upload(host, device)?;
        }
        Ok(())
    }

    fn copy_out(&mut self, copier: &mut Copier<'_>) -> Result<()> {
        copier.download(&self.c.1, &mut self.c.0)?;
        copier.download(&self.out.1, &mut self.out.0)
    }

    fn verify(&self, round: u32, dispatches: u32) -> Result<()> {
        // A saxpy counts only if it ran after the last `vector_add`, because `vector_add` overwrote the results of earlier ones.
        let factor = if dispatches % 3 == 1 { 0.0 } else { FACTOR };
        check("c", &self.c.0.read(), |i| {
            factor * value_a(round, i) + (value_a(round, i) + value_b(i))
        })?;
        let sum = (0..self.input.0.len()).fold(0, |sum: u32, i| sum.wrapping_add(value_input(round, i)));
        check("out", &self.out.0.read(), |_| sum.wrapping_mul(dispatches / 3))
    }
}

/// Returns a small integer, so that all results are exact however they are rounded.
#[expect(clippy::cast_precision_loss, reason = "small")]
pub(crate) fn value_a(round: u32, i: usize) -> f32 {
    ((i + round as usize) % 1000) as f32
}

#[expect(clippy::cast_precision_loss, reason = "small")]
pub(crate) fn value_b(i: usize) -> f32 {
    (i / 1000 % 1000) as f32
}

#[expect(clippy::cast_possible_truncation, reason = "small")]
pub(crate) fn value_input(round: u32, i: usize) -> u32 {
    (i % 7) as u32 + round % 2 + 1
}
