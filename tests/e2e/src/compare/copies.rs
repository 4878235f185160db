//! SDMA submissions: their commands move what the device moved.

use std::collections::BTreeSet;

use tracer_core::tables::{Copy, CopyOp, Queue};

use super::unhex;
use crate::{scenario::Run, truth};

/// Checks that every position that the device noticed in an SDMA queue was seen as the end of a submission, none of them twice, and
/// that each submission moves what the device took between its ends, on the engine that the queue was created for. Returns the
/// number of submissions.
pub fn submissions(run: &Run, truth: &truth::Queue, queue: &Queue) -> usize {
    let own: Vec<&Copy> = run.copies().filter(|copy| copy.queue == Some(queue.queue)).collect();
    let ends: BTreeSet<u64> = own.iter().map(|copy| copy.end).collect();
    assert_eq!(ends.len(), own.len(), "a submission of {queue:?} twice: {own:?}");
    for value in &truth.doorbells {
        assert!(ends.contains(value), "SDMA doorbell {value:#x} of {queue:?} is missing");
    }
    let mut taken = 0;
    let engine = engine(run, truth);
    for copy in &own {
        assert_eq!(copy.engine, engine, "{copy:?}");
        taken += fields(truth, copy);
    }
    let moving = truth.commands.iter().filter(|command| moves(command)).count();
    assert_eq!(taken, moving, "commands of {queue:?} outside of every submission");
    own.len()
}

/// Returns the engine that a queue's CREATE_QUEUE chose; `None` if the driver chose it.
fn engine(run: &Run, truth: &truth::Queue) -> Option<u32> {
    // `KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID`, `queue_id` and `sdma_engine_id` of `include/uapi/linux/kfd_ioctl.h`.
    const BY_ENGINE: u32 = 4;
    const QUEUE_ID: usize = 52;
    const ENGINE: usize = 88;
    if truth.kind != BY_ENGINE {
        return None;
    }
    // An id is used again after its queue is destroyed: the calls with this id are those of its queues, in the same order.
    let is_same = |queue: &&truth::Queue| (queue.pid, queue.queue_id) == (truth.pid, truth.queue_id);
    let earlier = run
        .truth
        .queues
        .iter()
        .filter(is_same)
        .take_while(|queue| !std::ptr::eq(*queue, truth));
    let mut created = run.truth.ioctls.iter().filter_map(|ioctl| {
        let is_it = ioctl.pid == truth.pid && ioctl.ret == 0 && ioctl.name.as_deref() == Some("CREATE_QUEUE");
        let arg = is_it.then(|| unhex(&ioctl.arg_out))?;
        let word = |at: usize| u32::from_le_bytes(arg[at..at + 4].try_into().expect("4 bytes"));
        (word(QUEUE_ID) == truth.queue_id).then(|| word(ENGINE))
    });
    let engine = created.nth(earlier.count());
    assert!(engine.is_some(), "no call made {truth:?}");
    engine
}

fn moves(command: &truth::Sdma) -> bool {
    ["copy", "copy_rect", "fill"].contains(&command.op.as_str())
}

/// Compares one submission. Returns how many commands of the device it covers.
fn fields(truth: &truth::Queue, copy: &Copy) -> usize {
    let commands: Vec<&truth::Sdma> = truth
        .commands
        .iter()
        .filter(|command| (copy.begin..copy.end).contains(&command.offset))
        .filter(|command| moves(command))
        .collect();
    let kinds: BTreeSet<&str> = commands.iter().map(|command| command.op.as_str()).collect();
    let op = match kinds.into_iter().collect::<Vec<_>>()[..] {
        [] => CopyOp::None,
        ["copy"] => CopyOp::Copy,
        ["copy_rect"] => CopyOp::CopyRect,
        ["fill"] => CopyOp::Fill,
        _ => CopyOp::Mixed,
    };
    assert_eq!(copy.op, Some(op), "{copy:?}: {commands:?}");
    assert_eq!(
        copy.bytes,
        Some(commands.iter().map(|command| command.bytes).sum()),
        "{copy:?}"
    );
    assert_eq!(copy.commands, Some(commands.len() as u32), "{copy:?}: {commands:?}");
    if op == CopyOp::Copy {
        assert_eq!(copy.source, Some(commands[0].src), "{copy:?}: {commands:?}");
    }
    if [CopyOp::Copy, CopyOp::Fill].contains(&op) {
        assert_eq!(copy.destination, Some(commands[0].dst), "{copy:?}: {commands:?}");
    }
    commands.len()
}
