//! How long kernels ran, by the GPU's clock.

use std::io::{self, Write};

use tracer_core::{
    foreign::Terminal,
    summary::{Kernel, Report},
    units::duration,
};

use super::table;

/// Writes the kernels for which the time of at least one dispatch is known, the longest first.
pub fn times(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let heading = "pid      dispatches      timed  gpu total   mean        min         max         kernel (times: dispatches with a completion signal)";
    let mut kernels: Vec<&Kernel> = report.kernels.iter().filter(|kernel| kernel.timed > 0).collect();
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.gpu_ns.map(|ns| ns.total)));
    let rows = kernels.into_iter().map(|kernel| {
        let (pid, count, timed) = (kernel.pid, kernel.count, kernel.timed);
        let times = match kernel.gpu_ns {
            None => format!("{:<46}", "in ticks only: not dated"),
            Some(ns) => {
                let columns = [ns.total, ns.total / ns.count.max(1), ns.min, ns.max];
                let part = match ns.count < timed {
                    true => format!(" (of {})", ns.count),
                    false => String::new(),
                };
                columns.map(|ns| format!("{:<10}", duration(ns))).join("  ") + &part
            }
        };
        let address = || format!("{:#x}", kernel.kernel_object);
        let name = kernel.name.clone().unwrap_or_else(address);
        format!("{pid:<8} {count:>10} {timed:>10}  {times}  {}", Terminal(&name))
    });
    table(out, heading, rows)
}
