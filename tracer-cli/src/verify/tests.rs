//! Tests of the forms of a verdict, with names that try to break out of them.

use tracer_core::verify::{Missing, Offender, Outcome, RuleVerdict, Verdict};

use super::{github, json, junit, text};

fn verdict() -> Verdict {
    let rule = |name: &str, outcome, sentence: &str| RuleVerdict {
        rule: name.to_owned(),
        outcome,
        sentence: sentence.to_owned(),
        counts: [("jobs".to_owned(), None)].into(),
        offenders: Vec::new(),
        more_offenders: 0,
        missing: Vec::new(),
        notes: Vec::new(),
    };
    let offender = Offender {
        what: "a job ]]> <b>|100%".to_owned(),
        ring: Some("comp_1\u{1b}[31m\n::error::x".to_owned()),
        pid: Some(7),
        time_ns: Some(99),
        ..Offender::default()
    };
    let missing = Missing {
        source: "gpu_scheduler events".to_owned(),
        fix: "run it again".to_owned(),
    };
    Verdict {
        policy: "own, odd: 1".to_owned(),
        outcome: Outcome::Fail,
        simulated: Some("kfd-sim".to_owned()),
        rules: vec![
            rule("coverage", Outcome::Pass, "all is well"),
            RuleVerdict {
                offenders: vec![offender],
                more_offenders: 4,
                ..rule("no-ring", Outcome::Fail, "50% of \"jobs\" & <more>\r\nare bad")
            },
            RuleVerdict {
                missing: vec![missing],
                ..rule("no-syscall", Outcome::Inconclusive, "nobody looked")
            },
            rule("queues-per-gpu", Outcome::Warn, "many queues"),
        ],
    }
}

#[test]
fn text_shows_reasons_and_no_control_characters() {
    let expected = "\
pass          coverage             all is well
fail          no-ring              50% of \"jobs\" & <more>\\r\\nare bad
                                   - a job ]]> <b>|100%, pid 7, at ns 99, ring comp_1\\u{1b}[31m\\n::error::x
                                   ... and 4 more
inconclusive  no-syscall           nobody looked
                                   missing: gpu_scheduler events; to get it: run it again
warn          queues-per-gpu       many queues

simulated     kfd-sim: this proves nothing about a real GPU

fail          own, odd: 1 of ./app
";
    assert_eq!(text::write("./app", &verdict()), expected);
}

#[test]
fn junit_has_a_case_a_rule_and_escapes() {
    let junit = junit::write("./app <x>", &verdict(), false).unwrap();
    for part in [
        "<testsuite name=\"tracer verify own, odd: 1\" tests=\"4\" skipped=\"0\" errors=\"1\" failures=\"1\">",
        "<property name=\"subject\" value=\"./app &lt;x&gt;\"/>",
        "<testcase name=\"coverage\" classname=\"tracer.own, odd: 1\">",
        "<failure message=\"50% of &quot;jobs&quot; &amp; &lt;more&gt;",
        "a job ]]&gt; &lt;b&gt;|100%, pid 7",
        "<error message=\"nobody looked\" type=\"inconclusive\">",
        "missing: gpu_scheduler events; to get it: run it again",
    ] {
        assert!(junit.contains(part), "{part}\nis not in\n{junit}");
    }
    assert!(!junit.contains('\u{1b}'));
    let strict = junit::write("./app", &verdict(), true).unwrap();
    assert!(
        strict.contains("failures=\"2\"") && strict.contains("type=\"warn\""),
        "{strict}"
    );
}

#[test]
fn an_annotation_is_one_line_whatever_is_in_it() {
    assert_eq!(
        github::annotation(&verdict(), false),
        "::error title=tracer verify own%2C odd%3A 1%3A fail::no-ring fail: 50%25 of \"jobs\" & <more>\\r\\nare bad%0A\
         no-syscall inconclusive: nobody looked%0Aqueues-per-gpu warn: many queues%0Asimulated: kfd-sim\n"
    );
    let mut one = verdict();
    one.rules.retain(|rule| rule.outcome == Outcome::Warn);
    one.outcome = Outcome::Warn;
    assert!(github::annotation(&one, false).starts_with("::warning "));
    assert!(github::annotation(&one, true).starts_with("::error "));
    one.rules.clear();
    one.outcome = Outcome::Pass;
    assert!(github::annotation(&one, true).starts_with("::notice "));
}

#[test]
fn the_step_summary_is_a_table_that_nothing_breaks() {
    let summary = github::summary("a|b", &verdict());
    for line in [
        "## tracer verify own, odd: 1: fail",
        "a\\|b",
        "| coverage | pass | all is well |",
        "| no-ring | fail | 50% of \"jobs\" &amp; &lt;more&gt;\\\\r\\\\nare bad |",
        "- a job \\]\\]&gt; &lt;b&gt;\\|100%, pid 7, at ns 99, ring comp\\_1\\\\u{1b}\\[31m\\\\n::error::x",
        "- missing: gpu\\_scheduler events; to get it: run it again",
    ] {
        assert!(
            summary.lines().any(|found| found == line),
            "{line}\nis not in\n{summary}"
        );
    }
}

#[test]
fn json_is_the_verdict_with_unknown_numbers_as_null() {
    let text = json::write("./app", &verdict()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["subject"], "./app");
    assert_eq!(json["rules"][1]["counts"]["jobs"], serde_json::Value::Null);
    assert_eq!(json["rules"][1]["offenders"][0]["pid"], 7);
    assert!(json["rules"][1]["offenders"][0].get("tid").is_none());
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict());
}
