//! Traces with random damage.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tracer_e2e::{place, scenario::Scenario};
use tracer_faults::{Attack, tries};

use super::support::{ends, said};

/// A reproducible pseudo-random sequence (SplitMix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("below a usize")
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// Returns the files of a trace, as relative paths.
fn files(trace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(trace).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(fs::read_dir(entry.path()).unwrap().map(|file| file.unwrap().path()));
        } else {
            found.push(entry.path());
        }
    }
    found.sort();
    found
        .iter()
        .map(|path| path.strip_prefix(trace).unwrap().to_owned())
        .collect()
}

fn copy(from: &Path, to: &Path) {
    for file in files(from) {
        let place = to.join(&file);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(from.join(&file), place).unwrap();
    }
}

/// Damages a trace. Returns a description, and whether tracer must notice the damage: a flipped digit of a time in the manifest
/// cannot be noticed.
fn damage(trace: &Path, random: &mut Random) -> (String, bool) {
    let files = files(trace);
    let file = random.pick(&files).clone();
    let path = trace.join(&file);
    let is_part = file != Path::new("manifest.json");
    let shown = file.display();
    match random.below(8) {
        0 | 1 => {
            let mut bytes = fs::read(&path).unwrap();
            let flips = 1 + random.below(4);
            for _ in 0..flips {
                let place = random.below(bytes.len());
                bytes[place] ^= 1 << random.below(8);
            }
            let same = bytes == fs::read(&path).unwrap();
            fs::write(&path, bytes).unwrap();
            (format!("{flips} bits of {shown} flipped"), is_part && !same)
        }
        2 => {
            let mut bytes = fs::read(&path).unwrap();
            let length = random.below(bytes.len());
            bytes.truncate(length);
            fs::write(&path, bytes).unwrap();
            (format!("{shown} cut to {length} bytes"), true)
        }
        3 => {
            let other = random.pick(&files).clone();
            let (one, two) = (fs::read(&path).unwrap(), fs::read(trace.join(&other)).unwrap());
            let same = one == two;
            fs::write(&path, two).unwrap();
            fs::write(trace.join(&other), one).unwrap();
            (format!("{shown} and {} swapped", other.display()), !same)
        }
        4 => {
            let folder = path.parent().filter(|_| is_part);
            match folder {
                Some(folder) => fs::remove_dir_all(folder).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            (format!("{shown} or its folder removed"), true)
        }
        5 => {
            let mut bytes = fs::read(&path).unwrap();
            let more = 1 + random.below(64);
            let added: Vec<u8> = (0..more).map(|_| random.next().to_le_bytes()[0]).collect();
            // White space after JSON is part of it.
            let noticed = is_part || !added.iter().all(|byte| b" \t\r\n".contains(byte));
            bytes.extend(added);
            fs::write(&path, bytes).unwrap();
            (format!("{more} bytes after {shown}"), noticed)
        }
        6 => {
            // Without a checksum in its name, a part may contain anything.
            let mut bytes = fs::read(&path).unwrap();
            let begin = random.below(bytes.len());
            let end = (begin + 1 + random.below(32)).min(bytes.len());
            bytes[begin..end].fill(0xff);
            fs::write(&path, bytes).unwrap();
            if is_part {
                fs::rename(&path, path.with_file_name("part-000001.parquet")).unwrap();
            }
            (
                format!("bytes {begin}..{end} of {shown} set to ff, its checksum removed"),
                false,
            )
        }
        _ => {
            let name = path.file_name().unwrap().to_owned();
            let moved = trace
                .join(if random.below(2) == 0 { "losses" } else { "queues" })
                .join(name);
            fs::create_dir_all(moved.parent().unwrap()).unwrap();
            fs::rename(&path, &moved).unwrap();
            let same = moved == path;
            (format!("{shown} moved to {}", moved.display()), !same)
        }
    }
}

/// A policy that the undamaged trace passes.
const POLICY: &str = "name = \"whole\"\n[rules]\ncoverage = true\nno-syscall = \"every\"\n";

/// Runs a command on a damaged trace. Its exit code must be one of these, and it must not print a panic.
fn ended(command: &mut Command, codes: &[i32]) -> Result<(i32, String), String> {
    let output = ends(command).ok_or("it hangs")?;
    let text = said(&output);
    if [&output.stdout, &output.stderr]
        .into_iter()
        .any(|bytes| bytes.windows(8).any(|word| word == b"panicked"))
    {
        return Err(format!("a panic: {text}"));
    }
    match output.status.code() {
        Some(code) if codes.contains(&code) => Ok((code, text)),
        _ => Err(format!("{}: {text}", output.status)),
    }
}

/// Checks that `report` fails, or reports the damage.
fn report(trace: &Path, format: &str, noticed: bool) -> Result<(), String> {
    let mut command = Command::new(place::programs().join("tracer"));
    match ended(command.args(["report", "--format", format]).arg(trace), &[0, 125])? {
        (125, text) if text.starts_with("tracer: ") => Ok(()),
        (0, text) if !noticed || text.contains(trace.to_str().unwrap()) => Ok(()),
        (code, text) => Err(format!("report, exit code {code}: {text}")),
    }
}

/// Checks that `verify` does not pass a damaged trace.
fn verify(trace: &Path, whole: &Path, policy: &Path, noticed: bool) -> Result<(), String> {
    let mut command = Command::new(place::programs().join("tracer"));
    let (code, text) = ended(
        command.args(["verify", "--policy"]).arg(policy).arg(trace),
        &[0, 1, 2, 3, 125],
    )?;
    let manifest = |trace: &Path| fs::read(trace.join("manifest.json")).ok();
    match code {
        0 if noticed => Err(format!("verify passes it: {text}")),
        // The exit code of wrong usage: by its manifest, this is not a trace.
        2 if manifest(trace) == manifest(whole) => Err(format!("verify, exit code 2: {text}")),
        _ => Ok(()),
    }
}

/// Checks that `diff` fails, or reports the damage.
fn diff(trace: &Path, whole: &Path, noticed: bool) -> Result<(), String> {
    let mut command = Command::new(place::programs().join("tracer"));
    match ended(command.arg("diff").args([whole, trace]), &[0, 2, 125])? {
        (0, text) if noticed && !text.contains(trace.to_str().unwrap()) => Err(format!("diff does not say it: {text}")),
        _ => Ok(()),
    }
}

/// For every damage, `report` and `diff` fail or report the damage, and `verify` does not pass.
#[test]
fn damaged_traces_are_reported() {
    let mut attack = Attack::new("report, verify, diff: a trace with random damage (bits, lengths, swaps, folders)");
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    fs::write(&policy, POLICY).unwrap();
    // If the undamaged trace did not pass, the test could not detect that damaged ones pass. On a busy machine a recording can have
    // losses.
    let scenario = Scenario::new("trixie", "gfx1100", &["compute-only", "-n", "20"]);
    let passes = |trace: &Path| tracer_e2e::verdict::verdict(policy.to_str().unwrap(), trace).0 == Some(0);
    let mut recordings = (0..10).map(|_| scenario.record());
    let recorded = recordings
        .find(|run| passes(run.trace.dir()))
        .expect("a recording that passes");
    let whole = recorded.trace.dir();
    for seed in 0..tries(100, 10_000) {
        let trace = dir.path().join(seed.to_string());
        copy(whole, &trace);
        let mut random = Random(seed as u64);
        let (done, noticed) = damage(&trace, &mut random);
        let format = *random.pick(&["text", "json"]);
        let harm = report(&trace, format, noticed)
            .and_then(|()| verify(&trace, whole, &policy, noticed))
            .and_then(|()| diff(&trace, whole, noticed));
        attack.count(harm.map_err(|harm| format!("{done}: {harm}")));
        fs::remove_dir_all(&trace).unwrap();
    }
    attack.finish();
}
