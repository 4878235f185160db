//! A sample of everything.

use clap::Args;

use super::{
    Workload, barriers, batch, burst, churn, compute, copy, fail, inference, long, mixed, multi_queue, multi_thread,
    wrap,
};
use crate::context::Context;
use crate::error::Result;
use crate::report::Outcome;

/// Options of `all`.
#[derive(Args, Debug)]
pub struct All {
    /// Leave out the launches that must fail, which stop queues.
    #[arg(long)]
    pub no_fail: bool,
}

impl All {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        self.sample().iter().try_for_each(|workload| {
            let mut part = Outcome::default();
            let result = workload.run(context, &mut part);
            outcome.append(part);
            result.inspect_err(|_| eprintln!("hsa-dispatch: workload {} failed", workload.name()))
        })
    }

    fn sample(&self) -> Vec<Workload> {
        let mut sample = vec![
            Workload::ComputeOnly(compute::ComputeOnly {
                n: 50,
                pipelined: false,
                elements: 1000,
                workgroup: 64,
            }),
            Workload::ComputeOnly(compute::ComputeOnly {
                n: 200,
                pipelined: true,
                elements: 1000,
                workgroup: 96,
            }),
            Workload::CopyOnly(copy::CopyOnly { n: 4, bytes: 1 << 20 }),
            Workload::Mixed(mixed::Mixed {
                n: 2,
                dispatches: 6,
                elements: 10_000,
            }),
            Workload::Inference(inference::Inference {
                n: 2,
                dispatches: 20,
                bytes: 1 << 16,
            }),
            Workload::MultiQueue(multi_queue::MultiQueue { queues: 4, n: 50 }),
            Workload::MultiThread(multi_thread::MultiThread { threads: 4, n: 200 }),
            Workload::Barriers(barriers::Barriers {
                no_barrier_value: false,
            }),
            Workload::Batch(batch::Batch { packets: 16, n: 200 }),
            Workload::Wrap(wrap::Wrap { rounds: 8 }),
            Workload::Churn(churn::Churn { queues: 5, n: 2 }),
            Workload::Burst(burst::Burst {
                n: 10_000,
                queue_size: 1024,
            }),
            Workload::Long(long::Long { ms: 20, n: 3 }),
        ];
        if !self.no_fail {
            sample.push(Workload::Fail(fail::Fail {}));
        }
        sample
    }
}
