//! Samples of queues: what the GPU took without a doorbell, and when it took each packet.

use std::collections::BTreeSet;

use serde_json::json;
use tracer_core::{
    event::Occasion,
    tables::{Fact, OtherPacket, PacketKind, Path, Progress, Queue},
};
use tracer_e2e::{
    compare,
    scenario::{Run, Scenario, each_release},
    verdict::{rule, verdict},
};

/// Returns the queue that the dispatcher created.
fn own_queue(run: &Run) -> &Queue {
    let log = run.log.as_ref().expect("the dispatcher's log");
    let handle = log.submissions[0].queue;
    let queue = run.facts.iter().find_map(|fact| match fact {
        Fact::Queue(queue) if queue.handle == handle => Some(queue),
        _ => None,
    });
    queue.expect("the program's queue")
}

/// Checks that the trace reports exactly the packets that the program rang without the runtime. Returns their number.
fn exactly_its_own(run: &Run) -> usize {
    let queue = own_queue(run);
    let log = run.log.as_ref().expect("the dispatcher's log");
    let direct = log.submissions.iter().filter(|submission| submission.direct);
    let direct: BTreeSet<u64> = direct.map(|submission| submission.index).collect();
    let mut unseen = BTreeSet::new();
    for fact in &run.facts {
        let (of, first, count) = match fact {
            Fact::Packet(packet @ OtherPacket { path: Path::Unseen, .. }) => {
                assert_eq!((packet.tid, packet.kind), (0, PacketKind::Unread), "{packet:?}");
                (packet.queue, packet.index, packet.count)
            }
            Fact::Dispatch(dispatch) if dispatch.path == Path::Unseen => (dispatch.queue, dispatch.index, 1),
            _ => continue,
        };
        assert_eq!(of, queue.queue, "{fact:?}");
        unseen.extend(first..first + count);
    }
    assert_eq!(unseen, direct);
    assert_eq!(
        (queue.unseen, queue.watched_to_end),
        (Some(direct.len() as u64), Some(true)),
        "{queue:?}"
    );
    let all = json!({"total": direct.len(), "found": direct.len(), "queues_open": 0});
    assert_eq!(run.report["unseen"], all);
    direct.len()
}

#[test]
fn a_program_that_stores_to_its_doorbell_itself_is_unseen_with_its_count_and_fails() {
    let forms = [("api", "0", 20), ("raw", "6", 14), ("raw", "0", 20), ("api", "1", 19)];
    for ((suite, asic), (reserve, seen, count)) in each_release(1).zip(forms) {
        let workload = ["direct-doorbell", "-n", "20", "--seen", seen, "--reserve", reserve];
        let run = Scenario::new(suite, asic, &workload).record();
        assert_eq!(run.did()["results"], "ok");
        compare::no_losses(&run);
        assert_eq!(exactly_its_own(&run), count, "{suite} {asic} {workload:?}");
        for policy in ["mes-bypass", "doorbell-bypass"] {
            let (code, found) = verdict(policy, run.trace.dir());
            let coverage = rule(&found, "coverage");
            assert_eq!(
                (&coverage["outcome"], &coverage["counts"]["unseen"]),
                (&json!("fail"), &json!(count))
            );
            let sentence = coverage["sentence"].as_str().expect("a sentence");
            assert!(
                sentence.contains(&format!("the GPU took {count} packets without a doorbell")),
                "{sentence}"
            );
            assert_eq!(code, Some(1), "{found:#}");
        }
        println!("{suite} {asic} reserve {reserve}, {seen} seen: {count} unseen");
    }
}

/// The exiting threads examine its queues: on `exit_group`, and on a signal.
#[test]
fn a_process_that_gives_no_queue_back_is_watched_to_its_end() {
    for ((suite, asic), (leave, code)) in each_release(0).zip([("exit", 0), ("kill", 137), ("exit", 0), ("kill", 137)])
    {
        let workload = ["direct-doorbell", "-n", "9", "--seen", "4", "--leave", leave];
        let run = Scenario::new(suite, asic, &workload).record_any();
        assert_eq!(
            run.output.status.code(),
            Some(code),
            "{}",
            String::from_utf8_lossy(&run.output.stderr)
        );
        compare::no_losses(&run);
        assert_eq!(exactly_its_own(&run), 5, "{suite} {asic} {leave}");
        let looks = samples(&run, own_queue(&run).queue);
        let last = looks.last().expect("a look");
        assert_eq!((last.read_index, last.write_index), (9, 9), "{last:?}");
    }
}

fn samples(run: &Run, queue: u32) -> Vec<&Progress> {
    let all = run.facts.iter().filter_map(|fact| match fact {
        Fact::Progress(look) if look.queue == queue => Some(look),
        _ => None,
    });
    all.collect()
}

/// No sample shows the GPU further than it was, and the last sample shows it at the end.
#[test]
fn samples_bound_when_packets_were_taken() {
    for (workload, (suite, asic)) in [
        &["long", "-n", "6", "--ms", "20"] as &[&str],
        &["burst", "-n", "20000"],
        &["multi-thread", "-n", "2000", "--threads", "4"],
    ]
    .into_iter()
    .zip(each_release(1))
    {
        let run = Scenario::new(suite, asic, workload).record();
        compare::all(&run);
        let mut all = 0;
        for fact in &run.facts {
            let Fact::Queue(queue) = fact else { continue };
            let Some(truth) = run
                .truth
                .queues
                .iter()
                .find(|truth| truth.is_aql() && (truth.pid, Some(truth.queue_id)) == (queue.pid, queue.queue_id))
            else {
                continue;
            };
            let looks = samples(&run, queue.queue);
            for pair in looks.windows(2) {
                assert!(pair[0].read_index <= pair[1].read_index, "{pair:?}");
                assert!(pair[0].write_index <= pair[1].write_index, "{pair:?}");
            }
            for look in &looks {
                assert!(
                    look.time_ns <= look.until_ns && look.read_index <= look.write_index,
                    "{look:?}"
                );
                let before = look
                    .read_index
                    .checked_sub(1)
                    .and_then(|i| truth.packets.get(i as usize));
                assert!(
                    before.is_none_or(|packet| packet.time_ns <= look.until_ns),
                    "{look:?} {before:?}"
                );
                assert!(look.published_end.is_none_or(|end| end <= look.write_index), "{look:?}");
            }
            let taken = truth.packets.len() as u64;
            assert_eq!(
                (queue.read_index, queue.in_flight.unwrap_or(0), queue.oldest_ns),
                (Some(taken), 0, None)
            );
            assert!(queue.moved_ns <= queue.looked_ns, "{queue:?}");
            let last = looks.last().expect("the last look");
            assert!(taken == 0 || last.read_index == taken, "{last:?}");
            all += looks.iter().filter(|look| look.occasion == Occasion::Sample).count();
        }
        println!("{suite} {asic} {}: {all} rows of samples", workload.join(" "));
    }
}
