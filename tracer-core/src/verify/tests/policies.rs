//! Policies as text.

use super::support::built_in;
use crate::verify::{Policy, PolicyError, Scheduler, Scope};

#[test]
fn built_in_policies_can_be_read_and_carry_their_names() {
    for name in Policy::names() {
        assert_eq!(built_in(name).name, name);
    }
    assert_eq!(built_in("mes-bypass").rules.scheduler, Some(Scheduler::Mes));
    assert_eq!(built_in("mes-bypass").rules.no_syscall, Some(Scope::Every));
    assert_eq!(Policy::built_in("no-such"), None);
}

#[test]
fn what_it_does_not_know_is_refused_by_line_and_name() {
    for (text, line, word) in [
        ("name = 'a'\n\n[rules]\nno-rings = true", 4, "no-rings"),
        ("name = 'a'\nnmae = 'b'", 2, "nmae"),
        ("name = 'a'\n[limits]\nmax-depth = 1", 3, "max-depth"),
        ("name = 'a'\n[limits.max-reserve-to-doorbell-ns]\np90 = 1", 3, "p90"),
        ("name = 'a'\n[rules]\nscheduler = 'cps'", 3, "cps"),
        ("name = 'a'\n[limits]\nmax-queue-depth = -1", 3, "-1"),
        ("description = 'nameless'", 1, "name"),
        ("name = ", 1, ""),
    ] {
        let error = Policy::parse(text).unwrap_err();
        let PolicyError::Form { line: at, reason } = &error else {
            panic!("{error}")
        };
        assert!(*at == line && reason.contains(word), "{text}: {error}");
    }
}

#[test]
fn nonsense_is_refused() {
    for text in [
        "name = 'a'\n[rules]\nring-submission = true\nno-ring = true",
        "name = 'a'\n[limits]\nmin-doorbell-share = 1.5",
        "name = 'a'\n[limits]\nmin-doorbell-share = nan",
    ] {
        assert!(matches!(Policy::parse(text), Err(PolicyError::Nonsense(_))), "{text}");
    }
}
