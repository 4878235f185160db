//! A line about one event: task, processor, time, name and text.
//!
//! ftrace (`trace_print_context` in kernel/trace/trace_output.c), trace-cmd and `perf script` write it alike:
//!
//! ```text
//!     app-1234    [001] d..1.     6.123181: drm_run_job: entity=..., id=1        trace, trace_pipe
//!     app-1234    (   1230) [001] d..1.  6.123181: drm_run_job: ...              with the option record-tgid
//!     app-1234  [001]     6.123181: drm_run_job:          entity=..., id=1       trace-cmd report
//!     app  1234 [001]     6.123181: gpu_scheduler:drm_run_job: entity=...        perf script
//!     app  1230/1234 [001]     6.123181: gpu_scheduler:drm_run_job: ...          perf script -F pid,tid
//! ```

/// A line about one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLine<'a> {
    /// Name of the thread.
    pub comm: &'a str,
    /// Thread.
    pub tid: u32,
    /// Its process; `None` if the text does not say.
    pub pid: Option<u32>,
    /// Time by the clock of the tool, ns.
    pub time_ns: u64,
    /// Name of the event, without that of its group.
    pub name: &'a str,
    /// The event's own text.
    pub body: &'a str,
}

impl<'a> EventLine<'a> {
    /// Parses a line; `None` if it is not about an event.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (context, time_ns, event) = at_time(line)?;
        let (name, body) = system_call(event)
            .or_else(|| event.split_once(": "))
            .or_else(|| Some((event.strip_suffix(':')?, "")))?;
        let name = name.rsplit(':').next().unwrap_or(name);
        if !is_name(name) {
            return None;
        }
        let (comm, pid, tid) = task(before_processor(context))?;
        Some(Self {
            comm,
            tid,
            pid,
            time_ns,
            name,
            body: body.trim(),
        })
    }
}

/// Splits the text of a system call, which ftrace writes in its own way: `sys_ioctl(fd: 3, ...)` and `sys_ioctl -> 0x0`.
fn system_call(event: &str) -> Option<(&str, &str)> {
    let name = event
        .strip_prefix("sys_")?
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let (name, body) = event.split_at("sys_".len() + name.into_iter().next()?.len());
    (body.starts_with('(') || body.starts_with(" -> ")).then_some((name, body))
}

/// Returns whether a text can be the name of an event or of a system call.
pub fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=64).contains(&text.len()) && text.bytes().all(plain)
}

/// Splits a line at its time: what is before, the time in ns, and what follows.
fn at_time(line: &str) -> Option<(&str, u64, &str)> {
    let mut begin = 0;
    for word in line.split_ascii_whitespace() {
        // The words are parts of the line, in order.
        let at = begin + line[begin..].find(word)?;
        begin = at + word.len();
        if let Some(ns) = word.strip_suffix(':').and_then(nanoseconds) {
            return Some((line[..at].trim_end(), ns, line[begin..].trim_start()));
        }
    }
    None
}

/// Parses seconds with 6 or 9 decimals.
fn nanoseconds(time: &str) -> Option<u64> {
    let (seconds, decimals) = time.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(decimals) {
        return None;
    }
    let unit = match decimals.len() {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(decimals.parse::<u64>().ok()? * unit)
}

/// Returns what precedes the processor, `[001]`; everything if there is none.
fn before_processor(context: &str) -> &str {
    let is_processor = |at: usize| {
        let number = context[at + 1..].split(']').next().unwrap_or_default();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let at = context
        .rmatch_indices('[')
        .map(|(at, _)| at)
        .find(|&at| is_processor(at));
    context[..at.unwrap_or(context.len())].trim_end()
}

/// Parses a task: its name, its process if that is there, and its thread.
fn task(text: &str) -> Option<(&str, Option<u32>, u32)> {
    let (text, of_tgid) = match text.strip_suffix(')').and_then(|inner| inner.rsplit_once('(')) {
        // `(-----)` stands for a process that ftrace does not know.
        Some((text, tgid)) => (text.trim_end(), tgid.trim().parse().ok()),
        None => (text, None),
    };
    let (text, tid) = number_at_end(text)?;
    let (before, sign) = (text.trim_end(), text.chars().next_back());
    match sign {
        Some('-') => Some((text[..text.len() - 1].trim_start(), of_tgid, tid)),
        Some('/') => {
            let (comm, pid) = number_at_end(&text[..text.len() - 1])?;
            Some((comm.trim(), Some(pid), tid))
        }
        Some(sign) if sign.is_ascii_whitespace() => Some((before.trim_start(), None, tid)),
        _ => None,
    }
}

/// Splits off the number that ends a text.
fn number_at_end(text: &str) -> Option<(&str, u32)> {
    let begin = text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    Some((&text[..begin], text[begin..].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> (&str, Option<u32>, u32, u64, &str, &str) {
        let line = EventLine::parse(line).unwrap_or_else(|| panic!("{line}"));
        (line.comm, line.pid, line.tid, line.time_ns, line.name, line.body)
    }

    #[test]
    fn every_tool_writes_the_same_line_in_its_own_form() {
        let expected = ("a-b c", None, 1234, 6_123_181_000, "drm_run_job", "id=1, ring=sdma0");
        for line in [
            "         a-b c-1234    [001] d..1.     6.123181: drm_run_job: id=1, ring=sdma0",
            "           a-b c-1234  [001]     6.123181: drm_run_job:          id=1, ring=sdma0",
            "           a-b c-1234  [001] d..1.     6.123181000: drm_run_job:          id=1, ring=sdma0",
            "a-b c  1234 [001]     6.123181:    gpu_scheduler:drm_run_job: id=1, ring=sdma0",
            "         a-b c-1234    (-------) [001] d..1.     6.123181: drm_run_job: id=1, ring=sdma0",
            "a-b c  1234     6.123181: gpu_scheduler:drm_run_job: id=1, ring=sdma0",
        ] {
            assert_eq!(parsed(line), expected);
        }
        let with_pid = (
            "a-b c",
            Some(1230),
            1234,
            6_123_181_000,
            "drm_run_job",
            "id=1, ring=sdma0",
        );
        for line in [
            "         a-b c-1234    (   1230) [001] d..1.     6.123181: drm_run_job: id=1, ring=sdma0",
            "a-b c  1230/1234 [001]     6.123181:    gpu_scheduler:drm_run_job: id=1, ring=sdma0",
        ] {
            assert_eq!(parsed(line), with_pid);
        }
        for (text, name, body) in [
            (
                "sys_ioctl(fd: 3, cmd: 80084b01, arg: 7ffe)",
                "sys_ioctl",
                "(fd: 3, cmd: 80084b01, arg: 7ffe)",
            ),
            ("sys_ioctl -> 0x0", "sys_ioctl", "-> 0x0"),
        ] {
            let line = format!("sh-12 [000] ..... 6.123181: {text}");
            assert_eq!(parsed(&line), ("sh", None, 12, 6_123_181_000, name, body));
        }
        let idle = parsed("          <idle>-0       [000] d.h1.    12.000000001: tick_stop: ");
        assert_eq!(idle, ("<idle>", None, 0, 12_000_000_001, "tick_stop", ""));
    }

    #[test]
    fn other_lines_are_no_events() {
        for line in [
            "",
            "#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION",
            "10000 jobs no tracing: 6.33 -> 6.68",
            "[    5.660897] fakesched: loading out-of-tree module taints kernel.",
            "        ffffffff8110b3fa drm_sched_entity_push_job+0x1a ([kernel.kallsyms])",
            " sh-12 [000] ..... 6.123181: vfs_read <-ksys_read",
            " sh [000] ..... 6.123181: drm_run_job: id=1",
            " sh-12 [000] ..... 6.1: drm_run_job: id=1",
            " sh-12 [000] ..... 99999999999999.123456: drm_run_job: id=1",
            " sh-99999999999 [000] ..... 6.123181: drm_run_job: id=1",
        ] {
            assert_eq!(EventLine::parse(line), None, "{line}");
        }
    }
}
