//! Tests of bad arguments, handler by handler, without a device file: the test is its own client.

mod sharing;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::abi::*;
use super::{Errno, IoctlResult, kfd};
use crate::asic::Asic;
use crate::kernels::Kernels;
use crate::machine::Machine;
use crate::process::Process;
use crate::topology::gpu_id;
use crate::truth::Truth;

struct Driver {
    machine: Arc<Machine>,
    process: Arc<Process>,
    _sysfs: tempfile::TempDir,
}

impl Driver {
    fn new(asic: &str) -> Self {
        let sysfs = tempfile::tempdir().unwrap();
        let asic = Asic::by_name(asic).unwrap();
        let truth = Arc::new(Truth::start(None).unwrap());
        let proc_folder = PathBuf::from(sysfs.path());
        let machine = Machine::new(
            (asic, 2),
            Kernels::default(),
            Duration::ZERO,
            Vec::new(),
            truth,
            proc_folder,
            false,
        )
        .unwrap();
        let machine = Arc::new(machine);
        let process = machine.process(std::process::id() as i32).unwrap();
        Self {
            machine,
            process,
            _sysfs: sysfs,
        }
    }

    fn call<A: Abi>(&self, nr: u8, args: &mut A) -> IoctlResult {
        let mut bytes = vec![0; A::SIZE.max(128)];
        args.store(&mut bytes);
        let result = kfd::handle(&self.machine, &self.process, nr, &mut bytes);
        *args = A::load(&bytes);
        result
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.process.tear_down(&self.machine);
    }
}

/// Memory that a queue can use: the ring, and one page for both pointers.
struct QueueMemory(Vec<u64>);

impl QueueMemory {
    fn new() -> Self {
        Self(vec![1; 4096])
    }

    fn args(&self) -> CreateQueue {
        let at = self.0.as_ptr() as u64;
        CreateQueue {
            ring_base_address: at,
            ring_size: 4096,
            write_pointer_address: at + 8192,
            read_pointer_address: at + 8200,
            gpu_id: gpu_id(0),
            queue_type: 2,
            queue_percentage: 100,
            queue_priority: 7,
            ..CreateQueue::default()
        }
    }
}

#[test]
fn queues_are_numbered_and_have_doorbells_of_their_own() {
    let driver = Driver::new("gfx942");
    let memory = QueueMemory::new();
    let mut first = memory.args();
    let mut second = CreateQueue {
        gpu_id: gpu_id(1),
        ..memory.args()
    };
    assert_eq!(driver.call(2, &mut first), Ok(()));
    assert_eq!(driver.call(2, &mut second), Ok(()));
    assert_eq!((first.queue_id, second.queue_id), (0, 1));
    assert_ne!(
        first.doorbell_offset & !0x1fff,
        second.doorbell_offset & !0x1fff,
        "a page a GPU"
    );
    assert_eq!(driver.call(3, &mut DestroyQueue { queue_id: 0 }), Ok(()));
    assert_eq!(driver.call(3, &mut DestroyQueue { queue_id: 0 }), Err(Errno::EINVAL));
    assert_eq!(driver.call(2, &mut first), Ok(()));
    assert_eq!(first.queue_id, 0);
}

#[test]
fn queues_that_cannot_be() {
    let driver = Driver::new("gfx1100");
    let memory = QueueMemory::new();
    let create = |args: CreateQueue| driver.call(2, &mut { args });
    let good = memory.args();
    assert_eq!(
        create(CreateQueue {
            ring_size: 4095,
            ..good
        }),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        create(CreateQueue {
            queue_percentage: 101,
            ..good
        }),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        create(CreateQueue {
            queue_priority: 16,
            ..good
        }),
        Err(Errno::EINVAL)
    );
    assert_eq!(create(CreateQueue { gpu_id: 1, ..good }), Err(Errno::EINVAL));
    assert_eq!(create(CreateQueue { queue_type: 9, ..good }), Err(Errno(524)));
    assert_eq!(
        create(CreateQueue {
            queue_type: 4,
            sdma_engine_id: 2,
            ..good
        }),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        create(CreateQueue {
            ring_base_address: u64::MAX,
            ..good
        }),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        create(CreateQueue {
            write_pointer_address: 1 << 63,
            ..good
        }),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        create(CreateQueue {
            ring_base_address: 0x1000,
            ..good
        }),
        Err(Errno::EINVAL),
        "nothing there"
    );
    assert_eq!(
        create(CreateQueue {
            read_pointer_address: 0x1000,
            ..good
        }),
        Err(Errno::EINVAL),
        "nothing there"
    );
    assert!(driver.process.state().queues.is_empty());
}

#[test]
fn changes_to_queues() {
    let driver = Driver::new("gfx90a");
    let memory = QueueMemory::new();
    let mut args = memory.args();
    assert_eq!(driver.call(2, &mut args), Ok(()));
    let update = UpdateQueue {
        queue_id: 0,
        ..UpdateQueue::default()
    };
    assert_eq!(driver.call(7, &mut { update }), Ok(()), "no ring, no share: suspended");
    assert_eq!(
        driver.call(7, &mut UpdateQueue { queue_id: 1, ..update }),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        driver.call(7, &mut UpdateQueue { ring_size: 3, ..update }),
        Err(Errno::EINVAL)
    );
    let mask = [u32::MAX; 4];
    let mask = SetCuMask {
        queue_id: 0,
        num_cu_mask: 128,
        cu_mask_ptr: mask.as_ptr() as u64,
    };
    assert_eq!(driver.call(0x1a, &mut { mask }), Ok(()));
    assert_eq!(
        driver.call(
            0x1a,
            &mut SetCuMask {
                num_cu_mask: 33,
                ..mask
            }
        ),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        driver.call(
            0x1a,
            &mut SetCuMask {
                cu_mask_ptr: 64,
                ..mask
            }
        ),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        driver.call(0x1a, &mut SetCuMask { queue_id: 9, ..mask }),
        Err(Errno::EFAULT)
    );
}

#[test]
fn memory() {
    let driver = Driver::new("gfx942");
    let va = 0x7000_0000_0000;
    let vram = AllocMemory {
        va_addr: va,
        size: 8192,
        gpu_id: gpu_id(0),
        flags: 1 << 31 | 1,
        ..AllocMemory::default()
    };
    let mut args = vram;
    assert_eq!(driver.call(0x16, &mut args), Ok(()));
    assert_eq!(args.handle >> 32, u64::from(gpu_id(0)));
    assert_eq!(driver.process.space.write(va + 8184, &[1; 8]), Ok(()));
    let alloc = |args: AllocMemory| driver.call(0x16, &mut { args });
    assert_eq!(alloc(AllocMemory { size: 0, ..vram }), Err(Errno::EINVAL));
    assert_eq!(alloc(AllocMemory { gpu_id: 5, ..vram }), Err(Errno::EINVAL));
    assert_eq!(alloc(AllocMemory { size: 1 << 40, ..vram }), Err(Errno::ENOMEM));
    assert_eq!(alloc(AllocMemory { flags: 3, ..vram }), Err(Errno::EINVAL));
    assert_eq!(
        alloc(AllocMemory {
            flags: 8,
            size: 4096,
            ..vram
        }),
        Err(Errno::EINVAL),
        "a doorbell page is 8 KiB"
    );
    assert_eq!(
        alloc(AllocMemory {
            flags: 4,
            mmap_offset: 0x1001,
            ..vram
        }),
        Err(Errno::EINVAL)
    );
    let ids = [gpu_id(0), gpu_id(1)];
    let map = MapMemory {
        handle: args.handle,
        device_ids: ids.as_ptr() as u64,
        n_devices: 2,
        n_success: 0,
    };
    let mut mapped = map;
    assert_eq!(driver.call(0x18, &mut mapped), Ok(()));
    assert_eq!(mapped.n_success, 2);
    assert_eq!(
        driver.call(0x18, &mut MapMemory { device_ids: 16, ..map }),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        driver.call(0x18, &mut MapMemory { n_devices: 0, ..map }),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        driver.call(0x18, &mut MapMemory { handle: 1, ..map }),
        Err(Errno::EINVAL)
    );
    assert_eq!(driver.call(0x17, &mut FreeMemory { handle: args.handle }), Ok(()));
    assert_eq!(
        driver.call(0x17, &mut FreeMemory { handle: args.handle }),
        Err(Errno::EINVAL)
    );
    assert!(driver.process.space.read_u64(va).is_err());
}

#[test]
fn the_rest() {
    let driver = Driver::new("gfx1100");
    let mut version = GetVersion::default();
    assert_eq!(driver.call(1, &mut version), Ok(()));
    assert_eq!(version, GetVersion { major: 1, minor: 18 });
    for nr in [0, 0x1f, 0x22, 0x24, 0x26, 0x27, 0x7f, 0x82, 0xff] {
        assert_eq!(driver.call(nr, &mut version), Err(Errno::ENOTTY), "{nr:#x}");
    }
    let mut apertures = AperturesNew::default();
    assert_eq!(driver.call(0x14, &mut apertures), Ok(()));
    assert_eq!(apertures.num_of_nodes, 2);
    assert_eq!(
        driver.call(
            0x14,
            &mut AperturesNew {
                apertures: 64,
                num_of_nodes: 2
            }
        ),
        Err(Errno::EFAULT)
    );
    assert_eq!(
        driver.call(
            0x15,
            &mut AcquireVm {
                drm_fd: 9999,
                gpu_id: gpu_id(0)
            }
        ),
        Err(Errno::EINVAL)
    );
    assert_eq!(
        driver.call(0x21, &mut XnackMode { xnack_enabled: 1 }),
        Err(Errno::EPERM),
        "gfx11 has none"
    );
    let mut xnack = XnackMode { xnack_enabled: -1 };
    assert_eq!(driver.call(0x21, &mut xnack), Ok(()));
    assert_eq!(xnack.xnack_enabled, 0);
    let enable = RuntimeEnable {
        mode_mask: 1,
        ..RuntimeEnable::default()
    };
    assert_eq!(driver.call(0x25, &mut { enable }), Ok(()));
    assert_eq!(driver.call(0x25, &mut { enable }), Err(Errno::EBUSY));
    let svm = Svm {
        start_addr: 0x1000,
        size: 0x1000,
        op: 0,
        nattr: 0,
    };
    assert_eq!(driver.call(0x20, &mut { svm }), Ok(()));
    assert_eq!(driver.call(0x20, &mut Svm { size: 1, ..svm }), Err(Errno::EINVAL));
    assert_eq!(
        driver.call(
            8,
            &mut CreateEvent {
                event_page_offset: 77,
                ..CreateEvent::default()
            }
        ),
        Err(Errno::EINVAL)
    );
    let mut event = CreateEvent::default();
    assert_eq!(driver.call(8, &mut event), Ok(()));
    assert_eq!((event.event_id, event.event_slot_index), (1, 1));
    assert_ne!(event.event_page_offset, 0, "or libhsakmt has no mailbox");
}
