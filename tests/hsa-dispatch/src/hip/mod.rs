//! The same work through HIP, as most applications do it: `libamdhip64`, loaded at run time.
//!
//! HIP decides which queues exist and which packets they contain. A run therefore reports each HIP call, with its thread, time and
//! result ([`calls`]), instead of packets.

mod calls;
mod fat_binary;
mod ffi;
mod memory;
mod module;
mod report;
mod runtime;
mod stream;
mod types;
pub mod workloads;

use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use calls::Calls;

use crate::cli::Cli;
use crate::error::Result;
use crate::kernels;
use module::Module;
use report::{Outcome, Summary};
use runtime::Runtime;

/// The context that every workload works with.
pub struct Context {
    /// The runtime.
    runtime: std::sync::Arc<Runtime>,
    /// The kernels, loaded as a module.
    module: Module,
}

/// Runs a workload through HIP, and writes a report of it.
///
/// # Errors
/// Fails if the machine lacks the runtime, a GPU or kernels, if a call fails, or if a result is wrong.
pub fn run(cli: &Cli) -> Result<()> {
    let options = &cli.options;
    let runtime = Runtime::start(options.library.as_deref(), options.agent)?;
    let mut outcome = Outcome::default();
    let directory = kernels::directory(options.kernels.as_deref());
    let context = Context {
        module: Module::load(&runtime, &directory)?,
        runtime,
    };
    let timeout = Duration::from_secs(options.timeout.get());
    let result = watched(&context.runtime.calls, timeout, || {
        workloads::run(&cli.workload, &context, &mut outcome)
    });
    let Context { runtime, module } = context;
    let kernels = module.path().display().to_string();
    drop(module);
    if let Some(path) = &options.log {
        runtime.calls.write(path)?;
    }
    let summary = Summary::new(cli.workload.name(), &runtime, kernels, outcome, &result);
    summary.print(&options.json)?;
    result
}

/// Does the work. Ends the program if no call returns for `timeout`, because HIP's own waits have no timeout.
fn watched<T>(calls: &Calls, timeout: Duration, work: impl FnOnce() -> T) -> T {
    let (working, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut returned = calls.returned();
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(timeout) {
                let now = calls.returned();
                if now == returned {
                    let seconds = timeout.as_secs();
                    eprintln!("hsa-dispatch: timed out: no call of HIP returned for {seconds} s, after {now} calls");
                    std::process::exit(1);
                }
                returned = now;
            }
        });
        let result = work();
        drop(working);
        result
    })
}
