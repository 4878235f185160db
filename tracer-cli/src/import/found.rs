//! What a file had, in the manifest and in words.

use anyhow::anyhow;
use tracer_core::{foreign, words};
use tracer_import::{Found, Kind, Malformed};
use tracer_store::manifest::{ClockSnapshot, Host, Manifest, rfc3339};

/// Names of unused events that are printed.
const MAX_NAMES: usize = 5;

/// Removes what the manifest says about this machine and this time: the text was written elsewhere and earlier.
pub fn forget_machine(manifest: &mut Manifest) {
    manifest.host = Host::default();
    manifest.started = ClockSnapshot::default();
}

/// Completes the manifest.
pub fn describe(manifest: &mut Manifest, found: &Found) {
    // strace writes the time of day, which is then the clock of every time in the trace.
    let at = |ns| match found.kind {
        Some(Kind::Strace) => ClockSnapshot {
            time: rfc3339(ns),
            monotonic_ns: ns,
            realtime_ns: ns,
            ..ClockSnapshot::default()
        },
        Some(Kind::Events | Kind::AmdLog | Kind::TraceDat) | None => ClockSnapshot {
            monotonic_ns: ns,
            ..ClockSnapshot::default()
        },
    };
    let (first_ns, last_ns) = found.span_ns.unwrap_or_default();
    manifest.started = at(first_ns);
    manifest.ended = Some(at(last_ns));
    let sources = [
        ("kernel_rings", found.has_jobs),
        ("driver_events", found.has_driver_events),
        ("ioctls", found.kind == Some(Kind::Strace) && found.events > 0),
    ];
    // Without any event of a kind, the text does not show whether that kind was recorded.
    let watched = sources
        .into_iter()
        .filter(|(_, is)| *is)
        .map(|(name, _)| name.to_owned());
    manifest.capabilities = found.captured.iter().flatten().cloned().chain(watched).collect();
    manifest.capabilities.sort_unstable();
    manifest.capabilities.dedup();
    manifest.warnings = warnings(found);
    manifest.complete = true;
}

/// Returns what a reader of the trace must know.
fn warnings(found: &Found) -> Vec<String> {
    let mut warnings = Vec::new();
    if found.malformed_total > 0 {
        let first: Vec<String> = found.malformed.iter().map(|line| unread(found, line)).collect();
        warnings.push(format!(
            "tracer could not read {}, and counts them as lost; the first: {}",
            words::count(found.malformed_total, "event"),
            first.join("; ")
        ));
    }
    // A program writes to the same place as its log.
    let foreign = found
        .first_foreign
        .as_ref()
        .filter(|_| found.kind != Some(Kind::AmdLog));
    if let Some(first) = foreign {
        warnings.push(format!(
            "{} of the text are neither events nor headers, and left out; the first: {}",
            words::count(found.foreign, "line"),
            unread(found, first)
        ));
    }
    if found.without_process > 0 && found.kind == Some(Kind::Strace) {
        warnings.push(format!(
            "{} name only the thread, so their processes are unknown; run strace with \
             -e trace=ioctl,clone,clone3,fork,vfork,execve from the program's start",
            words::count(found.without_process, "ioctl")
        ));
    } else if found.without_process > 0 {
        warnings.push(format!(
            "{} name only the thread, so the processes of their jobs are unknown; ftrace names processes after \
             `echo 1 > options/record-tgid`, `perf script` with `-F +pid,+tid`",
            words::count(found.without_process, "submission")
        ));
    }
    warnings
}

/// Describes a line that was left out.
fn unread(found: &Found, line: &Malformed) -> String {
    let (reason, text) = (foreign::line(&line.reason), foreign::line(&line.text));
    format!("{} {}: {reason}: {text}", unit(found), line.line)
}

/// Returns what was read, in one line.
pub fn counts(found: &Found) -> String {
    let lines = lines(found);
    let what = match found.kind {
        Some(Kind::AmdLog) => "packet",
        Some(Kind::Strace) => "ioctl",
        Some(Kind::Events | Kind::TraceDat) | None => "event",
    };
    let mut text = format!("{} in {lines}", words::count(found.events, what));
    if found.unused_total > 0 {
        text += &format!("; {} that tracer does not use: {}", found.unused_total, unused(found));
    }
    if found.lost > 0 {
        text += &format!("; {} missing in the text", words::count(found.lost, what));
    }
    text
}

/// Returns the most frequent events that tracer does not use.
fn unused(found: &Found) -> String {
    let mut names: Vec<(&str, u64)> = found.unused.iter().map(|(name, count)| (&**name, *count)).collect();
    names.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let shown = names.iter().take(MAX_NAMES);
    let mut shown: Vec<String> = shown.map(|(name, count)| format!("{name} {count}")).collect();
    if names.len() > MAX_NAMES {
        shown.push("...".to_owned());
    }
    shown.join(", ")
}

/// Returns the error about a file without any event that tracer uses.
pub fn nothing(name: &str, found: &Found) -> anyhow::Error {
    let first = found.malformed.first().or(found.first_foreign.as_ref());
    let first = first.map(|line| unread(found, line));
    let first = first.map_or_else(String::new, |first| format!("; {first}"));
    let unused = match found.unused_total {
        0 => String::new(),
        total => format!("; {total} other events: {}", unused(found)),
    };
    let how = match found.kind {
        Some(Kind::AmdLog) => "the log has no packets: AMD_LOG_LEVEL=5 writes them (4 is enough before ROCm 7)",
        Some(Kind::Strace) => "no process made an ioctl of a KFD or DRM device",
        Some(Kind::Events | Kind::TraceDat) | None => {
            "tracer uses events of gpu_scheduler and amdgpu (`trace-cmd record -C mono -e gpu_scheduler -e amdgpu COMMAND`), the log of AMD's runtimes (AMD_LOG_LEVEL=5), and ioctls of strace -f -ttt -T"
        }
    };
    anyhow!(
        "{name} has nothing that tracer uses, in {}{unused}{first}. {how}",
        lines(found)
    )
}

/// Returns how much was read.
fn lines(found: &Found) -> String {
    words::count(found.lines, unit(found)).to_string()
}

fn unit(found: &Found) -> &'static str {
    if found.kind == Some(Kind::TraceDat) {
        "record"
    } else {
        "line"
    }
}
