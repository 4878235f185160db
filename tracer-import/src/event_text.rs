//! The text of ftrace, trace-cmd and perf: lines about events, headers, and what was lost.

use std::collections::BTreeSet;

use tracer_core::event::{Event, Origin, RingStep, There};

use crate::event_line::EventLine;
use crate::fields;
use crate::script::{self, Script};
use crate::threads::Threads;
use crate::{Took, driver_events, ring_jobs};

/// Processes whose names are passed on. Beyond it, processes have no names.
const MAX_PROCESSES: usize = 1 << 16;

/// The event of a new thread (`include/trace/events/task.h`).
const NEW_TASK: &str = "task_newtask";

/// The flag of a new thread that belongs to the process of its creator (`include/uapi/linux/sched.h`).
const CLONE_THREAD: u64 = 0x10000;

/// What the lines so far have shown.
#[derive(Debug, Default)]
pub struct EventText {
    /// Time of the first and of the last event of any kind, ns.
    pub span_ns: Option<(u64, u64)>,
    /// Whether a step of a job was among them that only a watched scheduler writes.
    pub has_jobs: bool,
    /// Whether an event of amdgpu was among them.
    pub has_driver_events: bool,
    /// Submissions of jobs whose process the text does not name.
    pub without_process: u64,
    /// What the script of `tracer record --script` wrote.
    pub script: Script,
    /// Processes whose names were passed on.
    named: BTreeSet<u32>,
    /// ftrace does not know the process of a thread that it has not seen on a processor yet.
    threads: Threads,
}

impl EventText {
    /// Takes a line.
    pub fn line(&mut self, line: &str, out: &mut impl FnMut(&Event<'_>)) -> Took {
        if let Some(event) = EventLine::parse(line) {
            return self.event(&event, out);
        }
        if let Some(took) = self.script.header(line) {
            return took;
        }
        lost(line).unwrap_or_else(|| if is_header(line) { Took::Nothing } else { Took::Foreign })
    }

    /// Takes a line about an event.
    pub fn event(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Took {
        let (first, last) = self.span_ns.unwrap_or((line.time_ns, line.time_ns));
        self.span_ns = Some((first.min(line.time_ns), last.max(line.time_ns)));
        let line = &self.with_process(line);
        if self.script.is_by_the_way(line.name) {
            return Took::Nothing;
        }
        if line.name == NEW_TASK {
            return self.new_task(line.tid, line.body);
        }
        let decoded = match ring_jobs::step(line.name) {
            Some(step) => {
                if step == RingStep::Submit {
                    self.submitter(line, out);
                }
                self.has_jobs = true;
                ring_jobs::decode(line, step, out).map(|()| true)
            }
            None if script::is_one(line.name) => {
                self.process(line, out);
                self.script.event(line, out)
            }
            None => {
                let is_one = driver_events::decode(line, out).inspect(|is_one| self.has_driver_events |= is_one);
                match is_one {
                    Ok(false) => self.script.event(line, out),
                    other => other,
                }
            }
        };
        match decoded {
            Ok(true) => Took::Events(1),
            Ok(false) => Took::Unused(line.name.to_owned()),
            Err(lacks) => Took::Malformed(format!("{}: {lacks}", line.name)),
        }
    }

    /// Notes the process of a line's thread, or adds it.
    fn with_process<'a>(&mut self, line: &EventLine<'a>) -> EventLine<'a> {
        let known = self.threads.process(line.tid);
        if let Some(pid) = line.pid.filter(|pid| known != Some(*pid)) {
            self.threads.is_of(line.tid, pid);
        }
        EventLine {
            pid: line.pid.or(known),
            ..*line
        }
    }

    /// Notes a new thread.
    fn new_task(&mut self, creator: u32, body: &str) -> Took {
        let words = || body.split_ascii_whitespace();
        let tid = words().find_map(|word| word.strip_prefix("pid="));
        let tid = tid.and_then(|tid| tid.parse().ok());
        // Between them is the name, which the program chooses.
        let flags = words().filter_map(|word| word.strip_prefix("clone_flags=")).next_back();
        let flags = flags.and_then(fields::hexadecimal);
        let Some((tid, flags)) = tid.zip(flags) else {
            return Took::Malformed(format!("{NEW_TASK}: fields are missing"));
        };
        self.threads.created(creator, tid, flags & CLONE_THREAD != 0);
        Took::Nothing
    }

    /// Ends the file: passes on what is left.
    pub fn finish(&mut self, out: &mut impl FnMut(&Event<'_>)) {
        let (_, last_ns) = self.span_ns.unwrap_or_default();
        self.script.finish(last_ns, out);
    }

    /// Passes on the name of a process that submits a job.
    fn submitter(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) {
        self.without_process += u64::from(line.pid.is_none());
        self.process(line, out);
    }

    /// Passes on the name of a process. A thread's name is that of the process only if it is the first thread.
    fn process(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) {
        let pid = line
            .pid
            .filter(|&pid| pid == line.tid && self.named.len() < MAX_PROCESSES);
        let Some(pid) = pid.filter(|&pid| self.named.insert(pid)) else {
            return;
        };
        out(&Event::There(There {
            origin: Origin {
                time_ns: line.time_ns,
                pid,
                tid: pid,
            },
            comm: line.comm.as_bytes(),
            queues: &[],
            idle: false,
        }));
    }
}

/// Returns whether a line is one of the headers of ftrace, trace-cmd and bpftrace, or empty.
fn is_header(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with('#')
        || ["cpus=", "version = ", "CPU ", "Attaching "]
            .iter()
            .any(|header| line.starts_with(header))
}

/// Returns what a line says about lost events; `None` if it says nothing about that.
///
/// ftrace writes `CPU:1 [LOST 27 EVENTS]` (`kernel/trace/trace.c`), and the header
/// `# entries-in-buffer/entries-written: 18/20   #P:2`; trace-cmd writes `CPU:1 [27 EVENTS DROPPED]`. Both leave the number out if
/// they don't know it. bpftrace writes `Lost 27 events`.
fn lost(line: &str) -> Option<Took> {
    const WRITTEN: &str = "entries-in-buffer/entries-written:";
    if let Some((_, counts)) = line.split_once(WRITTEN) {
        let counts = counts.split_ascii_whitespace().next()?;
        let (kept, written) = counts.split_once('/')?;
        let overwritten = written.parse::<u64>().ok()?.saturating_sub(kept.parse().ok()?);
        return Some(match overwritten {
            0 => Took::Nothing,
            count => Took::Lost(count),
        });
    }
    if let Some(count) = line.strip_prefix("Lost ").and_then(|rest| rest.strip_suffix(" events")) {
        return count.parse().ok().map(Took::Lost);
    }
    let (_, said) = line.trim().strip_prefix("CPU:")?.split_once('[')?;
    let said = said.strip_suffix(']')?;
    let said = said.strip_prefix("LOST").or_else(|| said.strip_suffix("DROPPED"))?;
    let number = said.trim().strip_suffix("EVENTS")?.trim();
    match number {
        "" => Some(Took::Lost(1)),
        number => number.parse().ok().map(Took::Lost),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(line: &str) -> Took {
        EventText::default().line(line, &mut |_| ())
    }

    #[test]
    fn losses_are_counted_as_the_tools_write_them() {
        assert_eq!(took("CPU:1 [LOST 27 EVENTS]"), Took::Lost(27));
        assert_eq!(took("CPU:0 [LOST EVENTS]"), Took::Lost(1));
        assert_eq!(took("CPU:3 [12 EVENTS DROPPED]"), Took::Lost(12));
        assert_eq!(took("CPU:3 [EVENTS DROPPED]"), Took::Lost(1));
        assert_eq!(took("Lost 27 events"), Took::Lost(27));
        assert_eq!(took("# entries-in-buffer/entries-written: 18/18   #P:2"), Took::Nothing);
        assert_eq!(took("# entries-in-buffer/entries-written: 18/20   #P:2"), Took::Lost(2));
    }

    #[test]
    fn every_line_is_of_one_kind() {
        for header in [
            "",
            "# tracer: nop",
            "cpus=2",
            "##### CPU 1 buffer started ####",
            "Attaching 5 probes...",
        ] {
            assert_eq!(took(header), Took::Nothing, "{header}");
        }
        let unused = "sh-1 [000] ..... 1.000001: sched_switch: prev_comm=sh";
        assert_eq!(took(unused), Took::Unused("sched_switch".to_owned()));
        assert_eq!(took("10000 jobs no tracing: 6.33 -> 6.68"), Took::Foreign);
        for (cut, lacks) in [
            ("drm_run_job: entity=00ff", "drm_run_job: it has no fence"),
            (
                "drm_run_job: fence=(____ptrval____)",
                "drm_run_job: its fence is no number",
            ),
            ("drm_run_job: fence=00ff, ring=", "drm_run_job: it has no ring"),
            (
                "amdgpu_cs_ioctl: sched_job=1, timeline=x",
                "amdgpu_cs_ioctl: fields are missing",
            ),
        ] {
            let line = format!("sh-1 [000] ..... 1.000001: {cut}");
            assert_eq!(took(&line), Took::Malformed(lacks.to_owned()));
        }
    }
}
