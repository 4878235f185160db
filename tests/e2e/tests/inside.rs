//! The recorder inside a root folder, with the C library of each of Debian's releases: what a library does differently must not
//! break the recorder's processes, which may make few system calls.

use std::process::Command;

use tracer_e2e::{
    compare, place,
    scenario::{Run, Scenario, each_release, folder},
};

#[test]
fn each_c_library_records_the_same() {
    for (suite, asic) in each_release(1) {
        let dir = folder();
        let mut scenario = Scenario::new(suite, asic, &["compute-only", "-n", "100"]);
        let trace = dir.path().join("t.trace");
        scenario.through = vec![
            place::programs().join("tracer").into(),
            "record".into(),
            "--detail=full".into(),
            "-o".into(),
            trace.into(),
            "--".into(),
        ];
        let words = scenario.simulated(dir.path());
        let output = Command::new(&words[0])
            .args(&words[1..])
            .output()
            .expect("the simulator runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{suite}: {said}");
        let compared = compare::all(&Run::read(dir, output));
        println!("{suite} {asic}: {compared:?}");
        assert!(compared.dispatches >= 100, "{suite}: {compared:?}\n{said}");
    }
}
