//! Decodes the commands of an SDMA submission and creates the fact for it.

use tracer_common::sdma::{self, Command};

use super::memory::Memory;
use crate::event::{Origin, SdmaDoorbell};
use crate::tables::{self, CopiedBy, CopyOp, Path};

/// Combined effect of the commands of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moved {
    op: CopyOp,
    bytes: u64,
    commands: u32,
    /// The contiguous addresses that are read, and those that are written, if there is one range of each.
    source: Option<(u64, u64)>,
    destination: Option<(u64, u64)>,
}

impl Moved {
    const NOTHING: Self = Self {
        op: CopyOp::None,
        bytes: 0,
        commands: 0,
        source: None,
        destination: None,
    };

    /// Adds a command. Commands of several kinds, or addresses that are not contiguous, leave no addresses.
    fn add(&mut self, op: CopyOp, bytes: u64, source: Option<u64>, destination: Option<u64>) {
        let row = |start: Option<u64>| start.map(|start| (start, bytes));
        if self.commands == 0 {
            (self.op, self.source, self.destination) = (op, row(source), row(destination));
        } else if self.op == op && op != CopyOp::CopyRect {
            self.source = joined(self.source, row(source));
            self.destination = joined(self.destination, row(destination));
        } else {
            if self.op != op {
                self.op = CopyOp::Mixed;
            }
            (self.source, self.destination) = (None, None);
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.commands = self.commands.saturating_add(1);
    }
}

/// Returns the fact for a submission. `queue` and `engine` are those of the submission, if known.
pub(super) fn fact(event: &SdmaDoorbell<'_>, queue: Option<u32>, engine: Option<u32>, memory: &Memory) -> tables::Copy {
    let Origin { time_ns, pid, tid } = event.origin;
    let moved = event.commands.and_then(read);
    let rows = moved.and_then(|moved| moved.source.zip(moved.destination));
    tables::Copy {
        queue,
        pid,
        tid,
        time_ns,
        path: Path::Doorbell,
        by: Some(CopiedBy::Sdma),
        begin: event.begin,
        end: event.end,
        op: moved.map(|moved| moved.op),
        bytes: moved.map(|moved| moved.bytes),
        commands: moved.map(|moved| moved.commands),
        source: moved.and_then(|moved| moved.source).map(|(start, _)| start),
        destination: moved.and_then(|moved| moved.destination).map(|(start, _)| start),
        direction: rows.and_then(|(from, to)| memory.direction(pid, from, to)),
        engine,
        api_call: event.call.map(|call| call.call),
        stream: event.call.and_then(|call| call.stream),
    }
}

/// Returns two ranges as one, if the second begins where the first ends.
fn joined(first: Option<(u64, u64)>, second: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let ((start, bytes), (next, more)) = (first?, second?);
    let joined = (start, bytes.checked_add(more)?);
    (start.checked_add(bytes) == Some(next)).then_some(joined)
}

/// Decodes the commands of a whole submission; `None` if one of them is unknown.
fn read(mut commands: &[u8]) -> Option<Moved> {
    let mut moved = Moved::NOTHING;
    while !commands.is_empty() {
        let (command, len) = sdma::decode(commands)?;
        match command {
            Command::Copy {
                source,
                destination,
                bytes,
            } => moved.add(CopyOp::Copy, bytes, Some(source), Some(destination)),
            Command::CopyRect {
                source,
                destination,
                bytes,
            } => moved.add(CopyOp::CopyRect, bytes, Some(source), Some(destination)),
            Command::Fill { destination, bytes } => moved.add(CopyOp::Fill, bytes, None, Some(destination)),
            Command::Other => {}
        }
        commands = commands.get(len..)?;
    }
    Some(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(dwords: &[u32]) -> Vec<u8> {
        dwords.iter().flat_map(|dword| dword.to_le_bytes()).collect()
    }

    fn copy(source: u32, destination: u32, bytes: u32) -> Vec<u8> {
        words(&[1, bytes - 1, 0, source, 0, destination, 0])
    }

    #[test]
    fn pieces_in_a_row_are_one_copy() {
        let mut commands = words(&[8, 0, 0, 0, 0, 0]);
        commands.extend([copy(0x1000, 0x9000, 0x800), copy(0x1800, 0x9800, 0x10)].concat());
        commands.extend(words(&[6, 0]));
        let moved = read(&commands).expect("known commands");
        assert_eq!((moved.op, moved.bytes, moved.commands), (CopyOp::Copy, 0x810, 2));
        assert_eq!(
            (moved.source, moved.destination),
            (Some((0x1000, 0x810)), Some((0x9000, 0x810)))
        );
    }

    #[test]
    fn pieces_apart_have_no_address_of_their_own() {
        let moved = read(&[copy(0x1000, 0x9000, 16), copy(0x1010, 0xa000, 16)].concat()).expect("known commands");
        assert_eq!((moved.source, moved.destination), (Some((0x1000, 32)), None));
        let fill = words(&[11 | 2 << 30, 0x9000, 0, 0, 12]);
        let moved = read(&[copy(0x1000, 0x9000, 16), fill.clone()].concat()).expect("known commands");
        assert_eq!(
            (moved.op, moved.bytes, moved.source, moved.destination),
            (CopyOp::Mixed, 32, None, None)
        );
        let moved = read(&fill).expect("known commands");
        assert_eq!(
            (moved.op, moved.source, moved.destination),
            (CopyOp::Fill, None, Some((0x9000, 16)))
        );
    }

    #[test]
    fn one_unknown_command_makes_all_unknown() {
        let mut commands = copy(0x1000, 0x9000, 16);
        commands.extend(words(&[0xff]));
        assert_eq!(read(&commands), None);
        assert_eq!(read(&copy(0, 0, 16)[..20]), None);
        assert_eq!(read(&[]), Some(Moved::NOTHING));
        assert_eq!(read(&[0; 64]), Some(Moved::NOTHING), "padding");
    }
}
