//! How long kernels ran, by the GPU's clock.

use std::io::{self, Write};

use tracer_core::{
    foreign::Terminal,
    summary::{Kernel, Report},
    units::duration,
};

/// Writes the kernels for which the time of at least one dispatch is known, the longest first.
pub fn times(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let mut kernels: Vec<&Kernel> = report.kernels.iter().filter(|kernel| kernel.timed > 0).collect();
    if kernels.is_empty() {
        return Ok(());
    }
    kernels.sort_by_key(|kernel| std::cmp::Reverse(kernel.gpu_ns.map(|ns| ns.total)));
    writeln!(
        out,
        "\npid      dispatches      timed  gpu total   mean        min         max         kernel (times: dispatches with a completion signal)"
    )?;
    for kernel in kernels {
        let times = kernel.gpu_ns.map_or_else(
            || format!("{:<46}", "in ticks only: not dated"),
            |ns| {
                let part = if ns.count < kernel.timed {
                    format!(" (of {})", ns.count)
                } else {
                    String::new()
                };
                let columns = [ns.total, ns.total / ns.count.max(1), ns.min, ns.max];
                columns.map(|ns| format!("{:<10}", duration(ns))).join("  ") + &part
            },
        );
        let name = kernel
            .name
            .as_ref()
            .map_or_else(|| format!("{:#x}", kernel.kernel_object), Clone::clone);
        writeln!(
            out,
            "{:<8} {:>10} {:>10}  {times}  {}",
            kernel.pid,
            kernel.count,
            kernel.timed,
            Terminal(&name)
        )?;
    }
    Ok(())
}
