//! What a dispatch costs, against stored baselines: the instructions of decoder and model, as Callgrind counts them, and its bytes in
//! a trace. Unlike times, they hardly depend on the machine. Those that the verifier checks are in `verifier`.

use std::{collections::BTreeMap, fs, path::Path, process::Command, time::Instant};

use tracer_core::{
    sample,
    tables::{Dispatch, Doorbell, Fact, Table},
};
use tracer_e2e::{baseline, place};
use tracer_store::{
    Manifest, TraceWriter,
    manifest::{ClockSnapshot, Host, Target, Tool},
};

/// The numbers of doorbells of two runs. Their difference has no start and no end of a process.
const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

#[test]
fn a_dispatch_takes_decoder_and_model_no_more_instructions_than_before() {
    let each = (instructions(MANY) - instructions(FEW)) / (MANY - FEW);
    // Fewer would mean that nothing was decoded.
    assert!(each > 100, "{each}");
    let found = BTreeMap::from([("decoder and model".to_owned(), each)]);
    assert!(baseline::compare(
        "instructions per dispatch, as the tests are built",
        &found
    ));
}

fn instructions(doorbells: u64) -> u64 {
    let tools = place::valgrind().join("usr/libexec/valgrind");
    let output = Command::new(tools.join("callgrind-amd64-linux"))
        // What Valgrind's script sets.
        .env("VALGRIND_LAUNCHER", tools.join("callgrind-amd64-linux"))
        .env("VALGRIND_LIB", &tools)
        .arg("--callgrind-out-file=/dev/null")
        .arg(place::programs().join("doorbells"))
        .arg(doorbells.to_string())
        .output()
        .expect("Callgrind starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.trim(), format!("dispatches={doorbells} doorbells={doorbells}"));
    let count = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, count) = count.unwrap_or_else(|| panic!("no count: {said}"));
    count.trim().parse().expect("a number")
}

/// The dispatches of the trace whose size counts: several row groups of each table.
const WRITTEN: u64 = 300_000;

/// Of a burst: times and indexes vary as they do there, by numbers that are the same in each run.
#[test]
fn a_dispatch_takes_no_more_bytes_than_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("t.trace");
    let tool = Tool {
        name: "tracer".to_owned(),
        version: "0.0.0".to_owned(),
    };
    let target = Target::Command {
        argv: vec!["./app".to_owned()],
    };
    let manifest = Manifest::new(tool, Host::default(), target, ClockSnapshot::now());
    let mut writer = TraceWriter::create(&dir, manifest, false).expect("a trace");
    let (mut random, mut time_ns) = (1_u64, 1_000_000_000);
    for index in 0..WRITTEN {
        // xorshift64 of Marsaglia, "Xorshift RNGs", 2003.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        time_ns += 1_000 + random % 256;
        let reserve_to_doorbell_ns = Some(80 + (random >> 8) % 32);
        writer.push(&Fact::Dispatch(Dispatch {
            reserve_ns: Some(time_ns - 90),
            ..sample::dispatch(index, time_ns)
        }));
        writer.push(&Fact::Doorbell(Doorbell {
            reserve_to_doorbell_ns,
            read_index: index.saturating_sub((random >> 16) % 8),
            write_index: index + 1,
            ..sample::doorbell(index, time_ns)
        }));
        if index % 10_000 == 0 {
            writer.tick(Instant::now()).expect("a tick");
        }
    }
    let written = writer.finish(|manifest| manifest.complete = true).expect("an end");
    // Rows that are dropped or combined would make the trace smaller.
    assert_eq!(written.dropped, 0);
    for table in [Table::Dispatches, Table::Doorbells] {
        let rows = written.rows.iter().find(|(of, _)| *of == table).map(|(_, rows)| *rows);
        assert_eq!(rows, Some(WRITTEN), "{table:?}");
    }
    let hundredths = size(&dir) * 100 / WRITTEN;
    assert!(hundredths > 100, "{hundredths}");
    let found = BTreeMap::from([("hundredths of a byte".to_owned(), hundredths)]);
    assert!(baseline::compare("trace, per dispatch of a burst", &found));
}

/// Returns the size of the files in a folder and its subfolders.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry"));
    let sizes = entries.map(|entry| {
        let metadata = entry.metadata().expect("a file");
        if metadata.is_dir() {
            size(&entry.path())
        } else {
            metadata.len()
        }
    });
    sizes.sum()
}
