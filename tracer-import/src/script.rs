//! The events of scripts that capture without tracer: doorbells with the packets that they publish, and ioctls with their arguments.
//! `tracer_core::script` has their names and fields.

mod doorbells;
mod ioctls;

use tracer_core::event::{Event, Origin};
use tracer_core::script::{DOORBELL, END, FORMAT, GROUP, HEADER, IOCTL_ENTER, IOCTL_EXIT, PACKETS, WRAPPED};

use crate::Took;
use crate::event_line::EventLine;
use doorbells::Doorbells;
use ioctls::Ioctls;

/// What a script can capture, in the words of capabilities.
const CAPTURED: [&str; 4] = ["doorbells", "packets", "ioctls", "kernel_rings"];

/// An event that the script enables for its trigger only.
const SYSTEM_CALL: &str = "sys_ioctl";

/// The event that carries [`END`].
const MARK: &str = "tracing_mark_write";

/// What the lines so far have shown.
#[derive(Debug, Default)]
pub struct Script {
    /// What the script captured, as it says in its first line; `None` if no script wrote the text.
    pub captured: Option<Vec<String>>,
    /// Whether the first line names another version.
    is_foreign: bool,
    is_ended: bool,
    doorbells: Doorbells,
    ioctls: Ioctls,
}

impl Script {
    /// Takes the first line of a script's output; `None` if it is another line.
    pub fn header(&mut self, line: &str) -> Option<Took> {
        let (format, captured) = line.strip_prefix(HEADER)?.split_once(':')?;
        if format.parse() != Ok(FORMAT) {
            self.is_foreign = true;
            return Some(Took::Malformed(format!(
                "another version of tracer printed the script: its format is not {FORMAT}"
            )));
        }
        let captured = captured.split_ascii_whitespace();
        self.captured = Some(
            captured
                .filter(|word| CAPTURED.contains(word))
                .map(str::to_owned)
                .collect(),
        );
        Some(Took::Nothing)
    }

    /// Returns whether the script needs an event of this name, which says nothing.
    pub fn is_by_the_way(&self, name: &str) -> bool {
        name.starts_with(GROUP) || self.captured.is_some() && name == SYSTEM_CALL
    }

    /// Takes the event, if it is one of the script's. Returns whether it is.
    ///
    /// # Errors
    /// Says what the line lacks.
    pub fn event(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Result<bool, String> {
        if self.is_foreign {
            return Ok(false);
        }
        if is_one(line.name) {
            let packets = [PACKETS, WRAPPED].contains(&line.name);
            self.doorbells.advance(line, packets, out);
        }
        match line.name {
            PACKETS => self.doorbells.packets(line, false, out)?,
            WRAPPED => self.doorbells.packets(line, true, out)?,
            IOCTL_ENTER => self.ioctls.enter(line, out)?,
            IOCTL_EXIT => self.ioctl_exit(line, out)?,
            // The others wake the script's reader.
            MARK if self.captured.is_some() => self.is_ended |= line.body.ends_with(END),
            name if name.starts_with(DOORBELL) => self.doorbells.ring(line, out)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn ioctl_exit(&mut self, line: &EventLine<'_>, out: &mut impl FnMut(&Event<'_>)) -> Result<(), String> {
        if let Some(pid) = line.pid.filter(|_| self.ioctls.destroys_queue(line.tid)) {
            self.doorbells.flush(pid, out);
        }
        let created = self.ioctls.exit(line, out)?;
        if let Some((pid, write_pointer)) = line.pid.zip(created) {
            self.doorbells.begin(pid, write_pointer);
        }
        Ok(())
    }

    /// Ends the file at the time of its last event: passes on what is left.
    pub fn finish(&mut self, now_ns: u64, out: &mut impl FnMut(&Event<'_>)) {
        self.doorbells.finish(out);
        self.ioctls.finish(now_ns, out);
    }

    /// Returns how much is known to be missing: beginnings of ioctls, and the end of the text.
    pub fn missing(&self) -> u64 {
        let is_cut = self.captured.is_some() && !self.is_ended;
        self.ioctls.missing + u64::from(is_cut)
    }
}

/// Returns whether an event of this name is one of the script's.
pub fn is_one(name: &str) -> bool {
    [PACKETS, WRAPPED, IOCTL_ENTER, IOCTL_EXIT].contains(&name) || name.starts_with(DOORBELL)
}

/// Returns the thread and time of a line.
fn origin(line: &EventLine<'_>) -> Result<Origin, String> {
    Ok(Origin {
        time_ns: line.time_ns,
        pid: line.pid.ok_or("its process is not named")?,
        tid: line.tid,
    })
}

/// Returns the fields of an event of a probe, `name=value` each. A field that the kernel could not read has no number as its value.
fn fields(body: &str) -> impl Iterator<Item = (&str, &str)> {
    body.split_ascii_whitespace().filter_map(|field| field.split_once('='))
}

/// Returns a number, hexadecimal with `0x` or decimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(_) => crate::fields::hexadecimal(text),
        None => text.parse().ok(),
    }
}

/// Returns the numbers of these fields.
fn numbers<const N: usize>(body: &str, names: [&str; N]) -> [Option<u64>; N] {
    let mut found = [None; N];
    for (name, value) in fields(body) {
        if let Some(at) = names.iter().position(|wanted| *wanted == name) {
            found[at] = number(value);
        }
    }
    found
}

#[cfg(test)]
mod tests;
