//! Names of kernels: tracer follows code objects as they are loaded and unloaded, on every release of AMD's runtime. The names
//! equal those that the dispatcher says it launched.

use tracer_core::{
    code_object::CodeObjectOrigin,
    tables::{CodeObject, Dispatch, Fact, Kernel, Queue},
};
use tracer_e2e::{
    compare,
    scenario::{Run, Scenario, each_release, report_text},
};

/// Kernels of tests/gpu-kernels, all in one code object.
const OWN: [&str; 5] = ["fill", "reduce", "saxpy", "spin", "vector_add"];

fn code_objects(run: &Run) -> Vec<&CodeObject> {
    let facts = run.facts.iter();
    facts
        .filter_map(|fact| {
            if let Fact::CodeObject(object) = fact {
                Some(object)
            } else {
                None
            }
        })
        .collect()
}

fn kernels(run: &Run) -> Vec<&Kernel> {
    let facts = run.facts.iter();
    facts
        .filter_map(|fact| {
            if let Fact::Kernel(kernel) = fact {
                Some(kernel)
            } else {
                None
            }
        })
        .collect()
}

fn dispatches(run: &Run) -> Vec<&Dispatch> {
    let facts = run.facts.iter();
    facts
        .filter_map(|fact| {
            if let Fact::Dispatch(dispatch) = fact {
                Some(dispatch)
            } else {
                None
            }
        })
        .collect()
}

#[test]
fn every_dispatch_has_the_name_of_its_kernel() {
    for (turn, from) in ["file", "memory"].into_iter().enumerate() {
        for (suite, asic) in each_release(turn) {
            let run = Scenario::new(suite, asic, &["mixed", "--load-from", from]).record();
            let compared = compare::all(&run);
            assert_eq!((run.did()["results"].as_str(), compared.named), (Some("ok"), 3));
            println!("{suite} {asic} from {from}: {compared:?}");
            let [object] = code_objects(&run)[..] else {
                panic!("{suite} from {from}: {:?}", code_objects(&run))
            };
            assert!(object.uri.starts_with(&format!("{from}://")), "{object:?}");
            assert!(object.uri.contains(".co") == (from == "file"), "{object:?}");
            assert_eq!((object.origin, object.unread), (CodeObjectOrigin::Loaded, None));
            assert_eq!(object.kernels, Some(OWN.len() as u32));
            let target = object.target.as_deref().expect("version 5 tells it");
            assert!(target.ends_with(asic) || target.contains("generic"), "{object:?}");
            assert!(
                object.unloaded_ns.is_some_and(|end| end > object.loaded_ns),
                "{object:?}"
            );
            let mut kernels = kernels(&run);
            kernels.sort_by_key(|kernel| kernel.name.clone());
            assert_eq!(kernels.iter().map(|kernel| &*kernel.name).collect::<Vec<_>>(), OWN);
            // The size that its file declares: four arguments in 28 bytes, rounded up to 32 or not.
            let vector_add = kernels.last().expect("five");
            assert!(matches!(vector_add.kernarg_bytes, Some(28..=32)), "{vector_add:?}");
            assert_eq!((vector_add.group_bytes, vector_add.private_bytes), (Some(0), Some(0)));
            assert!(
                vector_add.vgprs > Some(0) && vector_add.sgprs > Some(0),
                "{vector_add:?}"
            );
            assert_eq!(
                vector_add.wavefront,
                Some(if asic.starts_with("gfx9") { 64 } else { 32 })
            );
        }
    }
}

/// The report for people has the name instead of the address, and so has the JSON report.
#[test]
fn reports_tell_names() {
    let run = Scenario::new("sid", "gfx942", &["compute-only", "-n", "7"]).record();
    let own = run.report["kernels"].as_array().expect("kernels");
    let own: Vec<_> = own.iter().filter(|kernel| kernel["name"] == "vector_add").collect();
    assert_eq!(
        (own.len(), own[0]["count"].as_u64()),
        (1, Some(7)),
        "{}",
        run.report["kernels"]
    );
    assert_eq!(run.report["code_objects"], 1);
    let text = report_text(run.trace.dir());
    let line = text
        .lines()
        .find(|line| line.starts_with("vector_add "))
        .expect("a line of the report");
    assert_eq!(line.split_whitespace().nth(1), Some("7"), "{line}");
}

#[test]
fn an_address_that_is_used_again_has_the_name_of_its_time() {
    for (suite, asic) in each_release(1) {
        let run = Scenario::new(suite, asic, &["reload", "-n", "8"]).record();
        compare::all(&run);
        let did = run.did();
        assert_eq!(did["results"], "ok");
        let launches = did["launches"].as_array().expect("launches");
        assert_eq!(launches.len(), 8);
        let hex = |value: &serde_json::Value| {
            let text = value.as_str().expect("an address");
            u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("hexadecimal")
        };
        let queue = hex(&launches[0]["queue"]);
        let is_it = |fact: &&Fact| matches!(fact, Fact::Queue(q) if q.handle == queue);
        let Some(Fact::Queue(Queue { queue, .. })) = run.facts.iter().find(is_it) else {
            panic!("the queue is missing")
        };
        for launch in launches {
            let index = launch["index"].as_u64();
            let found = dispatches(&run);
            let found = found.iter().find(|d| d.queue == *queue && Some(d.index) == index);
            let found = found.unwrap_or_else(|| panic!("{launch} is missing"));
            assert_eq!(found.kernel_object, hex(&launch["kernel_object"]));
            assert_eq!(found.kernel.as_deref(), launch["kernel"].as_str(), "{found:?}");
        }
        let addresses: std::collections::BTreeSet<u64> = launches.iter().map(|l| hex(&l["kernel_object"])).collect();
        println!("{suite} {asic}: {} addresses of 8 kernels", addresses.len());
        assert!(
            addresses.len() < launches.len(),
            "no address was used again: nothing was shown"
        );
        // The dispatcher's own object, and one per round. Each of these is unloaded before the next is loaded.
        let mut objects = code_objects(&run);
        assert_eq!(objects.len(), 9, "{objects:?}");
        objects.sort_by_key(|object| object.loaded_ns);
        for pair in objects[1..].windows(2) {
            assert!(
                pair[0].unloaded_ns.is_some_and(|end| end < pair[1].loaded_ns),
                "{pair:?}"
            );
        }
    }
}

/// The process is gone, so nothing can be read from it. What it loaded was read at the time of loading.
#[test]
fn a_process_that_ends_at_once() {
    for (suite, asic) in each_release(0).step_by(3) {
        let run = Scenario::new(suite, asic, &["reload", "-n", "3", "--abandon"]).record();
        let names: Vec<_> = dispatches(&run)
            .iter()
            .filter_map(|d| d.kernel.as_deref().map(str::to_owned))
            .collect();
        assert_eq!(names, ["fill", "full", "fill"], "{suite}");
        let objects = code_objects(&run);
        assert_eq!(objects.len(), 4);
        let Some(end) = run.facts.iter().find_map(|fact| match fact {
            Fact::Process(process) if process.pid == objects[0].pid => process.exit_ns,
            _ => None,
        }) else {
            panic!("the end of the process is missing")
        };
        // Two were loaded until the exit.
        assert_eq!(
            objects.iter().filter(|object| object.unloaded_ns == Some(end)).count(),
            2,
            "{objects:?}"
        );
    }
}
