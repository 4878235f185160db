//! Layouts from the real BTF of three kernels and their amdgpu. The expected offsets are those of another reader of BTF.

use std::path::PathBuf;

use super::*;

/// Offsets of one kernel.
struct Known {
    kernel: &'static str,
    doorbell_off: u32,
    queue_process: u32,
    lead_thread: u32,
    pasid: Option<u32>,
    tgid: u32,
    mes_process: u32,
    mes_remove_doorbell: u32,
    /// The argument of `pqm_create_queue` that describes the queue.
    properties: u8,
}

const KNOWN: [Known; 3] = [
    Known {
        kernel: "6.1",
        doorbell_off: 104,
        queue_process: 200,
        lead_thread: 96,
        pasid: Some(160),
        tgid: 2420,
        mes_process: 0,
        mes_remove_doorbell: 0,
        properties: 3,
    },
    Known {
        kernel: "6.12",
        doorbell_off: 104,
        queue_process: 264,
        lead_thread: 96,
        pasid: Some(160),
        tgid: 2436,
        mes_process: 0,
        mes_remove_doorbell: 0,
        properties: 3,
    },
    Known {
        kernel: "7.x",
        doorbell_off: 112,
        queue_process: 272,
        lead_thread: 88,
        pasid: None,
        tgid: 2812,
        mes_process: 4,
        mes_remove_doorbell: 4,
        properties: 2,
    },
];

const FUNCTIONS: [&str; 9] = [
    "create_queue_cpsch",
    "destroy_queue_cpsch",
    "add_queue_mes",
    "mes_v11_0_add_hw_queue",
    "mes_v11_0_remove_hw_queue",
    "kfd_ioctl_create_queue",
    "pqm_create_queue",
    "evict_process_queues_cpsch",
    "kfd_ioctl",
];

fn way(argument: u8, bytes: u8, offsets: &[u32]) -> FactPlan {
    let mut all = [0; MAX_HOPS];
    all[..offsets.len()].copy_from_slice(offsets);
    FactPlan {
        argument,
        hops: offsets.len() as u8,
        bytes,
        pad: 0,
        offsets: all,
    }
}

/// The kernels that `cargo xtask setup --only vm` unpacked.
fn kernels() -> Option<PathBuf> {
    let cache = std::env::var_os("TRACER_CACHE").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache/tracer"));
    Some(cache.or_else(home)?.join("vm")).filter(|folder| folder.join("7.x/.complete").exists())
}

#[test]
fn arguments_of_three_kernels_lead_to_doorbell_type_and_process() {
    let Some(folder) = kernels() else {
        println!("left out: the kernels are not there (`cargo xtask setup --only vm`)");
        return;
    };
    for known in KNOWN {
        let folder = folder.join(known.kernel);
        let btf = Btf::of_files(&folder.join("vmlinux"), &folder.join("modules/amdgpu.ko")).unwrap();
        let plans = plans(&btf, &FUNCTIONS);
        let facts = |function: &str| plans[function].plan.facts;
        let kernel = known.kernel;
        let none = FactPlan::default();
        let optional = |way: Option<FactPlan>| way.unwrap_or_default();
        let of_queue = |argument| {
            let process = [known.queue_process, known.lead_thread, known.tgid];
            [
                way(argument, 4, &[known.doorbell_off]),
                way(argument, 4, &[40]),
                way(argument, 4, &[48]),
                way(argument, 4, &process),
                optional(known.pasid.map(|pasid| way(argument, 4, &[known.queue_process, pasid]))),
            ]
        };
        assert_eq!(facts("create_queue_cpsch"), of_queue(1), "{kernel}");
        // Before the queue's, there is another argument that leads to its process.
        let [doorbell, kind, id, ..] = of_queue(2);
        let (process, pasid) = (
            way(1, 4, &[8, 0, known.lead_thread, known.tgid]),
            optional(known.pasid.map(|pasid| way(1, 4, &[8, 0, pasid]))),
        );
        assert_eq!(
            facts("destroy_queue_cpsch"),
            [doorbell, kind, id, process, pasid],
            "{kernel}"
        );
        assert_eq!(facts("add_queue_mes"), of_queue(1), "{kernel}");
        let added = [way(1, 4, &[72]), way(1, 4, &[104]), none, none];
        let pasid = way(1, 4, &[known.mes_process]);
        assert_eq!(facts("mes_v11_0_add_hw_queue")[..4], added, "{kernel}");
        assert_eq!(facts("mes_v11_0_add_hw_queue")[4], pasid, "{kernel}");
        let removed = [way(1, 4, &[known.mes_remove_doorbell]), none, none, none, none];
        assert_eq!(facts("mes_v11_0_remove_hw_queue"), removed, "{kernel}");
        let process = way(1, 4, &[known.lead_thread, known.tgid]);
        let pasid = optional(known.pasid.map(|pasid| way(1, 4, &[pasid])));
        let ioctl = [none, none, none, process, pasid];
        assert_eq!(facts("kfd_ioctl_create_queue"), ioctl, "{kernel}");
        assert_eq!(
            facts("pqm_create_queue")[fact::TYPE],
            way(known.properties, 4, &[0]),
            "{kernel}"
        );
        let process = way(1, 4, &[8, 0, known.lead_thread, known.tgid]);
        assert_eq!(facts("evict_process_queues_cpsch")[fact::PROCESS], process, "{kernel}");
        // Its arguments are a file and numbers.
        assert!(!plans.contains_key("kfd_ioctl"), "{kernel}");
        for (function, plan) in &plans {
            let creates = function == "create_queue_cpsch";
            assert_eq!(plan.plan.at_return, u32::from(creates), "{kernel} {function}");
        }
        let types = &plans["create_queue_cpsch"].types;
        let names = [0, 1, 2].map(|value| type_name(types, value));
        assert_eq!(names, ["compute", "sdma", "hiq"], "{kernel}");
        assert_eq!(type_name(&plans["mes_v11_0_add_hw_queue"].types, 1), "1", "{kernel}");
    }
}
