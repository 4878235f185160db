//! The queue ioctls: CREATE_QUEUE and the others.

use std::fs;
use std::sync::Arc;

use serde_json::json;

use super::abi::{CreateQueue, DestroyQueue, SetCuMask, UpdateQueue};
use super::memory::doorbell_page;
use super::{Errno, IoctlResult};
use crate::clock::monotonic_ns;
use crate::machine::Machine;
use crate::process::Process;
use crate::queue::{Queue, kind};

const MAX_PERCENTAGE: u32 = 100;
const MAX_PRIORITY: u32 = 15;

/// The most queues of one process.
const MAX_QUEUES: u32 = 1024;

/// The first address that is not in user space: `access_ok()` fails from here on.
const USER_SPACE_END: u64 = 0x7fff_ffff_f000;

/// Errno 524, which is internal to the kernel but does reach user space here.
const ENOTSUPP: Errno = Errno(524);

fn check_ring(base: u64, size: u32, percentage: u32, priority: u32) -> IoctlResult {
    if percentage & 0xff > MAX_PERCENTAGE || priority > MAX_PRIORITY {
        return Err(Errno::EINVAL);
    }
    if base >= USER_SPACE_END {
        return Err(Errno::EFAULT);
    }
    if size != 0 && !size.is_power_of_two() {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

fn check(machine: &Machine, args: &CreateQueue) -> Result<usize, Errno> {
    check_ring(
        args.ring_base_address,
        args.ring_size,
        args.queue_percentage,
        args.queue_priority,
    )?;
    let pointers = [
        args.read_pointer_address,
        args.write_pointer_address,
        args.eop_buffer_address,
        args.ctx_save_restore_address,
    ];
    if pointers.into_iter().any(|pointer| pointer >= USER_SPACE_END) {
        return Err(Errno::EFAULT);
    }
    if args.queue_type > kind::SDMA_BY_ENG_ID {
        return Err(ENOTSUPP);
    }
    let gpu = machine.gpu_index(args.gpu_id).ok_or(Errno::EINVAL)?;
    let engines = machine.asic.num_sdma_engines + machine.asic.num_sdma_xgmi_engines;
    if args.queue_type == kind::SDMA_BY_ENG_ID && args.sdma_engine_id >= engines {
        return Err(Errno::EINVAL);
    }
    Ok(gpu)
}

/// Checks that ring and pointers are memory of the client. The driver looks up the buffers since 6.12.
fn check_memory(process: &Process, args: &CreateQueue) -> IoctlResult {
    let ring_end = args
        .ring_base_address
        .saturating_add(u64::from(args.ring_size))
        .wrapping_sub(4);
    let mapped = |va: u64| process.space.read_u32(va).is_ok();
    let ring_is_mapped = args.ring_size == 0 || mapped(args.ring_base_address) && mapped(ring_end);
    if ring_is_mapped && mapped(args.read_pointer_address) && mapped(args.write_pointer_address) {
        Ok(())
    } else {
        Err(Errno::EINVAL)
    }
}

/// Performs CREATE_QUEUE.
pub fn create(machine: &Arc<Machine>, process: &Arc<Process>, args: &mut CreateQueue) -> IoctlResult {
    let gpu = check(machine, args)?;
    check_memory(process, args)?;
    let mut state = process.state();
    args.queue_id = (0..MAX_QUEUES)
        .find(|id| !state.queues.contains_key(id))
        .ok_or(Errno::ENOMEM)?;
    let doorbell = doorbell_page(machine, &mut state, gpu)?.take().ok_or(Errno::ENOMEM)?;
    args.doorbell_offset = doorbell;
    machine
        .truth
        .counts
        .queues
        .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    log_create(machine, process.pid, args, state.is_vram(args.ring_base_address));
    match Queue::start(machine, process, *args, doorbell) {
        Ok(queue) => state.queues.insert(args.queue_id, queue),
        Err(error) => {
            log::error!("no thread for a queue: {error}");
            return Err(Errno::ENOMEM);
        }
    };
    publish(machine, process.pid, args);
    Ok(())
}

fn log_create(machine: &Machine, pid: i32, args: &CreateQueue, in_vram: bool) {
    machine.truth.line(|| {
        json!({
            "ev": "queue_create", "pid": pid, "queue_id": args.queue_id, "gpu_id": args.gpu_id, "type": args.queue_type,
            "ring_base": args.ring_base_address, "ring_size": args.ring_size, "ring_in_vram": in_vram, "wptr": args.write_pointer_address,
            "rptr": args.read_pointer_address, "doorbell_offset": args.doorbell_offset, "priority": args.queue_priority,
            "percentage": args.queue_percentage, "eop_buffer_address": args.eop_buffer_address,
            "eop_buffer_size": args.eop_buffer_size, "ctx_save_restore_address": args.ctx_save_restore_address,
            "ctx_save_restore_size": args.ctx_save_restore_size, "ctl_stack_size": args.ctl_stack_size,
            "sdma_engine_id": args.sdma_engine_id, "time_ns": monotonic_ns(),
        })
    });
}

/// Creates the driver's sysfs files of a queue, for tools that attach later. They are only an aid, so a failure is not an error.
fn publish(machine: &Machine, pid: i32, args: &CreateQueue) {
    let folder = machine.sysfs_proc.join(format!("{pid}/queues/{}", args.queue_id));
    let internal_type = match args.queue_type {
        kind::COMPUTE | kind::COMPUTE_AQL => 0,
        kind::SDMA_XGMI => 4,
        kind::SDMA_BY_ENG_ID => 5,
        other => other,
    };
    let files = [
        ("gpuid", args.gpu_id),
        ("type", internal_type),
        ("size", args.ring_size),
    ];
    let result = fs::create_dir_all(&folder).and_then(|()| {
        files
            .into_iter()
            .try_for_each(|(name, value)| fs::write(folder.join(name), value.to_string()))
    });
    if let Err(error) = result {
        log::warn!("{}: {error}", folder.display());
    }
}

/// Performs DESTROY_QUEUE. When it returns, the queue no longer accesses any memory.
pub fn destroy(machine: &Machine, process: &Process, args: &DestroyQueue) -> IoctlResult {
    let queue = process.state().queues.remove(&args.queue_id).ok_or(Errno::EINVAL)?;
    let created = queue.args;
    drop(queue);
    if let Some(gpu) = machine.gpu_index(created.gpu_id)
        && let Some(page) = process.state().doorbells.get_mut(&gpu)
    {
        page.give(created.doorbell_offset);
    }
    // The folder is missing if it could not be created.
    let _ = fs::remove_dir_all(
        machine
            .sysfs_proc
            .join(format!("{}/queues/{}", process.pid, args.queue_id)),
    );
    machine.truth.line(
        || json!({"ev": "queue_destroy", "pid": process.pid, "queue_id": args.queue_id, "time_ns": monotonic_ns()}),
    );
    Ok(())
}

/// Performs UPDATE_QUEUE.
pub fn update(machine: &Machine, process: &Process, args: &UpdateQueue) -> IoctlResult {
    check_ring(
        args.ring_base_address,
        args.ring_size,
        args.queue_percentage,
        args.queue_priority,
    )?;
    let mut state = process.state();
    let queue = state.queues.get_mut(&args.queue_id).ok_or(Errno::EFAULT)?;
    queue.update(args.ring_base_address, args.ring_size, args.queue_percentage);
    machine.truth.line(|| {
        json!({
            "ev": "queue_update", "pid": process.pid, "queue_id": args.queue_id, "ring_base": args.ring_base_address,
            "ring_size": args.ring_size, "percentage": args.queue_percentage, "priority": args.queue_priority,
            "time_ns": monotonic_ns(),
        })
    });
    Ok(())
}

/// Performs SET_CU_MASK. The arguments are only checked, because there are no compute units to mask.
pub fn set_cu_mask(process: &Process, args: &SetCuMask) -> IoctlResult {
    if args.num_cu_mask == 0 || !args.num_cu_mask.is_multiple_of(32) {
        return Err(Errno::EINVAL);
    }
    let mut mask = vec![0; args.num_cu_mask.min(1024) as usize / 8];
    process
        .space
        .read(args.cu_mask_ptr, &mut mask)
        .map_err(|_| Errno::EFAULT)?;
    if process.state().queues.contains_key(&args.queue_id) {
        Ok(())
    } else {
        Err(Errno::EFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings() {
        assert_eq!(check_ring(0x1000, 4096, 100, 15), Ok(()));
        assert_eq!(check_ring(0x1000, 0, 0, 0), Ok(()));
        assert_eq!(check_ring(0x1000, 4095, 100, 7), Err(Errno::EINVAL));
        assert_eq!(check_ring(0x1000, 4096, 101, 7), Err(Errno::EINVAL));
        assert_eq!(check_ring(0x1000, 4096, 100, 16), Err(Errno::EINVAL));
        assert_eq!(check_ring(u64::MAX, 4096, 100, 7), Err(Errno::EFAULT));
    }
}
