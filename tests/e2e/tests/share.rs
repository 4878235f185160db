//! GPU memory that two processes share: what the device saw of both, and that the trace has it.

use std::collections::BTreeSet;

use tracer_e2e::{
    compare,
    scenario::{Run, Scenario},
};

/// Returns the driver's calls of these names that succeeded, as the device saw them.
fn calls(run: &Run, names: &[&str]) -> BTreeSet<String> {
    let all = run.truth.ioctls.iter();
    all.filter(|ioctl| ioctl.ret == 0)
        .filter_map(|ioctl| ioctl.name.clone())
        .filter(|name| names.contains(&name.as_str()))
        .collect()
}

/// Both ways of runtimes: handles of AMD's own driver package, and dmabufs that go from process to process through a socket. The
/// kernel of the child process takes effect in the memory of its parent, which the dispatcher checks.
#[test]
fn a_child_process_fills_the_memory_of_its_parent() {
    const HANDLES: [&str; 2] = ["IPC_EXPORT_HANDLE", "IPC_IMPORT_HANDLE"];
    const DMABUFS: [&str; 3] = ["EXPORT_DMABUF", "GET_DMABUF_INFO", "IMPORT_DMABUF"];
    // 6.1.2 knows only handles, whatever the variable says.
    let cases: [(&str, &str, &[&str]); 5] = [
        ("trixie", "0", &HANDLES),
        ("sid", "1", &HANDLES),
        ("sid", "0", &DMABUFS),
        ("experimental", "1", &HANDLES),
        ("experimental", "0", &DMABUFS),
    ];
    for (suite, legacy, expected) in cases {
        let scenario = Scenario {
            env: vec![("HSA_ENABLE_IPC_MODE_LEGACY", legacy.into())],
            ..Scenario::new(suite, "gfx942", &["share"])
        };
        // The dispatcher's report covers only the parent, so everything is compared with the device.
        let run = scenario.record();
        let compared = compare::device(&run);
        println!("{suite}, {legacy}: {compared:?}");
        assert_eq!(run.did()["results"], "ok");
        let names: Vec<&str> = HANDLES.iter().chain(&DMABUFS).copied().collect();
        let expected: BTreeSet<String> = expected.iter().map(|&name| name.into()).collect();
        assert_eq!(calls(&run, &names), expected, "{suite}, {legacy}");
        let fills: Vec<u32> = run
            .dispatches()
            .filter(|dispatch| dispatch.kernel.as_deref() == Some("fill"))
            .map(|dispatch| dispatch.pid)
            .collect();
        let pids: BTreeSet<u32> = fills.iter().copied().collect();
        assert_eq!(
            (fills.len(), pids.len()),
            (2, 2),
            "{suite}, {legacy}: one kernel of each process"
        );
    }
}
