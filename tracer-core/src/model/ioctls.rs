//! Ioctls: their names, and the effect of those that create and destroy queues.

use std::borrow::Cow;

use tracer_common::kfd::{self, QueueType, create_queue as layout};

use super::ioctl_args;
use crate::event::Ioctl;
use crate::tables::{self, RingMemory};

/// A KFD or DRM device, according to the type of an ioctl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Device {
    Kfd,
    Drm,
}

impl Device {
    /// Returns the device of a command; `None` for commands of other devices. Console ioctls have the same type as the KFD's, but
    /// none of them has a direction.
    pub(super) fn of(cmd: u32) -> Option<Self> {
        match kfd::ioc_type(cmd) {
            kfd::IOC_TYPE_KFD if kfd::ioc_dir(cmd) != 0 => Some(Self::Kfd),
            kfd::IOC_TYPE_DRM => Some(Self::Drm),
            _ => None,
        }
    }
}

/// Effect of an ioctl on the queues of its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueChange {
    Created(CreateQueue),
    Destroyed { queue_id: u32 },
}

/// A successful CREATE_QUEUE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreateQueue {
    pub(super) enter_ns: u64,
    pub(super) exit_ns: u64,
    pub(super) ring_base: u64,
    pub(super) ring_bytes: u32,
    /// Memory that holds the ring; `None` if unknown.
    pub(super) ring_memory: Option<RingMemory>,
    pub(super) write_pointer: u64,
    pub(super) read_pointer: u64,
    pub(super) kind: QueueType,
    pub(super) gpu_id: u32,
    pub(super) priority: u32,
    /// Results of the call. They are unknown if the argument could not be read at exit.
    pub(super) queue_id: Option<u32>,
    pub(super) doorbell_offset: Option<u64>,
    /// Requested SDMA engine; `None` if the driver chooses.
    pub(super) engine: Option<u32>,
}

/// Returns the row for an ioctl.
pub(super) fn fact(device: Device, event: &Ioctl<'_>) -> tables::Ioctl {
    let nr = kfd::ioc_nr(event.cmd);
    let (device, name) = match device {
        Device::Kfd => ("kfd", kfd::ioctl_name(nr)),
        Device::Drm => ("drm", kfd::drm_ioctl_name(nr)),
    };
    tables::Ioctl {
        pid: event.origin.pid,
        tid: event.origin.tid,
        enter_ns: event.origin.time_ns,
        exit_ns: event.exit_ns,
        device,
        fd: event.fd,
        cmd: event.cmd,
        name: name.map_or_else(|| Cow::Owned(format!("nr-{nr:#04x}")), Cow::Borrowed),
        ret: event.ret,
        args: ioctl_args::text(event),
        arg_in: event.arg_in.map(<[u8]>::to_vec),
        arg_out: event.arg_out.map(<[u8]>::to_vec),
    }
}

/// Returns the effect of an ioctl on queues; `None` if there is none, if the ioctl failed, or if its argument is unknown.
pub(super) fn queue_change(device: Device, event: &Ioctl<'_>) -> Option<QueueChange> {
    event.ret.filter(|&ret| ret >= 0)?;
    match kfd::ioc_nr(event.cmd) {
        _ if device != Device::Kfd => None,
        kfd::NR_CREATE_QUEUE => create_queue(event).map(QueueChange::Created),
        kfd::NR_DESTROY_QUEUE => {
            let queue_id = u32_at(event.arg_in.or(event.arg_out)?, 0)?;
            Some(QueueChange::Destroyed { queue_id })
        }
        _ => None,
    }
}

fn create_queue(event: &Ioctl<'_>) -> Option<CreateQueue> {
    let whole = |arg: &&[u8]| arg.len() >= layout::MIN_LEN;
    let out = event.arg_out.filter(whole);
    // The driver copies the whole argument back, so at exit it also contains the inputs.
    let arg = event.arg_in.filter(whole).or(out)?;
    let kind = QueueType::from_raw(u32_at(arg, layout::QUEUE_TYPE)?);
    Some(CreateQueue {
        enter_ns: event.origin.time_ns,
        exit_ns: event.exit_ns,
        ring_base: u64_at(arg, layout::RING_BASE)?,
        ring_bytes: u32_at(arg, layout::RING_SIZE)?,
        ring_memory: None,
        write_pointer: u64_at(arg, layout::WRITE_POINTER)?,
        read_pointer: u64_at(arg, layout::READ_POINTER)?,
        kind,
        gpu_id: u32_at(arg, layout::GPU_ID)?,
        priority: u32_at(arg, layout::PRIORITY)?,
        queue_id: out.and_then(|out| u32_at(out, layout::QUEUE_ID)),
        doorbell_offset: out.and_then(|out| u64_at(out, layout::DOORBELL_OFFSET)),
        engine: u32_at(arg, layout::SDMA_ENGINE).filter(|_| kind == QueueType::SdmaByEngine),
    })
}

pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ioctl(cmd: u32) -> Ioctl<'static> {
        let origin = crate::event::Origin {
            time_ns: 5,
            pid: 1,
            tid: 2,
        };
        Ioctl {
            origin,
            exit_ns: 9,
            fd: 3,
            cmd,
            ret: Some(0),
            arg_in: None,
            arg_out: None,
        }
    }

    #[test]
    fn a_device_is_known_by_type_and_direction() {
        assert_eq!(Device::of(0xc058_4b02), Some(Device::Kfd));
        assert_eq!(Device::of(0x0000_4b3b), None, "a console ioctl");
        assert_eq!(Device::of(0xc018_6444), Some(Device::Drm));
        assert_eq!(Device::of(0x5401), None, "TCGETS");
    }

    #[test]
    fn unknown_numbers_are_named_by_their_number() {
        assert_eq!(fact(Device::Kfd, &ioctl(0xc058_4b02)).name, "CREATE_QUEUE");
        assert_eq!(fact(Device::Kfd, &ioctl(0xc058_4bf0)).name, "nr-0xf0");
        assert_eq!(fact(Device::Drm, &ioctl(0xc018_6444)).name, "AMDGPU_CS");
        assert_eq!(fact(Device::Drm, &ioctl(0xc018_6403)).name, "nr-0x03");
    }

    #[test]
    fn a_queue_is_made_only_by_a_call_that_succeeded_and_was_read() {
        let mut arg = [0_u8; 88];
        arg[8..16].copy_from_slice(&0x7f00_1038_u64.to_le_bytes());
        arg[40] = 2;
        let done = Ioctl {
            arg_in: Some(&arg),
            ..ioctl(0xc058_4b02)
        };
        let Some(QueueChange::Created(queue)) = queue_change(Device::Kfd, &done) else {
            panic!("no queue")
        };
        assert_eq!(
            (queue.write_pointer, queue.kind, queue.queue_id),
            (0x7f00_1038, QueueType::ComputeAql, None)
        );
        assert_eq!(queue_change(Device::Kfd, &Ioctl { ret: Some(-12), ..done }), None);
        assert_eq!(queue_change(Device::Kfd, &Ioctl { ret: None, ..done }), None);
        assert_eq!(
            queue_change(
                Device::Kfd,
                &Ioctl {
                    arg_in: Some(&arg[..40]),
                    ..done
                }
            ),
            None
        );
        // Linux 6.12 made the argument longer. The number identifies the command, not the size.
        assert!(
            queue_change(
                Device::Kfd,
                &Ioctl {
                    cmd: 0xc060_4b02,
                    ..done
                }
            )
            .is_some()
        );
    }
}
