//! The verdict for CI systems: JUnit XML with one test case per rule. "Fail" becomes a failure and "inconclusive" an error, so that
//! CI systems count them separately.

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};
use tracer_core::words::Named;
use tracer_core::{
    foreign::{Terminal, Xml},
    verify::{Outcome, RuleVerdict, Verdict},
};

use super::{strictly, text::details};

/// Formats the verdict as a JUnit document.
pub fn write(subject: &str, verdict: &Verdict, strict: bool) -> anyhow::Result<String> {
    let mut suite = TestSuite::new(format!("tracer verify {}", Terminal(&verdict.policy)));
    suite.add_property(Property::new("subject", Terminal(subject).to_string()));
    suite.add_property(Property::new("outcome", verdict.outcome.name()));
    if let Some(sign) = &verdict.simulated {
        suite.add_property(Property::new("simulated", Terminal(sign).to_string()));
    }
    suite.add_test_cases(verdict.rules.iter().map(|rule| case(&verdict.policy, rule, strict)));
    let mut report = Report::new("tracer verify");
    report.add_test_suite(suite);
    Ok(Xml(&report.to_string()?).to_string())
}

fn case(policy: &str, rule: &RuleVerdict, strict: bool) -> TestCase {
    let text = details(rule).join("\n");
    let sentence = Terminal(&rule.sentence).to_string();
    let kind = match strictly(rule.outcome, strict) {
        Outcome::Fail => Some(NonSuccessKind::Failure),
        Outcome::Inconclusive => Some(NonSuccessKind::Error),
        Outcome::Pass | Outcome::Warn => None,
    };
    let status = match kind {
        None => TestCaseStatus::success(),
        Some(kind) => {
            let mut status = TestCaseStatus::non_success(kind);
            status
                .set_type(rule.outcome.name())
                .set_message(sentence.as_str())
                .set_description(format!("{sentence}\n{text}"));
            status
        }
    };
    let mut case = TestCase::new(Terminal(&rule.rule).to_string(), status);
    case.set_classname(format!("tracer.{}", Terminal(policy)));
    if kind.is_none() {
        case.set_system_out(format!("{}: {sentence}\n{text}", rule.outcome.name()));
    }
    case
}
