use super::*;

/// Lines from Debian's kernels 6.12 and 7.2, and some that occur in no kernel.
const TEXT: &str = "\
ffffffff81000000 T _text
ffffffff81000010 D kfd_data
ffffffffc0a00000 t kfd_ioctl\t[amdgpu]
ffffffffc0a00010 t __pfx_kfd_ioctl\t[amdgpu]
ffffffffc0a00100 t execute_queues_cpsch.constprop.0\t[amdgpu]
ffffffffc0a00200 t execute_queues_cpsch.constprop.0.cold\t[amdgpu]
ffffffffc0a00300 t kgd_hqd_load\t[amdgpu]
ffffffffc0a00400 t kgd_hqd_load\t[amdgpu]
ffffffffc0a00500 t drm_sched_job_done.isra.0\t[gpu_sched]
ffffffffc0a00600 t pm_send_runlist\t[amdgpu]
ffffffffc0a00700 t pm_send_runlist.part.0\t[amdgpu]
ffffffffc0a00800 t destroy_queue_cpsch.part.0.isra.0\t[amdgpu]
ffffffffc0a00900 t mes_v11_0_add_hw_queue\t[amdgpu]
ffffffffc0a00a00 t mes_v12_0_add_hw_queue\t[amdgpu]
ffffffffc0a00b00 t mes_v12_0_add_hw_queue.cold.3\t[amdgpu]
ffffffffc0a00c00 t mes_v12_0_remove_hw_queue\t[amdgpu]
ffffffffc0a00d00 t mes_add\t[amdgpu]
0000000000000000 t hidden\t[amdgpu]
ffffffffc0a00e00 t odd.name.x
not a line
";

fn one(kallsyms: &Kallsyms, base: &str) -> String {
    match presence(kallsyms.find(base)) {
        Presence::One(symbol) => symbol.name.clone(),
        other => panic!("{base}: {other:?}"),
    }
}

#[test]
fn a_clone_is_found_by_its_base_name_and_probed_by_its_own() {
    let kallsyms = Kallsyms::parse(&["*"], TEXT);
    assert_eq!(one(&kallsyms, "kfd_ioctl"), "kfd_ioctl");
    assert_eq!(
        one(&kallsyms, "execute_queues_cpsch"),
        "execute_queues_cpsch.constprop.0"
    );
    assert_eq!(one(&kallsyms, "drm_sched_job_done"), "drm_sched_job_done.isra.0");
    assert_eq!(one(&kallsyms, "odd.name.x"), "odd.name.x");
    assert_eq!(
        kallsyms.find("drm_sched_job_done")[0].module.as_deref(),
        Some("gpu_sched")
    );
    assert_eq!(kallsyms.find("_text")[0].module, None);
}

#[test]
fn a_part_beside_the_whole_does_not_count_and_alone_it_is_not_enough() {
    let kallsyms = Kallsyms::parse(&["*"], TEXT);
    assert_eq!(one(&kallsyms, "pm_send_runlist"), "pm_send_runlist");
    assert_eq!(kallsyms.find("pm_send_runlist").len(), 2);
    let Presence::Ambiguous([part]) = presence(kallsyms.find("destroy_queue_cpsch")) else {
        panic!("only a part of it is there");
    };
    assert!(part.partial);
}

#[test]
fn several_functions_of_one_name_are_ambiguous_and_data_is_no_function() {
    let kallsyms = Kallsyms::parse(&["*"], TEXT);
    assert!(matches!(presence(kallsyms.find("kgd_hqd_load")), Presence::Ambiguous(two) if two.len() == 2));
    assert_eq!(presence(kallsyms.find("kfd_data")), Presence::Absent);
    assert_eq!(presence(kallsyms.find("execute_queues")), Presence::Absent);
}

#[test]
fn patterns_fit_base_names() {
    let kallsyms = Kallsyms::parse(&["*"], TEXT);
    let fits = |pattern: &str| -> Vec<String> { kallsyms.matching(pattern).map(|(name, _)| name.to_owned()).collect() };
    assert_eq!(
        fits("mes_v*_add_hw_queue"),
        ["mes_v11_0_add_hw_queue", "mes_v12_0_add_hw_queue"]
    );
    assert_eq!(fits("kfd_ioctl"), ["kfd_ioctl"]);
    assert_eq!(fits("mes_add*"), ["mes_add"]);
    // The start and the end of a pattern must not overlap in a name.
    assert!(fits("mes_add*_add").is_empty());
}

#[test]
fn hidden_addresses_are_unknown() {
    let kallsyms = Kallsyms::parse(&["*"], TEXT);
    assert_eq!(kallsyms.find("hidden")[0].address, None);
    assert_eq!(kallsyms.find("kfd_ioctl")[0].address, Some(0xffff_ffff_c0a0_0000));
}

#[test]
fn this_kernel_has_functions() {
    let kallsyms = Kallsyms::read(&["bpf_prog_*", "none_such"]).unwrap();
    assert!(kallsyms.total() > 1000);
    // Every kernel that runs eBPF programs has these functions. Functions that were not requested are absent.
    assert!(kallsyms.matching("bpf_prog_*").count() > 3);
    assert_eq!(kallsyms.matching("*").count(), kallsyms.matching("bpf_prog_*").count());
}
