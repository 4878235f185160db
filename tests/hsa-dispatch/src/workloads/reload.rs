//! Code objects that are loaded and unloaded repeatedly, at addresses that are reused.

use clap::Args;
use serde::Serialize;

use super::check;
use crate::clock;
use crate::context::{Context, QUEUE_SIZE};
use crate::error::{Error, Result};
use crate::hsa::QueueKind;
use crate::hsa::executable::Executable;
use crate::kernels::{ArgumentBuffer, Fill};
use crate::packet::{Grid, Packet};
use crate::report::Outcome;

/// The kernel's name, and its name in every second code object. Both have the same length, so that everything else stays in place:
/// the two kernels are at the same address.
const NAMES: [&str; 2] = ["fill", "full"];
/// The work-items of a launch.
const ITEMS: u32 = 100;

/// Options of `reload`.
#[derive(Args, Debug)]
pub struct Reload {
    /// Code objects, loaded, used once and unloaded one after the other.
    #[arg(short, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..))]
    pub n: u32,
    /// Exit the process right after the last doorbell, without waiting, unloading or reporting.
    #[arg(long)]
    pub abandon: bool,
}

/// A dispatch, and the name of its kernel.
#[derive(Clone, Debug, Serialize)]
pub struct Launch {
    /// The handle of its queue.
    pub queue: String,
    /// Its index in the queue.
    pub index: u64,
    /// The name of the kernel.
    pub kernel: &'static str,
    /// The address of the kernel's descriptor.
    pub kernel_object: String,
}

impl Reload {
    pub(super) fn run(&self, context: &Context, outcome: &mut Outcome) -> Result<()> {
        let path = &context.kernels.path;
        let original = std::fs::read(path).map_err(|source| Error::File {
            path: path.clone(),
            source,
        })?;
        let [old, new] = NAMES;
        let renamed = rename(&original, old, new);
        let mut target = context.pools.host::<u32>(ITEMS as usize)?;
        let done = context.signal(1)?;
        let queue = context.queue(QUEUE_SIZE, QueueKind::Single)?;
        let mut producer = context.producer(&queue, self.n as usize);
        let mut result = Ok(());
        let start = clock::now();
        for round in 0..self.n {
            let (bytes, name) = if round % 2 == 0 {
                (&original, old)
            } else {
                (&renamed, new)
            };
            let executable = Executable::load_bytes(&context.runtime, &context.gpu, bytes.clone())?;
            let kernel = executable.kernel(name)?;
            target.write(&[0; ITEMS as usize]);
            let arguments = Fill {
                p: target.address(),
                value: round + 1,
                n: ITEMS,
            };
            let arguments = ArgumentBuffer::new(&context.pools, &[arguments])?;
            let grid = Grid {
                items: ITEMS,
                workgroup: 64,
            };
            done.store(1);
            let packet = Packet::dispatch(&kernel, grid, arguments.address(0)).after_all();
            let index = producer.submit(&[packet.completing(done.handle())])?;
            if self.abandon && round + 1 == self.n {
                // SAFETY: this exits the process, which executes nothing after it.
                unsafe { libc::_exit(0) };
            }
            outcome.launches.push(Launch {
                queue: format!("{:#x}", queue.handle()),
                index,
                kernel: name,
                kernel_object: format!("{:#x}", kernel.object),
            });
            done.wait(&format!("kernel {name} of round {round}"), context.timeout, &[&queue])?;
            result = result.and(check(&format!("elements of round {round}"), &target.read(), |_| {
                round + 1
            }));
        }
        outcome.set_times(start, clock::now());
        outcome.add_queue(&queue, [producer.finish()]);
        result
    }
}

/// Returns the bytes with every `old` in them replaced. `old` occurs only as a name: of symbols and in notes.
fn rename(bytes: &[u8], old: &str, new: &str) -> Vec<u8> {
    debug_assert_eq!(old.len(), new.len());
    let mut renamed = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(old.len()) {
        if bytes[at..].starts_with(old.as_bytes()) {
            renamed[at..][..new.len()].copy_from_slice(new.as_bytes());
        }
    }
    renamed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_changes() {
        assert_eq!(rename(b"\0fill\0fill.kd\0fil", "fill", "full"), b"\0full\0full.kd\0fil");
    }
}
