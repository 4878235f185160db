//! The protocol between the host and the agent in a virtual machine: frames of a kind, a length and a payload.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The name of the virtio port that carries the frames.
pub const PORT: &str = "tracer.agent";

/// The largest payload, in bytes. A larger one means that the peers are out of step.
const LIMIT: u32 = 16 << 20;

/// A request of the host.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Mounts a folder of the host, writable, at the same path. Answered by [`Kind::Exit`].
    Share {
        /// The 9p mount tag.
        tag: String,
        /// Its path on both sides.
        path: PathBuf,
    },
    /// Loads kernel modules in this order. Modules that are already loaded count as success. Answered by [`Kind::Exit`].
    Load {
        /// Each module's file.
        files: Vec<PathBuf>,
        /// Parameters of the last one, as on `insmod`'s command line.
        parameters: String,
    },
    /// Unloads a kernel module. Answered by [`Kind::Exit`].
    Unload {
        /// Its name, with underscores.
        name: String,
    },
    /// Runs a program. Its output comes as frames, and [`Kind::Exit`] ends it.
    Run {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Its whole environment.
        env: BTreeMap<String, String>,
        /// Its working directory.
        cwd: PathBuf,
        /// If set, the program gets the console as its terminal, with this many rows and columns, instead of pipes.
        terminal: Option<(u16, u16)>,
    },
    /// Powers the machine off at once.
    PowerOff,
}

/// The content of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A [`Request`] as JSON.
    Request,
    /// The agent's first frame: [`Booted`] as JSON.
    Booted,
    /// Bytes of the command's standard output.
    Stdout,
    /// Bytes of the command's standard error.
    Stderr,
    /// A request was performed: [`Exit`] as JSON.
    Exit,
    /// A request could not be performed: the reason, as text.
    Failed,
}

impl Kind {
    const ALL: [(Self, u8); 6] = [
        (Self::Request, b'R'),
        (Self::Booted, b'B'),
        (Self::Stdout, b'O'),
        (Self::Stderr, b'E'),
        (Self::Exit, b'X'),
        (Self::Failed, b'F'),
    ];

    fn code(self) -> u8 {
        Self::ALL
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or(b'F', |(_, code)| *code)
    }

    fn from_code(wanted: u8) -> io::Result<Self> {
        Self::ALL
            .iter()
            .find(|(_, code)| *code == wanted)
            .map(|(kind, _)| *kind)
            .ok_or_else(|| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("no frame begins with {wanted:#04x}"),
                )
            })
    }
}

/// The report that the agent is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Booted {
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// Seconds from the kernel's start until now.
    pub uptime_s: f64,
}

/// The result of a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, or 128 + n if signal n killed the program.
    pub code: i32,
    /// The duration of the request, in seconds by the guest's clock.
    pub seconds: f64,
}

/// Writes one frame.
pub fn write(mut to: impl Write, kind: Kind, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut frame = Vec::with_capacity(payload.len() + 5);
    frame.push(kind.code());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(payload);
    to.write_all(&frame)
}

/// Writes one frame whose payload is JSON.
pub fn write_json(to: impl Write, kind: Kind, value: &impl Serialize) -> io::Result<()> {
    write(to, kind, &serde_json::to_vec(value)?)
}

/// Reads one frame. Returns `None` at an end of the stream between frames.
pub fn read(mut from: impl Read) -> io::Result<Option<(Kind, Vec<u8>)>> {
    let mut code = [0];
    if from.read(&mut code)? == 0 {
        return Ok(None);
    }
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length > LIMIT {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a frame of {length} bytes"),
        ));
    }
    let mut payload = vec![0; length as usize];
    from.read_exact(&mut payload)?;
    Ok(Some((Kind::from_code(code[0])?, payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_the_way() {
        let mut bytes = Vec::new();
        write(&mut bytes, Kind::Stdout, b"out\n").unwrap();
        write_json(&mut bytes, Kind::Request, &Request::PowerOff).unwrap();
        let mut from = bytes.as_slice();
        assert_eq!(read(&mut from).unwrap(), Some((Kind::Stdout, b"out\n".to_vec())));
        let (kind, payload) = read(&mut from).unwrap().unwrap();
        assert_eq!((kind, payload.as_slice()), (Kind::Request, b"\"PowerOff\"".as_slice()));
        assert_eq!(read(&mut from).unwrap(), None);
    }

    #[test]
    fn rubbish_is_refused() {
        assert!(read(b"O\xff\xff\xff\xff".as_slice()).is_err());
        assert!(read(b"?\0\0\0\0".as_slice()).is_err());
        assert!(read(b"O\x04\0\0\0ab".as_slice()).is_err());
    }
}
