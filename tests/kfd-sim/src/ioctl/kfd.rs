//! /dev/kfd: the dispatch from ioctl numbers to handlers, and the small handlers.

use std::sync::Arc;

use super::abi::{
    Abi, AcquireVm, AllocQueueGws, Apertures, AperturesNew, ClockCounters, GetVersion, RuntimeEnable, SetMemoryPolicy,
    Svm, TileConfig, TrapHandler, ValueOfGpu, XnackMode, decode_cmd,
};
use super::request::PendingIoctl;
use super::{Errno, IoctlResult, events, memory, queues, sharing, with};
use crate::clock::{boottime_ns, gpu_ticks, raw_ns};
use crate::machine::Machine;
use crate::process::Process;
use crate::topology;

/// The version of the driver in Linux 6.16 to 6.18.
const VERSION: GetVersion = GetVersion { major: 1, minor: 18 };

/// Executes an ioctl and answers it.
///
/// Like the driver, this examines only the number; the caller chooses the size of the argument.
pub fn dispatch(machine: &Arc<Machine>, process: &Arc<Process>, request: PendingIoctl) {
    let (nr, ..) = decode_cmd(request.cmd);
    let mut bytes = request.bytes();
    if let Some(errno) = machine.failures.iter().find_map(|failure| failure.check(nr)) {
        request.finish(Err(errno), &bytes);
        return;
    }
    if nr == 0x0c {
        events::wait(process, request);
        return;
    }
    let result = if nr == 0x24 {
        with(&mut bytes, |args| sharing::export(machine, process, request.tid, args))
    } else {
        handle(machine, process, nr, &mut bytes)
    };
    request.finish(result, &bytes);
}

/// Handles every ioctl that does not wait, on the bytes of the argument.
pub(super) fn handle(machine: &Arc<Machine>, process: &Arc<Process>, nr: u8, bytes: &mut [u8]) -> IoctlResult {
    let is_gpu = |gpu_id: u32| machine.gpu_index(gpu_id).map(|_| ()).ok_or(Errno::EINVAL);
    match nr {
        0x01 => with(bytes, |args| {
            *args = VERSION;
            Ok(())
        }),
        0x02 => with(bytes, |args| queues::create(machine, process, args)),
        0x03 => with(bytes, |args| queues::destroy(machine, process, args)),
        0x04 => with(bytes, |args: &mut SetMemoryPolicy| {
            if args.default_policy > 1 || args.alternate_policy > 1 {
                Err(Errno::EINVAL)
            } else {
                is_gpu(args.gpu_id)
            }
        }),
        0x05 => with(bytes, |args: &mut ClockCounters| {
            // An unknown GPU is not an error: its counter reads 0.
            args.gpu_clock_counter = if is_gpu(args.gpu_id).is_ok() { gpu_ticks() } else { 0 };
            args.cpu_clock_counter = raw_ns();
            args.system_clock_counter = boottime_ns();
            args.system_clock_freq = 1_000_000_000;
            Ok(())
        }),
        0x07 => with(bytes, |args| queues::update(machine, process, args)),
        0x08 => with(bytes, |args| events::create(process, args)),
        0x09..=0x0b => with(bytes, |args| events::change(process, nr, args)),
        // The old debugger interface, which the driver refuses too.
        0x0d..=0x10 => Err(Errno::EPERM),
        0x11 => with(bytes, |args: &mut ValueOfGpu| is_gpu(args.gpu_id)),
        0x12 => with(bytes, |args: &mut TileConfig| {
            (args.num_tile_configs, args.num_macro_tile_configs) = (0, 0);
            is_gpu(args.gpu_id)
        }),
        0x13 => with(bytes, |args: &mut TrapHandler| is_gpu(args.gpu_id)),
        0x14 => with(bytes, |args| apertures(machine, process, args)),
        0x15 => with(bytes, |args: &mut AcquireVm| {
            is_gpu(args.gpu_id)?;
            is_render_node(process.pid, args.drm_fd)
        }),
        0x16 => with(bytes, |args| memory::alloc(machine, process, args)),
        0x17 => with(bytes, |args| memory::free(process, args)),
        0x18 | 0x19 => with(bytes, |args| memory::map(machine, process, args)),
        0x1a => with(bytes, |args| queues::set_cu_mask(process, args)),
        0x1c => with(bytes, |args| sharing::info(machine, process, args)),
        0x1d => with(bytes, |args| sharing::import_dmabuf(machine, process, args)),
        0x80 => with(bytes, |args| sharing::ipc_import(machine, process, args)),
        0x81 => with(bytes, |args| sharing::ipc_export(machine, process, args)),
        0x1e => with(bytes, |args: &mut AllocQueueGws| {
            args.first_gws = 0;
            if process.state().queues.contains_key(&args.queue_id) {
                Ok(())
            } else {
                Err(Errno::EINVAL)
            }
        }),
        0x20 => {
            let (args, attributes) = bytes.split_at_mut(Svm::SIZE);
            memory::svm(&Svm::load(args), attributes)
        }
        0x21 => with(bytes, |args| xnack_mode(machine, process, args)),
        0x23 => with(bytes, |args: &mut ValueOfGpu| {
            let gpu = machine.gpu_index(args.gpu_id).ok_or(Errno::EINVAL)?;
            args.value = machine.asic.vram_bytes.saturating_sub(process.state().vram_used(gpu));
            Ok(())
        }),
        0x25 => with(bytes, |args| runtime_enable(process, args)),
        // Among them the ioctls that give the caller a descriptor of another kind than a dmabuf.
        _ => Err(Errno::ENOTTY),
    }
}

fn apertures(machine: &Machine, process: &Process, args: &mut AperturesNew) -> IoctlResult {
    const LDS_BASE: u64 = 1 << 61;
    const SCRATCH_BASE: u64 = 1 << 60;
    if args.num_of_nodes == 0 {
        args.num_of_nodes = machine.gpus as u32;
        return Ok(());
    }
    let nodes = machine.gpus.min(args.num_of_nodes as usize);
    let mut bytes = vec![0; nodes * Apertures::SIZE];
    for (gpu, bytes) in bytes.chunks_exact_mut(Apertures::SIZE).enumerate() {
        let apertures = Apertures {
            lds_base: LDS_BASE,
            lds_limit: LDS_BASE | 0xffff_ffff,
            scratch_base: SCRATCH_BASE,
            scratch_limit: SCRATCH_BASE | 0xffff_ffff,
            gpuvm_base: 0x20_0000,
            gpuvm_limit: 0x7fff_ffff_ffff,
            gpu_id: topology::gpu_id(gpu),
        };
        apertures.store(bytes);
    }
    args.num_of_nodes = nodes as u32;
    process.space.write(args.apertures, &bytes).map_err(|_| Errno::EFAULT)
}

/// Checks whether the caller's descriptor is a render node. Only the link is read, because a stat would call this simulator itself.
fn is_render_node(pid: i32, fd: u32) -> IoctlResult {
    let target = std::fs::read_link(format!("/proc/{pid}/fd/{fd}")).map_err(|_| Errno::EINVAL)?;
    let is_node = target
        .file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("renderD"));
    if is_node { Ok(()) } else { Err(Errno::EINVAL) }
}

fn xnack_mode(machine: &Machine, process: &Process, args: &mut XnackMode) -> IoctlResult {
    let mut state = process.state();
    if args.xnack_enabled < 0 {
        args.xnack_enabled = i32::from(state.xnack);
        return Ok(());
    }
    let wanted = args.xnack_enabled != 0;
    if !state.queues.is_empty() {
        return Err(Errno::EBUSY);
    }
    if wanted && !machine.asic.xnack {
        return Err(Errno::EPERM);
    }
    state.xnack = wanted;
    Ok(())
}

fn runtime_enable(process: &Process, args: &mut RuntimeEnable) -> IoctlResult {
    let mut state = process.state();
    let enable = args.mode_mask & 1 != 0;
    if enable && state.runtime_enabled {
        return Err(Errno::EBUSY);
    }
    state.runtime_enabled = enable;
    Ok(())
}
