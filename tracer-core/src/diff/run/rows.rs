//! The rows of a recording, and what is not known of them.

use std::collections::BTreeMap;

use super::{Blind, Key, Recording, Run, Table, Value};
use crate::analysis::{Kernel, QueueUse};
use crate::known::ByPath;
use crate::summary::Report;
use crate::tables::{self, PacketKind, Path, Queue};
use crate::tally::{Stats, more, total};
use crate::words::Named;

const NO_CALLS: &str = "calls were not recorded (`record --api all`)";
const PARTLY: &str = "only a part of the dispatches is known";
const NO_COPIES: &str = "doorbells of SDMA queues were not watched, or the table cannot be read";
const NO_IOCTLS: &str = "ioctls were not watched, or the table cannot be read";

/// Row of the kernels without names. Their addresses differ from run to run, so nothing tells them apart.
const UNNAMED: &str = "(unnamed)";

impl Run {
    pub(super) fn add_rows(&mut self, recording: &Recording<'_>) {
        self.totals(recording);
        self.kernels(recording);
        self.paths(recording.report);
        self.queues(recording);
        self.functions(recording);
        self.ioctls(recording.report);
        self.layers(recording);
        self.copies(recording.report);
    }

    fn totals(&mut self, recording: &Recording<'_>) {
        let &Recording { report, answers, .. } = recording;
        let barriers = [
            PacketKind::BarrierAnd,
            PacketKind::BarrierOr,
            PacketKind::VendorBarrierValue,
        ];
        let barriers = barriers.map(|kind| report.packets.by_kind.get(kind.name()).copied().unwrap_or(0));
        let ioctls = || report.ioctls.by_name.values();
        let calls = || report.api_calls.by_function.values();
        let of_ioctls = |n: u64| known(report.ioctls.total.map(|_| n), NO_IOCTLS);
        let of_calls = |n: u64| known(report.api_calls.total.map(|_| n), NO_CALLS);
        let bytes = report.copies.bytes.filter(|_| report.copies.unread == Some(0));
        let queues = report.queues.len() as u64 + report.other_queues;
        let has_queues = !recording.unread.contains(&tables::Table::Queues) && report.ioctls.total.is_some();
        let launch = |of: fn(Stats) -> u64| launch(recording, answers.launch_ns, of);
        let not_all = "not every copy could be read";
        self.put(
            Table::Total,
            "",
            "total",
            [
                ("dispatches", known(report.dispatches.total, PARTLY)),
                (
                    "dispatches.internal",
                    known(report.dispatches.internal, "who made each queue is not known"),
                ),
                (
                    "doorbells",
                    known(report.doorbells.total, "not every doorbell was watched"),
                ),
                ("barriers", known(report.packets.total.map(|_| total(barriers)), PARTLY)),
                ("packets", known(report.packets.total, PARTLY)),
                ("copies", known(report.copies.total, NO_COPIES)),
                (
                    "copies.bytes",
                    known(
                        bytes,
                        if report.copies.total.is_some() {
                            not_all
                        } else {
                            NO_COPIES
                        },
                    ),
                ),
                (
                    "ring-jobs",
                    known(report.ring_jobs.traced, "rings of the kernel driver were not watched"),
                ),
                ("ioctls", known(report.ioctls.total, NO_IOCTLS)),
                ("ioctls.failed", of_ioctls(total(ioctls().map(|calls| calls.errors)))),
                (
                    "ioctls.time",
                    of_ioctls(total(ioctls().filter_map(|calls| calls.ns).map(|ns| ns.total))),
                ),
                ("calls", known(report.api_calls.total, NO_CALLS)),
                ("calls.failed", of_calls(total(calls().map(|calls| calls.errors)))),
                (
                    "queues",
                    known(has_queues.then_some(queues), "not every queue is known"),
                ),
                ("launch.p50", launch(|ns| ns.p50)),
                ("launch.p99", launch(|ns| ns.p99)),
                (
                    "wall",
                    known(recording.about.wall_ns, "the end of the recording is not known"),
                ),
            ],
        );
    }

    fn kernels(&mut self, recording: &Recording<'_>) {
        let &Recording { report, answers, .. } = recording;
        if report.dispatches.total.is_none() {
            self.blind(Table::Kernel, None, PARTLY);
        } else if report.kernel_names.is_none() {
            self.blind(
                Table::Kernel,
                None,
                "names of kernels were not recorded, or cannot be read",
            );
        } else if answers.other_dispatches > 0 {
            let reason = format!("{} dispatches are in runs of several kernels", answers.other_dispatches);
            self.blind(Table::Kernel, None, reason);
        }
        self.unknown_paths(Table::Kernel, &report.dispatches.by_path);
        if recording.unread.contains(&tables::Table::GpuTimes) {
            for figure in ["gpu.mean", "gpu.total"] {
                self.blind(Table::Kernel, Some(figure), "the table of GPU times cannot be read");
            }
        }
        let mut unnamed: Option<Kernel> = None;
        for kernel in &answers.kernels {
            let Some(name) = &kernel.name else {
                let all = unnamed.get_or_insert_default();
                more(&mut all.count, kernel.count);
                for (&path, &count) in &kernel.by_path {
                    more(all.by_path.entry(path).or_default(), count);
                }
                continue;
            };
            let mut values = counts(kernel);
            values.extend([
                ("launch.p50", launch(recording, kernel.launch_ns, |ns| ns.p50)),
                ("launch.p99", launch(recording, kernel.launch_ns, |ns| ns.p99)),
            ]);
            let gpu = kernel.gpu_ns;
            let whole = gpu.filter(|ns| ns.count == kernel.count);
            let none = "no dispatch of it has a time of the GPU";
            values.extend([
                (
                    "gpu.mean",
                    known(gpu.and_then(|ns| ns.total.checked_div(ns.count)), none),
                ),
                (
                    "gpu.total",
                    known(
                        whole.map(|ns| ns.total),
                        "not every dispatch of it has a time of the GPU",
                    ),
                ),
            ]);
            self.put(Table::Kernel, "", name, values);
        }
        if let Some(all) = unnamed {
            self.put(Table::Kernel, "", UNNAMED, counts(&all));
        }
    }

    /// Notes which paths of kernels are not known.
    fn unknown_paths(&mut self, table: Table, paths: &ByPath) {
        for (path, count) in paths.each() {
            if count.is_none() {
                self.blind(table, Some(path.name()), not_watched(path));
            }
        }
    }

    fn paths(&mut self, report: &Report) {
        let copies = report.copies.by_path.each();
        for ((path, dispatches), (_, copies)) in report.dispatches.by_path.each().into_iter().zip(copies) {
            let values = [
                ("dispatches", known(dispatches, not_watched(path))),
                ("copies", known(copies, not_watched(path))),
            ];
            self.put(Table::Path, "", path.name(), values);
        }
    }

    fn queues(&mut self, recording: &Recording<'_>) {
        let &Recording { report, answers, .. } = recording;
        if recording.unread.contains(&tables::Table::Queues) || report.other_queues > 0 {
            self.blind(Table::Queue, None, "not every queue is known");
        }
        if recording.unread.contains(&tables::Table::Packets) {
            self.blind(Table::Queue, Some("barriers"), "the table of packets cannot be read");
        }
        if report.ioctls.total.is_none() {
            self.blind(Table::Queue, None, "without ioctls, the roles of queues are not known");
        }
        if !recording.watched.api {
            self.blind(Table::Queue, Some("streams"), NO_CALLS);
        }
        let uses: BTreeMap<u32, &QueueUse> = answers.queues.iter().map(|queue| (queue.queue, queue)).collect();
        let mut roles = Roles::default();
        for queue in &report.queues {
            let role = roles.next(queue, &recording.gpus);
            let of = uses.get(&queue.queue);
            self.put(
                Table::Queue,
                "",
                &role,
                [
                    ("dispatches", Value::Known(queue.dispatches)),
                    ("packets", Value::Known(queue.published)),
                    ("doorbells", Value::Known(queue.doorbells)),
                    ("barriers", Value::Known(of.map_or(0, |of| of.barriers))),
                    ("streams", Value::Known(of.map_or(0, |of| of.streams.len() as u64))),
                    ("depth", Value::Known(queue.max_depth)),
                ],
            );
        }
    }

    fn functions(&mut self, recording: &Recording<'_>) {
        if recording.report.api_calls.total.is_none() {
            self.blind(Table::Api, None, NO_CALLS);
        }
        for function in &recording.answers.functions {
            if function.own_ns.is_none() && function.ns.is_some() {
                self.counted.insert(function.function.clone());
            }
            let values = calls((function.calls, function.errors), function.ns);
            self.put(Table::Api, &function.layer, &function.function, values);
        }
    }

    fn ioctls(&mut self, report: &Report) {
        if report.ioctls.total.is_none() {
            self.blind(Table::Ioctl, None, NO_IOCTLS);
        }
        for (name, ioctl) in &report.ioctls.by_name {
            self.put(Table::Ioctl, "", name, calls((ioctl.count, ioctl.errors), ioctl.ns));
        }
    }

    fn layers(&mut self, recording: &Recording<'_>) {
        let &Recording { report, answers, .. } = recording;
        if report.ioctls.total.is_none() {
            // The own time of a call is without the ioctls inside.
            self.blind(Table::Layer, None, NO_IOCTLS);
        }
        let name = |layer: &str, class: Option<&str>| format!("{layer} {}", class.unwrap_or("other"));
        for function in &answers.functions {
            if self.counted.contains(&function.function) {
                self.blind.push(Blind {
                    table: Table::Layer,
                    figure: None,
                    name: Some(name(&function.layer, function.class)),
                    reason: "its calls were only counted, so the time of calls inside them is not known".into(),
                });
            }
        }
        for layer in &answers.layers {
            let (calls, ns) = (Value::Known(layer.calls), layer.ns);
            let mut values = vec![("calls", calls), ("total", Value::Known(layer.own_ns))];
            values.extend(percentiles(ns));
            self.put(Table::Layer, &layer.layer, &name(&layer.layer, layer.class), values);
        }
    }

    fn copies(&mut self, report: &Report) {
        let copies = &report.copies;
        if copies.total.is_none() {
            self.blind(Table::Copy, None, NO_COPIES);
        } else if let Some(unread) = copies.unread.filter(|&n| n > 0) {
            self.blind(Table::Copy, None, format!("{unread} submissions could not be read"));
        }
        for (direction, moved) in &copies.by_direction {
            let values = [
                ("copies", Value::Known(moved.count)),
                ("bytes", Value::Known(moved.bytes)),
            ];
            self.put(Table::Copy, "", direction, values);
        }
        let kernels = &copies.kernels;
        if kernels.count != Some(0) {
            let bytes = kernels.bytes.filter(|_| kernels.unknown == Some(0));
            self.put(
                Table::Copy,
                "",
                "by-kernel",
                [
                    ("copies", known(kernels.count, PARTLY)),
                    (
                        "bytes",
                        known(bytes, "the sizes of some copies by kernels are not known"),
                    ),
                ],
            );
        }
    }

    fn put(&mut self, table: Table, group: &str, name: &str, values: impl IntoIterator<Item = (&'static str, Value)>) {
        let key = Key {
            table,
            group: group.to_owned(),
            name: name.to_owned(),
        };
        self.rows.entry(key).or_default().extend(values);
    }
}

fn known(value: Option<u64>, reason: &'static str) -> Value {
    value.map_or(Value::Unknown(reason.into()), Value::Known)
}

/// Returns why the submissions of a path are not known.
const fn not_watched(path: Path) -> &'static str {
    match path {
        Path::Doorbell => "not every doorbell was watched",
        Path::Ring => "rings of the kernel driver were not watched",
        Path::Thunk => "calls of the driver's library were not watched",
        Path::Unseen => "not every queue was watched to its end",
    }
}

fn counts(kernel: &Kernel) -> Vec<(&'static str, Value)> {
    let of = |path| Value::Known(kernel.by_path.get(&path).copied().unwrap_or(0));
    let mut values = vec![("dispatches", Value::Known(kernel.count))];
    values.extend(Path::ALL.map(|path| (path.name(), of(path))));
    values
}

/// Returns a time from launch calls to doorbells.
fn launch(recording: &Recording<'_>, ns: Option<Stats>, of: fn(Stats) -> u64) -> Value {
    let dispatches = recording.report.dispatches.total;
    match ns {
        Some(ns) => Value::Known(of(ns)),
        None if !recording.watched.api => Value::Unknown(NO_CALLS.into()),
        None if dispatches == Some(0) => Value::Absent,
        None => Value::Unknown("no doorbell was in a recorded call".into()),
    }
}

fn calls((count, failed): (u64, u64), ns: Option<Stats>) -> Vec<(&'static str, Value)> {
    let mut values = vec![
        ("calls", Value::Known(count)),
        ("failed", Value::Known(failed)),
        ("total", ns.map_or(Value::Known(0), |ns| Value::Known(ns.total))),
    ];
    values.extend(percentiles(ns));
    values
}

fn percentiles(ns: Option<Stats>) -> [(&'static str, Value); 2] {
    let of = |of: fn(Stats) -> u64| ns.map_or(Value::Absent, |ns| Value::Known(of(ns)));
    [("p50", of(|ns| ns.p50)), ("p99", of(|ns| ns.p99))]
}

/// The roles of queues: processes by the order in which they created their first queue, and queues of a process by GPU, type and maker,
/// in the order of their creation. Ids and addresses differ from run to run.
#[derive(Debug, Default)]
struct Roles {
    processes: Vec<u32>,
    taken: BTreeMap<String, u64>,
}

impl Roles {
    /// Returns the role of the next queue, in the order of first sight: `p0/gpu0/compute-aql/program/1`.
    fn next(&mut self, queue: &Queue, gpus: &[u32]) -> String {
        let process = match self.processes.iter().position(|&pid| pid == queue.pid) {
            Some(at) => at,
            None => {
                self.processes.push(queue.pid);
                self.processes.len() - 1
            }
        };
        let gpu = gpus.iter().position(|&gpu| Some(gpu) == queue.gpu_id);
        let gpu = gpu.map_or_else(|| "gpu?".to_owned(), |at| format!("gpu{at}"));
        let maker = match queue.internal {
            _ if queue.is_sdma() => "",
            Some(true) => "/runtime",
            Some(false) => "/program",
            None => "/unknown",
        };
        let role = format!("p{process}/{gpu}/{}{maker}", queue.kind);
        let number = self.taken.entry(role.clone()).or_default();
        let named = format!("{role}/{number}");
        *number += 1;
        named
    }
}
