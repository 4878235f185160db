//! Limits and warnings.

use super::support::*;
use crate::tables::{Fact, Queue};
use crate::verify::{Context, Outcome, Policy};

fn found(text: &str, name: &str, context: Context, facts: &[Fact]) -> Outcome {
    let policy = Policy::parse(&format!("name = 'own'\n{text}")).unwrap();
    pick(name, judge(&policy, context, facts)).outcome
}

#[test]
fn a_number_beyond_its_limit_fails_and_one_at_it_passes() {
    let mut facts = good(3);
    facts.insert(1, ioctl(1_600, 8));
    for (limit, name, least) in [
        ("[limits]\nmax-queue-depth = ", "queue-depth", 3),
        ("[limits.max-ioctl-p99-ns]\nSVM = ", "ioctl-p99", 20),
        ("[limits.max-reserve-to-doorbell-ns]\np99 = ", "reserve-to-doorbell", 50),
        ("[limits.max-reserve-to-doorbell-ns]\nmax = ", "reserve-to-doorbell", 50),
    ] {
        let at = |limit: &str, n: u64| found(&format!("{limit}{n}"), name, context(), &facts);
        assert_eq!(at(limit, least), Outcome::Pass, "{limit}{least}");
        assert_eq!(at(limit, least - 1), Outcome::Fail, "{limit}{}", least - 1);
    }
}

#[test]
fn a_limit_on_what_was_not_watched_is_open() {
    for (limit, name, capability) in [
        ("[limits]\nmax-queue-depth = 9", "queue-depth", "packets"),
        ("[limits]\nmin-doorbell-share = 0.5", "doorbell-share", "kernel_rings"),
        ("[limits]\nmin-doorbell-share = 0.5", "doorbell-share", "packets"),
        ("[limits.max-ioctl-p99-ns]\nSVM = 9", "ioctl-p99", "ioctls"),
        (
            "[limits.max-reserve-to-doorbell-ns]\np50 = 99",
            "reserve-to-doorbell",
            "reserves",
        ),
        ("[warnings]\nqueues-per-gpu = 9", "queues-per-gpu", "ioctls"),
    ] {
        let mut blind = context();
        TAKE.iter()
            .filter(|(of, _)| *of == capability)
            .for_each(|(_, take)| take(&mut blind.capabilities));
        assert_eq!(found(limit, name, blind, &good(3)), Outcome::Inconclusive, "{limit}");
        assert_eq!(found(limit, name, context(), &good(3)), Outcome::Pass, "{limit}");
    }
}

#[test]
fn the_share_counts_jobs_and_doubts_unread_packets() {
    let share = |least: f64, facts: &[Fact]| {
        found(
            &format!("[limits]\nmin-doorbell-share = {least:?}"),
            "doorbell-share",
            context(),
            facts,
        )
    };
    let mut facts = good(3);
    facts.push(Fact::RingJob(job("comp_1.0.0", "comp", Some(true))));
    assert_eq!(
        (share(0.75, &facts), share(0.76, &facts)),
        (Outcome::Pass, Outcome::Fail)
    );
    facts.push(unread(3, 6));
    assert_eq!(
        (share(0.75, &facts), share(0.9, &facts)),
        (Outcome::Pass, Outcome::Inconclusive)
    );
    assert_eq!(
        share(0.91, &facts),
        Outcome::Fail,
        "not even if all of them were dispatches"
    );
    assert_eq!(share(0.0, &[]), Outcome::Inconclusive);
}

#[test]
fn more_queues_at_once_than_wanted_warn() {
    let text = "[warnings]\nqueues-per-gpu = 1";
    let second = |gpu_id: Option<u32>, created_ns: u64| {
        let mut facts = good(3);
        facts.push(Fact::Queue(Queue {
            queue: 1,
            gpu_id,
            created_ns,
            destroyed_ns: None,
            ..queue(0)
        }));
        found(text, "queues-per-gpu", context(), &facts)
    };
    assert_eq!(second(Some(5), 2_000), Outcome::Warn);
    assert_eq!(second(Some(6), 2_000), Outcome::Pass, "on another GPU");
    assert_eq!(second(Some(5), 9_000), Outcome::Pass, "one after the other");
    assert_eq!(second(None, 2_000), Outcome::Inconclusive, "on an unknown GPU");
}
