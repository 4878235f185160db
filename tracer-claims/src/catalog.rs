//! The claims, and what the sources of the driver and the runtime say about them.
//!
//! Sources: `drivers/gpu/drm/amd` of Linux 6.1, 6.12 and 7.2, ROCr (`ROCR-Runtime`) 5.2 to 6.4 and CLR 6.4, in the versions that
//! Debian has. File names are those of these trees.

use super::report::Standing;
use super::scenario::Scenario;

/// A claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// `C1` to `C12`.
    pub id: &'static str,
    /// Text of the claim.
    pub text: &'static str,
    /// What the sources say about it.
    pub sources: &'static str,
    /// The verdict that follows from the sources; `None` if the claim can only be measured.
    pub sources_verdict: Option<Standing>,
    /// The scenario that tests it.
    pub scenario: Scenario,
    /// What is checked.
    pub checked: &'static str,
    /// The part of the scenario that is not real on a simulated GPU.
    pub simulated: &'static str,
}

/// All claims.
pub const CLAIMS: [Claim; 12] = [
    Claim {
        id: "C1",
        text: "Under the MES, 100 % of compute kernels are launched by doorbells, and none triggers drm_run_job.",
        sources: "True of what the host launches. ROCr (core/runtime/amd_aql_queue.cpp, StoreRelaxed) and CLR \
            (rocclr/device/rocm/rocvirtual.cpp, dispatchGenericAqlPacket) write a packet and store to the doorbell. amdgpu \
            makes jobs only of command submissions (amdgpu_cs.c) and of its own work (amdgpu_job.c). The MES is not the \
            reason: it is the same without. Packets that the GPU enqueues by itself are outside of this.",
        sources_verdict: Some(Standing::Holds),
        scenario: Scenario::Launches,
        checked: "every index of every compute queue was published by a doorbell that was seen, and no traced process \
            submitted a job on a comp_* or gfx* ring",
        simulated: "GPU and driver. The runtime, its packets, stores and system calls are real; there is no driver that \
            could make jobs",
    },
    Claim {
        id: "C2",
        text: "Under CPSCH (the HWS), compute kernels go through a compute ring of the KFD and trigger drm_run_job (comp_*).",
        sources: "Not so. Under the HWS the driver maps user queues by run lists (amdkfd/kfd_device_queue_manager.c, \
            kfd_packet_manager.c) when a queue comes or goes, not at a launch, and the KFD has no compute ring. comp_* rings \
            serve amdgpu_cs.c. ROCr launches in the same way whatever the scheduler. create_queue_cpsch is the MES's \
            function as well.",
        sources_verdict: Some(Standing::Contradicted),
        scenario: Scenario::Launches,
        checked: "kernels are jobs of the traced process on comp_* rings, and none was published by a doorbell",
        simulated: "GPU and driver, and that the HWS schedules it. The runtime, its packets, stores and system calls are real",
    },
    Claim {
        id: "C3",
        text: "hipMemcpy goes by ioctl through an SDMA ring of the KFD and triggers drm_run_job (sdma*).",
        sources: "Not so. CLR (rocclr/device/rocm/rocblit.cpp) calls hsa_amd_memory_async_copy, and ROCr \
            (core/runtime/amd_blit_sdma.cpp) writes to a user-mode SDMA queue, made once by CREATE_QUEUE, and stores to its \
            doorbell; small copies and those within a GPU are kernels. Jobs on sdma* are the driver's: page tables, clears, \
            moves (amdgpu_vm_sdma.c, amdgpu_ttm.c).",
        sources_verdict: Some(Standing::Contradicted),
        scenario: Scenario::Copies,
        checked: "by which way the copies that the dispatcher made by hsa_amd_memory_async_copy were submitted: doorbells of \
            user queues, or jobs of the traced process on sdma* rings",
        simulated: "GPU and driver. The runtime, its SDMA queue and its stores are real; there is no driver that could make \
            jobs for page tables and clears",
    },
    Claim {
        id: "C4",
        text: "Under the MES, creation and destruction of a queue go through the KFD to the MES ring (ADD_QUEUE, \
            REMOVE_QUEUE), not to a compute ring.",
        sources: "True: create_queue_cpsch calls add_queue_mes (amdkfd/kfd_device_queue_manager.c), which calls \
            mes_v11_0_add_hw_queue or that of another version (amdgpu/mes_v11_0.c, mes_v12_0.c). It writes to the MES ring, \
            which has no DRM scheduler, so that no scheduler event shows it: only the driver's functions do.",
        sources_verdict: Some(Standing::Holds),
        scenario: Scenario::Queues,
        checked: "CREATE_QUEUE and DESTROY_QUEUE for each queue, calls of add_queue_mes or mes_*_add_hw_queue, and no job of \
            the traced process on a comp_* or gfx* ring",
        simulated: "the driver: it answers the ioctls, and no queue goes to any scheduler firmware",
    },
    Claim {
        id: "C5",
        text: "No ioctl is made at a kernel launch.",
        sources: "True: between reserve and doorbell there is user-space code only (ROCr core/runtime/amd_aql_queue.cpp; CLR \
            rocclr/device/rocm/rocvirtual.cpp), and the KFD has no ioctl that submits (include/uapi/linux/kfd_ioctl.h).",
        sources_verdict: Some(Standing::Holds),
        scenario: Scenario::Launches,
        checked: "no thread entered an ioctl on a KFD or DRM device between a reserve of the program and its doorbell",
        simulated: "GPU and driver. The runtime, which makes no ioctl, is real",
    },
    Claim {
        id: "C6",
        text: "Cooperative kernels (GWS) still go by doorbells; GWS costs one ioctl per queue.",
        sources: "True: ROCr (core/runtime/amd_gpu_agent.cpp, amd_aql_queue.cpp EnableGWS) has one cooperative queue for each \
            GPU and calls ALLOC_QUEUE_GWS once when it is made; launches on it are packets like all others.",
        sources_verdict: Some(Standing::Holds),
        scenario: Scenario::Cooperative,
        checked: "ALLOC_QUEUE_GWS calls by queue and by launch, and that every packet was published by a doorbell",
        simulated: "what ALLOC_QUEUE_GWS does. The runtime, its calls, packets and stores are real",
    },
    Claim {
        id: "C7",
        text: "A launch that fails never goes to a ring of the driver instead.",
        sources: "True: a call that the runtime refuses submits nothing, and a packet that the GPU refuses stops its queue \
            with an event (amdkfd/kfd_events.c, kfd_int_process_v*.c; ROCr amd_aql_queue.cpp, DynamicQueueEventsHandler). \
            Neither ROCr nor CLR has another way to submit.",
        sources_verdict: Some(Standing::Holds),
        scenario: Scenario::Failures,
        checked: "launches that must fail were seen to be published by doorbells, and no traced process submitted a job on a \
            comp_* or gfx* ring",
        simulated: "GPU and driver, which refuse the launches. The runtime and what it does then are real",
    },
    Claim {
        id: "C8",
        text: "About 90 % of operations use the doorbell in a typical inference run (100 kernels, 10 copies); \
            1000 + 10 + 10 + 2 operations give 97.8 %.",
        sources: "The arithmetic is right if kernels use the doorbell and nothing else does. But copies use it as well \
            (ROCr core/runtime/amd_blit_sdma.cpp), so the share is that of what one counts as an operation.",
        sources_verdict: Some(Standing::Contradicted),
        scenario: Scenario::Inference,
        checked: "the share of doorbells among 100 kernels and 10 copies (85 to 95 % is about 90 %), and whether copies are \
            the rest; the arithmetic is done again",
        simulated: "GPU and driver. The numbers of packets, copies and ioctls are those of the real runtime; the times are not",
    },
    Claim {
        id: "C9",
        text: "A doorbell store takes about 100 to 150 ns, an ioctl about 1 us.",
        sources: "Nothing: it must be measured on each machine.",
        sources_verdict: None,
        scenario: Scenario::Launches,
        checked: "the time from reserve to doorbell, which has the store in it, and the time of the shortest kind of ioctl; \
            both have the cost of probes in them, so they are upper bounds",
        simulated: "every time: programs simulate the GPU and serve the ioctls in user space",
    },
    Claim {
        id: "C10",
        text: "In a trace of an MI308X, one hsa_queue_create costs about 11 ms, the first hipLaunchKernel 748 us, and 99 % of \
            HIP's time is hipMemcpy.",
        sources: "Nothing: it must be measured on such a GPU.",
        sources_verdict: None,
        scenario: Scenario::Streams,
        checked: "the time of hsa_queue_create and of CREATE_QUEUE, which is a part of it, on such a GPU",
        simulated: "every time: programs simulate the GPU and serve the ioctls in user space",
    },
    Claim {
        id: "C11",
        text: "Each HIP stream has an HSA queue of its own.",
        sources: "Not so: streams share a pool of queues (CLR rocclr/device/rocm/rocdevice.cpp, acquireQueue), by default 4 \
            of each priority (GPU_MAX_HW_QUEUES, rocclr/utils/flags.hpp). Streams with a mask of compute units are apart.",
        sources_verdict: Some(Standing::Contradicted),
        scenario: Scenario::Streams,
        checked: "on which queues the kernels of six streams are published",
        simulated: "the GPU; which queue a stream has is decided by HIP, which is AMD's own, unchanged",
    },
    Claim {
        id: "C12",
        text: "MI300X and MI250X use the MES.",
        sources: "Not so: amdgpu_discovery_set_mes_ip_blocks (amdgpu/amdgpu_discovery.c) has it from gfx11 on; gfx942 (MI300X) \
            and gfx90a (MI250X) are scheduled by the HWS.",
        sources_verdict: Some(Standing::Contradicted),
        scenario: Scenario::Launches,
        checked: "what schedules the queues of a gfx942 or gfx90a: the KFD topology, and the driver's functions that run",
        simulated: "GPU and driver: only the simulator says what schedules its queues",
    },
];

impl Claim {
    /// Returns the claim with this id, in upper or lower case; `None` if there is no such claim.
    #[must_use]
    pub fn by_id(id: &str) -> Option<&'static Self> {
        CLAIMS.iter().find(|claim| claim.id.eq_ignore_ascii_case(id))
    }
}
