//! Arbitrary facts: every field with any value that it can have.

use std::borrow::Cow;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tracer_core::tables::{
    CopiedBy, Copy, CopyOp, Direction, Dispatch, Doorbell, DriverCall, DriverEvent, Evidence, Fact, Form, Ioctl,
    Library, Loss, OtherPacket, PacketKind, Path, Process, Queue, QueueOrigin, RingJob, RingMemory, Stack, Unread,
};

use crate::api_calls;
use crate::code_objects;
use crate::looks;
use crate::proxies;
use crate::runs;

/// Generates numbers, including those at the borders.
pub fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        Just(1 << 63),
        Just(i64::MAX as u64),
        any::<u64>()
    ]
}

pub fn path() -> impl Strategy<Value = Path> {
    prop::sample::select(Path::ALL.to_vec())
}

fn process() -> impl Strategy<Value = Fact> {
    let named = any::<(u32, Option<u32>, String, Option<bool>)>();
    let placed = any::<(Option<String>, Option<String>, Option<String>)>();
    (named, number(), option::of(number()), placed).prop_map(|(named, first_ns, exit_ns, placed)| {
        let (pid, parent, comm, thunk) = named;
        let (unit, container, pod) = placed;
        Fact::Process(Process {
            pid,
            parent,
            comm,
            first_ns,
            exit_ns,
            thunk,
            unit,
            container,
            pod,
        })
    })
}

fn queue() -> impl Strategy<Value = Fact> {
    let origin = prop_oneof![
        Just(QueueOrigin::Created),
        Just(QueueOrigin::Adopted),
        Just(QueueOrigin::Listed)
    ];
    let ids = any::<(u32, u32, Option<u32>, Option<u32>, Option<u32>, String)>();
    let values = (vec(number(), 12), vec(option::of(number()), 12));
    (ids, origin, values, any::<Option<bool>>()).prop_map(|(ids, origin, (n, o), watched_to_end)| {
        let (queue, pid, queue_id, gpu_id, priority, kind) = ids;
        Fact::Queue(Queue {
            queue,
            pid,
            origin,
            queue_id,
            gpu_id,
            kind,
            handle: n[0],
            write_pointer: n[1],
            ring_base: n[2],
            ring_memory: o[8].map(|n| {
                if n % 2 == 0 {
                    RingMemory::Host
                } else {
                    RingMemory::Device
                }
            }),
            ring_bytes: n[3],
            doorbell_offset: o[0],
            priority,
            internal: o[0].map(|n| n % 2 == 0),
            create_enter_ns: o[1],
            created_ns: n[4],
            destroyed_ns: o[2],
            doorbells: n[5],
            published: n[6],
            unclaimed: o[5],
            dispatches: n[7],
            other_packets: n[8],
            unread: n[9],
            pending: n[10],
            first_index: o[3],
            last_index: o[4],
            max_depth: n[11],
            unseen: o[11],
            watched_to_end,
            looked_ns: o[6],
            read_index: o[7],
            in_flight: o[8],
            oldest_ns: o[9],
            moved_ns: o[10],
        })
    })
}

fn ioctl() -> impl Strategy<Value = Fact> {
    let name = prop_oneof![
        Just(Cow::Borrowed("create-queue")),
        any::<String>().prop_map(Cow::Owned)
    ];
    let device = prop_oneof![Just("kfd"), Just("drm")];
    let result = prop_oneof![Just(None), Just(Some(i64::MIN)), Just(Some(-22)), any::<Option<i64>>()];
    let bytes = any::<(Option<String>, Option<Vec<u8>>, Option<Vec<u8>>)>();
    (
        any::<(u32, u32, i32, u32)>(),
        number(),
        number(),
        device,
        name,
        result,
        bytes,
    )
        .prop_map(
            |((pid, tid, fd, cmd), enter_ns, exit_ns, device, name, ret, (args, arg_in, arg_out))| {
                Fact::Ioctl(Ioctl {
                    pid,
                    tid,
                    enter_ns,
                    exit_ns,
                    device,
                    fd,
                    cmd,
                    name,
                    ret,
                    args,
                    arg_in,
                    arg_out,
                })
            },
        )
}

fn doorbell() -> impl Strategy<Value = Fact> {
    (
        any::<(Option<u32>, u32, u32, bool)>(),
        vec(number(), 5),
        option::of(number()),
    )
        .prop_map(|((queue, pid, tid, beyond), n, reserve_to_doorbell_ns)| {
            Fact::Doorbell(Doorbell {
                queue,
                pid,
                tid,
                time_ns: n[0],
                value: n[1],
                published: n[2],
                read_index: n[3],
                write_index: n[4],
                reserve_to_doorbell_ns,
                beyond,
            })
        })
}

fn dispatch() -> impl Strategy<Value = Fact> {
    let evidence = prop_oneof![Just(Evidence::Header), Just(Evidence::Body)];
    let small = any::<([u32; 5], [u16; 2], [u32; 3], [u16; 3])>();
    let reserve = (option::of(number()), option::of(number()));
    let name = any::<Option<String>>();
    let link = (option::of(number()), option::of(number()));
    let kind = (
        evidence,
        prop_oneof![Just(None), Just(Some(Form::Kernel)), Just(Some(Form::ExtKernel))],
    );
    (small, path(), kind, vec(number(), 6), reserve, (name, link)).prop_map(
        |(
            (a, b, grid, workgroup),
            path,
            (evidence, form),
            n,
            (reserve_ns, unreserved_ns),
            (name, (api_call, stream)),
        )| {
            Fact::Dispatch(Dispatch {
                queue: a[0],
                index: n[0],
                pid: a[1],
                tid: a[2],
                time_ns: n[1],
                path,
                evidence,
                form,
                reserve_ns,
                unreserved_ns,
                header: b[0],
                dimensions: b[1],
                kernel_object: n[2],
                kernel: name.map(Into::into),
                kernarg: n[3],
                grid,
                workgroup,
                private_segment: a[3],
                group_segment: a[4],
                completion_signal: n[4],
                correlation: n[5],
                api_call,
                stream,
            })
        },
    )
}

fn packet() -> impl Strategy<Value = Fact> {
    let kind = prop::sample::select(vec![
        PacketKind::BarrierAnd,
        PacketKind::BarrierOr,
        PacketKind::AgentDispatch,
        PacketKind::VendorPm4Ib,
        PacketKind::VendorBarrierValue,
        PacketKind::VendorOther,
        PacketKind::Undefined,
        PacketKind::Unread,
    ]);
    let unread = prop::sample::select(vec![
        Unread::Reused,
        Unread::Consumed,
        Unread::NeverValid,
        Unread::Unreadable,
    ]);
    (
        any::<(u32, u32, u32, u16)>(),
        path(),
        kind,
        option::of(unread),
        vec(number(), 4),
        option::of(proptest::array::uniform5(number())),
    )
        .prop_map(|((queue, pid, tid, header), path, kind, unread, n, waits_for)| {
            Fact::Packet(OtherPacket {
                queue,
                index: n[0],
                count: n[1],
                pid,
                tid,
                time_ns: n[2],
                path,
                kind,
                unread,
                header,
                completion_signal: n[3],
                waits_for,
            })
        })
}

fn copy() -> impl Strategy<Value = Fact> {
    let op = prop::sample::select(vec![
        None,
        Some(CopyOp::Copy),
        Some(CopyOp::CopyRect),
        Some(CopyOp::Mixed),
    ]);
    let direction = prop::sample::select(vec![
        None,
        Some(Direction::H2d),
        Some(Direction::D2h),
        Some(Direction::D2d),
    ]);
    let small = any::<(Option<u32>, u32, u32, Option<u32>, Option<u32>)>();
    let words = (op, direction, path());
    (small, words, vec(number(), 3), vec(option::of(number()), 5)).prop_map(|(small, (op, direction, path), n, o)| {
        let (queue, pid, tid, commands, engine) = small;
        Fact::Copy(Copy {
            queue,
            pid,
            tid,
            time_ns: n[0],
            path,
            by: op.map(|_| CopiedBy::Sdma),
            begin: n[1],
            end: n[2],
            op,
            bytes: o[0],
            commands,
            source: o[1],
            destination: o[2],
            direction,
            engine,
            api_call: o[3],
            stream: o[4],
        })
    })
}

fn driver_call() -> impl Strategy<Value = Fact> {
    let ids = any::<(u32, u32, i32, bool)>();
    (ids, vec(number(), 2), any::<String>()).prop_map(|((pid, tid, ret, traced), n, function)| {
        Fact::DriverCall(DriverCall {
            pid,
            tid,
            enter_ns: n[0],
            exit_ns: n[1],
            function,
            ret,
            traced,
            doorbell_index: Some(n[0]),
            queue_type: None,
            queue_id: Some(pid),
            owner: None,
            pasid: Some(tid),
        })
    })
}

fn driver_event() -> impl Strategy<Value = Fact> {
    let context = any::<(Option<u32>, Option<u32>, Option<bool>)>();
    let names = any::<(String, Option<String>, Option<String>, Option<String>)>();
    let numbers = (
        number(),
        vec(proptest::option::of(number()), 4),
        any::<[Option<u32>; 2]>(),
    );
    (context, names, numbers).prop_map(|((pid, tid, traced), (event, ring, old, new), (time_ns, n, small))| {
        Fact::DriverEvent(DriverEvent {
            time_ns,
            event: event.into(),
            pid,
            tid,
            traced,
            ring,
            context: n[0],
            seqno: n[1],
            job_id: n[2],
            ibs: small[0],
            vmid: small[1],
            bytes: n[3],
            old_placement: old.map(Into::into),
            new_placement: new.map(Into::into),
        })
    })
}

fn library() -> impl Strategy<Value = Fact> {
    let names = any::<(String, String, Option<String>, Option<String>)>();
    let numbers = (number(), number(), any::<[u32; 3]>());
    (names, numbers).prop_map(|((path, device, build_id, soname), (time_ns, inode, small))| {
        Fact::Library(Library {
            time_ns,
            path,
            device,
            inode,
            build_id,
            soname,
            first_pid: small[0],
            probes: small[1],
            missing: small[2],
        })
    })
}

fn stack() -> impl Strategy<Value = Fact> {
    (any::<(Option<String>, bool, [u32; 2])>(), number()).prop_map(|((frames, complete, small), time_ns)| {
        Fact::Stack(Stack {
            pid: small[0],
            tid: small[1],
            time_ns,
            frames,
            complete,
        })
    })
}

fn ring_job() -> impl Strategy<Value = Fact> {
    let names = (
        any::<Option<String>>(),
        any::<String>(),
        any::<Option<String>>(),
        any::<Option<String>>(),
    );
    let numbers = (vec(number(), 1), vec(proptest::option::of(number()), 7));
    let submitter = any::<(Option<u32>, Option<u32>, Option<bool>, Option<u32>)>();
    (names, numbers, submitter).prop_map(
        |((ring, class, device, reason), (time, n), (pid, tid, traced, queued))| {
            Fact::RingJob(RingJob {
                time_ns: time[0],
                ring,
                class,
                device,
                context: n[0],
                seqno: n[1],
                job_id: n[2],
                client_id: n[3],
                reason,
                pid,
                tid,
                traced,
                submit_ns: n[4],
                run_ns: n[5],
                done_ns: n[6],
                queued,
            })
        },
    )
}

fn loss() -> impl Strategy<Value = Fact> {
    (number(), any::<String>(), number())
        .prop_map(|(time_ns, source, count)| Fact::Loss(Loss { time_ns, source, count }))
}

/// Generates any fact.
pub fn fact() -> impl Strategy<Value = Fact> {
    prop_oneof![
        process(),
        queue(),
        ioctl(),
        doorbell(),
        dispatch(),
        packet(),
        code_objects::code_object(),
        code_objects::kernel(),
        copy(),
        ring_job(),
        driver_call(),
        driver_event(),
        library(),
        stack(),
        looks::progress(),
        proxies::proxy(),
        proxies::request(),
        proxies::gpu_time(),
        api_calls::api_call(),
        api_calls::api_stats(),
        runs::dispatch_run(),
        runs::doorbell_run(),
        loss()
    ]
}
