//! The comparison: every queue, doorbell, packet and ioctl of the truth is in the trace with the same fields, and nothing else is.

mod apart;
mod api_calls;
mod calls;
mod copies;
mod makers;
mod names;
mod program;
mod rung;
mod sampled;
mod scripted;
mod taken;
mod times;

use std::collections::{BTreeMap, BTreeSet};

use tracer_common::aql::packet_type;
use tracer_core::tables::{
    Dispatch, Doorbell, Evidence, Fact, Form, OtherPacket, PacketKind, Path, Queue, RingMemory, Unread,
};

pub use apart::{Found, apart, found};
pub use api_calls::{calls, consistent_calls, through_hip};
pub use calls::ioctls;

use crate::{
    scenario::{Run, Scenario},
    truth,
};

pub use program::of_program;
pub use sampled::{burst_without_ebpf, without_ebpf};
pub use scripted::{of_script, of_scripted_batches};
pub use taken::taken;
pub use times::monotonic_ns;

/// The counts of a comparison, to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Queues.
    pub queues: usize,
    /// Dispatches.
    pub dispatches: usize,
    /// Dispatches whose body was read, among these.
    pub by_body: usize,
    /// Dispatches whose kernel's name the dispatcher knows too.
    pub named: usize,
    /// Dispatches of kernels that the device knows by name, such as HIP's own.
    pub named_by_device: usize,
    /// Dispatches with times by the GPU's clock.
    pub timed: usize,
    /// Those among them with times on the trace's clock.
    pub dated: usize,
    /// Other packets.
    pub others: usize,
    /// Doorbell values.
    pub doorbells: usize,
    /// SDMA submissions.
    pub copies: usize,
    /// Ioctls.
    pub ioctls: usize,
}

/// Compares everything. Panics at the first difference.
pub fn all(run: &Run) -> Compared {
    let mut compared = device(run);
    all_seen(run);
    rung::own(run);
    compared.named = names::own(run);
    compared.named_by_device = names::of_device(run);
    rung::counts(run);
    makers::own(run);
    product(run);
    compared
}

/// Records each scenario, compares everything, and passes each run to `check`.
pub fn each(scenarios: impl IntoIterator<Item = Scenario>, check: impl Fn(&Run, &Compared)) {
    for scenario in scenarios {
        let run = scenario.record();
        let compared = all(&run);
        let did = run.did();
        assert_eq!(did["results"], "ok");
        println!(
            "{} {} of {}, {}, {}: {compared:?}",
            did["api"],
            did["runtime"]["version"],
            scenario.suite,
            scenario.asic,
            scenario.workload.join(" ")
        );
        check(&run, &compared);
    }
}

/// Compares everything that the device saw. A program's own log covers only that program.
pub fn device(run: &Run) -> Compared {
    no_losses(run);
    let compared = rows(run);
    report(run, &compared);
    compared
}

/// Compares everything in a recording of the whole machine that belongs to this run's processes: the rows, but not the report's
/// totals and losses, which cover all processes.
pub fn of_machine(run: &mut Run) -> Compared {
    let pids: BTreeSet<u32> = run.truth.ioctls.iter().map(|ioctl| ioctl.pid).collect();
    run.facts.retain(|fact| pid(fact).is_none_or(|pid| pids.contains(&pid)));
    let mut compared = rows(run);
    watched_to_end(run);
    rung::own(run);
    compared.named = names::own(run);
    compared.named_by_device = names::of_device(run);
    if run.log.is_some() {
        rung::counts(run);
    }
    compared
}

/// Returns the process that a row is about.
fn pid(fact: &Fact) -> Option<u32> {
    match fact {
        Fact::Dispatch(row) => Some(row.pid),
        Fact::DispatchRun(row) => Some(row.pid),
        Fact::DoorbellRun(row) => Some(row.pid),
        Fact::GpuTime(row) => Some(row.pid),
        Fact::Proxy(row) => Some(row.pid),
        Fact::Request(row) => Some(row.pid),
        Fact::Packet(row) => Some(row.pid),
        Fact::Doorbell(row) => Some(row.pid),
        Fact::Copy(row) => Some(row.pid),
        Fact::Ioctl(row) => Some(row.pid),
        Fact::CodeObject(row) => Some(row.pid),
        Fact::Kernel(row) => Some(row.pid),
        Fact::Progress(row) => Some(row.pid),
        Fact::ApiCall(row) => Some(row.pid),
        Fact::Stack(row) => Some(row.pid),
        Fact::Queue(row) => Some(row.pid),
        Fact::Process(row) => Some(row.pid),
        Fact::RingJob(row) => row.pid,
        Fact::ApiStats(stats) => stats.pid,
        Fact::DriverCall(_) | Fact::DriverEvent(_) | Fact::Library(_) | Fact::Loss(_) => None,
    }
}

fn rows(run: &Run) -> Compared {
    let pairs = queues(run);
    let mut compared = Compared {
        queues: pairs.len(),
        ..Compared::default()
    };
    for (truth, queue) in &pairs {
        if truth.is_aql() {
            packets(run, truth, queue, &mut compared);
            compared.doorbells += doorbells(run, truth, queue);
            let (timed, dated) = times::of_queue(run, truth, queue);
            compared.timed += timed;
            compared.dated += dated;
        } else {
            compared.copies += copies::submissions(run, truth, queue);
        }
    }
    compared.ioctls = ioctls(run);
    compared
}

/// Checks that a GPU has the product name that the program got from its runtime, or none: the lists of libdrm may not know it, and
/// the simulated GPU has no revision in sysfs. Only the dispatcher says what it got.
fn product(run: &Run) {
    if !run.dir.path().join("did.json").exists() {
        return;
    }
    let agent = &run.did()["agent"];
    for gpu in run
        .trace
        .manifest()
        .devices
        .iter()
        .filter(|gpu| agent["gfx"] == *gpu.name)
    {
        if let Some(product) = &gpu.product {
            assert_eq!(agent["name"], *product);
        }
    }
}

/// Checks that nothing was dropped, and that the trace says so.
pub fn no_losses(run: &Run) {
    let lost: Vec<&Fact> = run.facts.iter().filter(|fact| matches!(fact, Fact::Loss(_))).collect();
    assert!(lost.is_empty(), "{lost:?}: {}", run.report["warnings"]);
    assert_eq!(run.report["losses"]["total"], 0);
    assert_eq!(run.report["complete"], true);
}

/// Checks that the GPU took nothing without a doorbell, on every queue until its end.
fn all_seen(run: &Run) {
    watched_to_end(run);
    let nothing = serde_json::json!({"total": 0, "found": 0, "queues_open": 0});
    assert_eq!(run.report["unseen"], nothing);
}

fn watched_to_end(run: &Run) {
    for queue in run.queues().filter(|queue| queue.is_aql()) {
        assert_eq!((queue.unseen, queue.watched_to_end), (Some(0), Some(true)), "{queue:?}");
    }
}

/// Pairs the queues of truth and trace in the order of creation.
fn queues(run: &Run) -> Vec<(&truth::Queue, &Queue)> {
    let traced: Vec<&Queue> = run.queues().collect();
    let mut by_key: BTreeMap<(u32, u32), Vec<&Queue>> = BTreeMap::new();
    for queue in &traced {
        let id = queue
            .queue_id
            .unwrap_or_else(|| panic!("the creation of {queue:?} was not seen"));
        by_key.entry((queue.pid, id)).or_default().push(queue);
    }
    by_key
        .values_mut()
        .for_each(|queues| queues.sort_by_key(|queue| std::cmp::Reverse(queue.queue)));
    let pairs: Vec<_> = run
        .truth
        .queues
        .iter()
        .map(|truth| {
            let queue = by_key.get_mut(&(truth.pid, truth.queue_id)).and_then(Vec::pop);
            (
                truth,
                queue.unwrap_or_else(|| panic!("a queue is missing in the trace: {truth:?}")),
            )
        })
        .collect();
    assert_eq!(
        traced.len(),
        pairs.len(),
        "the trace has queues that the device does not know: {traced:?}"
    );
    for (truth, queue) in &pairs {
        assert_eq!(queue.gpu_id, Some(truth.gpu_id));
        assert_eq!(queue.ring_base, truth.ring_base);
        assert_eq!(queue.ring_bytes, truth.ring_size);
        let memory = if truth.ring_in_vram {
            RingMemory::Device
        } else {
            RingMemory::Host
        };
        assert_eq!(queue.ring_memory, Some(memory), "{queue:?}");
        assert_eq!(queue.write_pointer, truth.wptr);
        assert_eq!(queue.doorbell_offset, Some(truth.doorbell_offset));
        assert_eq!(queue.priority, Some(truth.priority));
        let name = ["compute-pm4", "sdma", "compute-aql", "sdma-xgmi", "sdma-by-engine"][truth.kind as usize];
        assert_eq!(queue.kind, name);
        assert!(
            queue.create_enter_ns.is_some_and(|enter| enter < queue.created_ns),
            "{queue:?}"
        );
    }
    pairs
}

/// Checks that the trace has every packet that the device took once, with its fields; and no packet that the device did not take,
/// unless it gave up the queue.
fn packets(run: &Run, truth: &truth::Queue, queue: &Queue, compared: &mut Compared) {
    let mut dispatches: BTreeMap<u64, &Dispatch> = BTreeMap::new();
    let mut others: BTreeMap<u64, &OtherPacket> = BTreeMap::new();
    for fact in &run.facts {
        match fact {
            Fact::Dispatch(d) if d.queue == queue.queue => {
                assert!(
                    dispatches.insert(d.index, d).is_none(),
                    "index {} of {queue:?} twice",
                    d.index
                );
            }
            Fact::Packet(p) if p.queue == queue.queue => {
                assert!(
                    others.insert(p.index, p).is_none(),
                    "index {} of {queue:?} twice",
                    p.index
                );
            }
            _ => {}
        }
    }
    for packet in &truth.packets {
        if packet.is_dispatch() {
            let dispatch = dispatches.remove(&packet.index).unwrap_or_else(|| {
                panic!(
                    "dispatch {packet:?} of {queue:?} is missing; there: {:?}",
                    others.get(&packet.index)
                )
            });
            dispatch_fields(packet, dispatch);
            compared.dispatches += 1;
            compared.by_body += usize::from(dispatch.evidence == Evidence::Body);
        } else {
            let other = others
                .remove(&packet.index)
                .unwrap_or_else(|| panic!("packet {packet:?} is missing"));
            other_fields(packet, other);
            compared.others += 1;
        }
    }
    if !truth.failed {
        assert!(dispatches.is_empty(), "never taken by the device: {dispatches:?}");
        // A program may ring for more packets than it writes. The device stops before such a packet, and the trace says so.
        let empty: Vec<u64> = others
            .iter()
            .filter(|(_, other)| is_empty(other))
            .map(|(index, _)| *index)
            .collect();
        let rung = |index: &u64| truth.doorbells.iter().any(|value| value >= index);
        assert!(empty.iter().all(rung), "neither taken nor rung: {others:?}");
        assert_eq!(others.len(), empty.len(), "never taken by the device: {others:?}");
        let taken = truth.packets.iter().map(|p| p.index);
        let last = taken.chain(empty.iter().copied()).max();
        assert_eq!(
            (queue.last_index, queue.unread),
            (last, empty.len() as u64),
            "{queue:?}"
        );
        assert_eq!(queue.published, (truth.packets.len() + empty.len()) as u64, "{queue:?}");
    }
}

/// Returns whether the row says that a packet was rung and never written.
fn is_empty(other: &OtherPacket) -> bool {
    (other.kind, other.unread, other.count) == (PacketKind::Unread, Some(Unread::NeverValid), 1)
}

/// Checks that the dispatch equals the packet that the device took, and that it came over a doorbell.
pub fn dispatch_fields(truth: &truth::Packet, d: &Dispatch) {
    packet_fields(truth, d);
    assert_eq!(d.path, Path::Doorbell, "{d:?}");
}

/// Checks that the dispatch has the fields of the packet that the device took.
fn packet_fields(truth: &truth::Packet, d: &Dispatch) {
    let bytes = unhex(&truth.bytes);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    assert_eq!(d.kernel_object, truth.kernel_object, "{d:?}");
    assert_eq!(d.kernarg, truth.kernarg_address, "{d:?}");
    assert_eq!(d.grid, truth.grid, "{d:?}");
    assert_eq!(d.workgroup, truth.workgroup, "{d:?}");
    assert_eq!(d.completion_signal, truth.completion_signal, "{d:?}");
    let (form, dimensions) = match truth.kind.as_str() {
        "ext_kernel_dispatch" => (Form::ExtKernel, word(0) >> 24),
        _ => (Form::Kernel, word(0) >> 16),
    };
    assert_eq!((d.form, u32::from(d.dimensions)), (Some(form), dimensions & 3), "{d:?}");
    assert_eq!(d.private_segment, word(0x18), "{d:?}");
    assert_eq!(d.group_segment, word(0x1c), "{d:?}");
    if d.evidence == Evidence::Header {
        assert_eq!(u32::from(d.header), word(0) & 0xffff, "{d:?}");
    }
}

/// Returns the signals of a barrier, from the bytes of its packet.
fn waits_for(kind: PacketKind, bytes: &[u8]) -> Option<[u64; 5]> {
    let used = match kind {
        PacketKind::BarrierAnd | PacketKind::BarrierOr => 5,
        PacketKind::VendorBarrierValue => 1,
        _ => return None,
    };
    let signal = |place| match place < used {
        true => bytes[8 + 8 * place..16 + 8 * place]
            .iter()
            .rev()
            .fold(0, |all, &byte| all << 8 | u64::from(byte)),
        false => 0,
    };
    Some(std::array::from_fn(signal))
}

fn other_fields(truth: &truth::Packet, other: &OtherPacket) {
    let bytes = unhex(&truth.bytes);
    let kind = match (bytes[0], bytes[2]) {
        (3, _) => PacketKind::BarrierAnd,
        (5, _) => PacketKind::BarrierOr,
        (4, _) => PacketKind::AgentDispatch,
        (0, 1) => PacketKind::VendorPm4Ib,
        (0, 2) => PacketKind::VendorBarrierValue,
        (0, _) => PacketKind::VendorOther,
        _ => PacketKind::Undefined,
    };
    assert_eq!(other.kind, kind, "{truth:?} {other:?}");
    assert_eq!(other.count, 1);
    assert_eq!(other.completion_signal, truth.completion_signal, "{other:?}");
    assert_eq!(other.waits_for, waits_for(kind, &bytes), "{truth:?} {other:?}");
    // The device invalidates the type of a packet that it has taken. Only one kind is known then, by its body.
    if other.kind == PacketKind::VendorPm4Ib && other.header.to_le_bytes()[0] == packet_type::INVALID {
        return;
    }
    assert_eq!(other.header, u16::from_le_bytes([bytes[0], bytes[1]]), "{other:?}");
}

/// Checks that every value that the device noticed was seen as a doorbell, and no doorbell twice.
fn doorbells(run: &Run, truth: &truth::Queue, queue: &Queue) -> usize {
    let traced = values(run, queue.queue);
    let rows = |fact: &&Fact| matches!(fact, Fact::Doorbell(d) if d.queue == Some(queue.queue));
    assert_eq!(run.facts.iter().filter(rows).count(), traced.len(), "{queue:?}");
    for value in &truth.doorbells {
        assert!(traced.contains(value), "doorbell value {value} of {queue:?} is missing");
    }
    truth.doorbells.len()
}

fn values(run: &Run, queue: u32) -> BTreeSet<u64> {
    let of = |d: &Doorbell| (d.queue == Some(queue)).then_some(d.value);
    run.facts
        .iter()
        .filter_map(|fact| if let Fact::Doorbell(d) = fact { of(d) } else { None })
        .collect()
}

/// Checks that the report's totals are those of the rows.
fn report(run: &Run, compared: &Compared) {
    let report = &run.report;
    let count = |wanted: fn(&Fact) -> bool| run.facts.iter().filter(|fact| wanted(fact)).count() as u64;
    assert_eq!(report["dispatches"]["total"], count(|f| matches!(f, Fact::Dispatch(_))));
    assert_eq!(
        report["dispatches"]["by_path"]["doorbell"],
        report["dispatches"]["total"]
    );
    let rings = run
        .trace
        .manifest()
        .capabilities
        .iter()
        .any(|name| name == "kernel_rings");
    let by_ring = &report["dispatches"]["by_path"]["ring"];
    assert_eq!(*by_ring, if rings { 0.into() } else { serde_json::Value::Null });
    assert_eq!(report["doorbells"]["total"], count(|f| matches!(f, Fact::Doorbell(_))));
    let by_kernel = count(|f| matches!(f, Fact::Copy(copy) if copy.is_kernel()));
    assert_eq!(report["copies"]["kernels"]["count"], by_kernel);
    assert_eq!(
        report["copies"]["total"],
        count(|f| matches!(f, Fact::Copy(copy) if !copy.is_kernel()))
    );
    assert_eq!(report["queues"].as_array().map(Vec::len), Some(compared.queues));
    let created = report["ioctls"]["by_name"]["CREATE_QUEUE"]["count"].as_u64();
    assert!(created.unwrap_or(0) >= compared.queues as u64, "{created:?}");
    assert!(report["simulated"].is_string(), "what was simulated is called so");
}

fn unhex(text: &str) -> Vec<u8> {
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal");
    (0..text.len()).step_by(2).map(pair).collect()
}
