//! The event ioctls: CREATE_EVENT, WAIT_EVENTS and the others.

use super::abi::{Abi, CreateEvent, EventData, EventId, WaitEvents};
use super::request::PendingIoctl;
use super::{Errno, IoctlResult};
use crate::events::is_signal_type;
use crate::process::Process;

/// `KFD_MMAP_TYPE_EVENTS`: CREATE_EVENT returns it as `event_page_offset` for every event with a slot in the page.
///
/// libhsakmt sets the address of the slot only if this is not 0. Without the address, every wait for a signal is in vain.
const EVENT_PAGE_OFFSET: u64 = 2 << 62;

/// The most events that one wait names: the driver allocates them all, and fails if it cannot.
const MAX_WAITED: u32 = 2 * crate::events::SIGNAL_EVENT_LIMIT;

/// Performs CREATE_EVENT.
pub fn create(process: &Process, args: &mut CreateEvent) -> IoctlResult {
    if args.event_page_offset != 0 {
        let page = process
            .state()
            .buffers
            .get(&args.event_page_offset)
            .cloned()
            .ok_or(Errno::EINVAL)?;
        process.events.set_page(page.va)?;
        let unsignaled = vec![0xff; page.size.min(u64::from(crate::events::SIGNAL_EVENT_LIMIT) * 8) as usize];
        process.space.write(page.va, &unsignaled).map_err(|_| Errno::EFAULT)?;
    }
    let id = process.events.create(args.event_type, args.auto_reset != 0)?;
    (args.event_id, args.event_trigger_data, args.event_page_offset) = (id, id, 0);
    if is_signal_type(args.event_type) {
        (args.event_page_offset, args.event_slot_index) = (EVENT_PAGE_OFFSET, id);
    }
    Ok(())
}

/// Performs DESTROY_EVENT, SET_EVENT or RESET_EVENT.
pub fn change(process: &Process, nr: u8, args: &EventId) -> IoctlResult {
    match nr {
        0x09 => process.events.destroy(args.event_id),
        0x0a => process.events.set(args.event_id),
        _ => process.events.reset(args.event_id),
    }
}

/// Performs WAIT_EVENTS. The call is answered here or, if it has to wait, by the thread that sets the event.
pub fn wait(process: &Process, request: PendingIoctl) {
    let args = WaitEvents::load(&request.bytes());
    match waited_events(process, &args) {
        Ok(list) => process.events.wait(request, args, &list),
        Err(errno) => request.finish_with(Err(errno), &args),
    }
}

fn waited_events(process: &Process, args: &WaitEvents) -> Result<Vec<(u64, EventData)>, Errno> {
    if args.num_events > MAX_WAITED {
        return Err(Errno::ENOMEM);
    }
    let mut bytes = vec![0; args.num_events as usize * EventData::SIZE];
    process
        .space
        .read(args.events_ptr, &mut bytes)
        .map_err(|_| Errno::EFAULT)?;
    let addresses = (args.events_ptr..).step_by(EventData::SIZE);
    Ok(addresses
        .zip(bytes.chunks_exact(EventData::SIZE).map(EventData::load))
        .collect())
}
