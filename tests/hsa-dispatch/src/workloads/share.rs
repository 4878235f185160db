//! GPU memory that two processes share: one allocates it, a child process of it attaches it by its handle and fills it.

use std::process::Command;

use clap::Args;

use super::check;
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::copier::Copier;
use crate::error::{Error, Result};
use crate::hsa::QueueKind;
use crate::hsa::share::{Attached, Handle};
use crate::kernels::{ArgumentBuffer, Fill};
use crate::packet::{Grid, Packet};
use crate::report::Outcome;

/// The elements of the memory: more than the 2 MiB below which runtimes share a part of a larger block.
const ELEMENTS: u32 = 1 << 20;

/// The launches of the child process.
const GRID: Grid = Grid {
    items: ELEMENTS,
    workgroup: 256,
};

/// The values that the two processes fill in.
const OWN: u32 = 0x1111_1111;
const OTHER: u32 = 0x2222_2222;

/// Options of `share`.
#[derive(Args, Debug)]
pub struct Share {
    /// Attach the memory with this handle and fill it: the child process's part.
    #[arg(long, value_name = "HANDLE", hide = true)]
    pub attach: Option<Handle>,
}

impl Share {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        match &self.attach {
            Some(handle) => fill_attached(context, handle, outcome),
            None => share(context, outcome),
        }
    }
}

/// Fills memory, lets a child process fill it again, and checks that it did.
fn share(context: &Context, outcome: &mut Outcome) -> Result<()> {
    let memory = context.pools.device::<u32>(ELEMENTS as usize)?;
    let mut host = context.pools.host::<u32>(ELEMENTS as usize)?;
    let start = clock::now();
    fill(context, memory.address(), OWN, outcome)?;
    let handle = memory.handle()?;
    let mut child = Command::new(std::env::current_exe().map_err(|source| other("find this program", &source))?);
    if let Some(folder) = context.kernels.path.parent() {
        child.arg("--kernels").arg(folder);
    }
    child.args(["--json", "/dev/null", "share", "--attach", &handle.to_string()]);
    let status = child
        .status()
        .map_err(|source| other("start the child process", &source))?;
    if !status.success() {
        return Err(Error::Unexpected(format!("the child process ended with {status}")));
    }
    let mut copier = Copier::new(context)?;
    copier.download(&memory, &mut host)?;
    copier.report(outcome);
    outcome.set_times(start, clock::now());
    check("memory that the child process filled", &host.read(), |_| OTHER)
}

fn other(what: &str, source: &std::io::Error) -> Error {
    Error::Unexpected(format!("cannot {what}: {source}"))
}

fn fill_attached(context: &Context, handle: &Handle, outcome: &mut Outcome) -> Result<()> {
    let memory = Attached::new(
        &context.runtime,
        &context.gpu,
        handle,
        ELEMENTS as usize * size_of::<u32>(),
    )?;
    let start = clock::now();
    fill(context, memory.address(), OTHER, outcome)?;
    outcome.set_times(start, clock::now());
    memory.detach()
}

/// Fills the elements at that address.
fn fill(context: &Context, address: u64, value: u32, outcome: &mut Outcome) -> Result<()> {
    let launch = Fill {
        p: address,
        value,
        n: ELEMENTS,
    };
    let arguments = ArgumentBuffer::new(&context.pools, &[launch])?;
    let packet = Packet::dispatch(&context.kernels.fill, GRID, arguments.address(0)).after_all();
    let done = context.signal(1)?;
    let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
    let mut producer = context.producer(&queue, 1);
    producer.submit(&[packet.completing(done.handle())])?;
    done.wait("the kernel", context.timeout, &[&queue])?;
    outcome.add_queue(&queue, [producer.finish()]);
    Ok(())
}
