//! The log of AMD's runtimes (`AMD_LOG_LEVEL`): HIP's packets on its queues, and those that the HSA runtime writes itself.
//!
//! The lines differ between releases (`ClPrint` in rocclr's rocvirtual.cpp and rocdevice.cpp, `LogPrint` in the HSA runtime's
//! amd_blit_kernel.cpp):
//!
//! | release | lines about packets | queue | index |
//! |---|---|---|---|
//! | 5.x | level 4 | `HWq=` is the `hsa_queue_t` | no |
//! | 6.1 | level 4 | `HWq=` is the ring | no |
//! | 6.4 | level 4 | `SWq=` is the `hsa_queue_t`, `HWq=` the ring | `wptr=`, of dispatches |
//! | 7.2 | level 5 | the same | `wptr=` |
//!
//! A log has what HIP submits. Packets of other users of the HSA runtime are not in it, and those of the HSA runtime itself only in
//! some releases: counts of a log are no totals.

mod packet;
mod queues;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use tracer_core::event::Event;
use tracer_core::tables::Fact;

use crate::Took;
use crate::fields::hexadecimal;
use packet::Packet;
use queues::Queues;

/// Threads whose kernel names wait for their dispatches. Beyond it, dispatches have no names.
const MAX_THREADS: usize = 1 << 12;

/// What marks the lines of the HSA runtime itself.
const OF_ROCR: &str = "[***rocr***] ";

/// What the lines so far have shown.
#[derive(Debug, Default)]
pub struct AmdLog {
    /// Time of the first and of the last line, ns.
    pub span_ns: Option<(u64, u64)>,
    queues: Queues,
    /// The name of the kernel that a thread is about to submit, by process and the thread's text.
    named: HashMap<(u32, u64), String>,
}

/// What every line of the log has.
struct Line<'a> {
    time_ns: u64,
    pid: u32,
    /// The thread, as `pthread_self` names it: not the kernel's number.
    thread: u64,
    /// The source file that wrote the line.
    file: &'a str,
    message: &'a str,
}

impl AmdLog {
    /// Takes a line; `None` if it is not one of this log.
    pub fn line(&mut self, line: &str, out: &mut impl FnMut(&Event<'_>)) -> Option<Took> {
        let line = Line::parse(line)?;
        let (first, last) = self.span_ns.unwrap_or((line.time_ns, line.time_ns));
        self.span_ns = Some((first.min(line.time_ns), last.max(line.time_ns)));
        Some(self.message(&line, out))
    }

    fn message(&mut self, line: &Line<'_>, out: &mut impl FnMut(&Event<'_>)) -> Took {
        let message = line.message.strip_prefix(OF_ROCR).unwrap_or(line.message);
        let thread = (line.pid, line.thread);
        if let Some(name) = kernel_name(message) {
            if self.named.len() < MAX_THREADS || self.named.contains_key(&thread) {
                self.named.insert(thread, name.to_owned());
            }
            return Took::Nothing;
        }
        // A call of HIP begins or ends. What it did not submit, such as the kernels of a graph that it builds, is not the next packet.
        if line.file.starts_with("hip_") {
            self.named.remove(&thread);
            return Took::Nothing;
        }
        if self.queues.created(line.pid, line.time_ns, message) {
            return Took::Nothing;
        }
        match Packet::parse(message) {
            None => Took::Nothing,
            Some(Err(lacks)) => Took::Malformed(lacks),
            Some(Ok(packet)) => {
                let of_rocr = message.len() < line.message.len();
                // A barrier may come between the name and its dispatch.
                let name = packet.is_dispatch().then(|| self.named.remove(&thread)).flatten();
                match self.queues.packet(line.pid, line.time_ns, &packet, name, of_rocr) {
                    Some(fact) => {
                        out(&Event::Logged(&fact));
                        Took::Events(1)
                    }
                    None => Took::Malformed("too many queues".to_owned()),
                }
            }
        }
    }

    /// Returns the packets that the log lacks, by the indexes that it has.
    pub fn missing(&self) -> u64 {
        self.queues.missing()
    }

    /// Ends the log: passes on the queues and processes.
    pub fn finish(&mut self, out: &mut impl FnMut(&Event<'_>)) {
        let (queues, processes) = self.queues.finish();
        for queue in queues {
            out(&Event::Logged(&Fact::Queue(queue)));
        }
        for process in processes {
            out(&Event::Logged(&Fact::Process(process)));
        }
    }
}

impl<'a> Line<'a> {
    /// Parses what every line has:
    ///
    /// ```text
    /// :4:rocvirtual.cpp           :867 : 6999659646 us: [pid:25270 tid:0x7ff3fd3d8c00] HWq=...
    /// :4:rocvirtual.cpp           :827 : 6999199871 us: 25250: [tid:0x7fecf79597c0] HWq=...           5.x
    /// ```
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.strip_prefix(':')?.split_once(" us: ")?;
        // `4:rocvirtual.cpp :867 `; the HSA runtime may leave the level out.
        let mut words = before.split(':').map(str::trim);
        let file = words.find(|word| !word.bytes().all(|byte| byte.is_ascii_digit()))?;
        let (_, us) = before.rsplit_once(": ")?;
        let time_ns = us.trim().parse::<u64>().ok()?.checked_mul(1000)?;
        let (pid, rest) = match after.strip_prefix("[pid:") {
            Some(rest) => rest.split_once(" tid:")?,
            None => after.split_once(": [tid:")?,
        };
        let (thread, message) = rest.split_once(']')?;
        Some(Self {
            time_ns,
            pid: pid.trim().parse().ok()?,
            thread: hexadecimal(thread.trim())?,
            file,
            message: message.trim(),
        })
    }
}

/// Returns the name in a line about a kernel, which precedes the line about its packet.
fn kernel_name(message: &str) -> Option<&str> {
    match message.strip_prefix("Graph ShaderName : ") {
        Some(name) => Some(name.rsplit_once(", device id")?.0),
        None => message.strip_prefix("ShaderName : "),
    }
}
