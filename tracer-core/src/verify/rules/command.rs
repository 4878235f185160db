//! `command`: the recorded command succeeded. Fails if it did not; inconclusive if its exit was not seen. If tracer attached to
//! processes, there is no command, and nothing to judge.

use super::{Counts, Rule};
use crate::verify::context::{Context, Ended};
use crate::verify::finding::Finding;
use crate::verify::verdict::Outcome;

pub(super) struct Command;

impl Rule for Command {
    fn finish(self: Box<Self>, context: &Context, _: &Counts, finding: &mut Finding) -> String {
        match context.command {
            Some(Ended::Code(0)) | None => {}
            Some(Ended::Code(code)) => finding.say(Outcome::Fail, format!("the command exited with {code}")),
            Some(Ended::Signal(signal)) => {
                finding.say(Outcome::Fail, format!("signal {signal} killed the command"));
            }
            Some(Ended::Unknown) => finding.lack(
                "tracer did not see how the command exited",
                "the command's end",
                "record again, and let the command exit",
            ),
        }
        match context.command {
            None => "no command was recorded, so none failed".to_owned(),
            Some(_) => "the command exited with 0".to_owned(),
        }
    }
}
