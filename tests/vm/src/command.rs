//! A command to run in a virtual machine, and its result.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

use crate::protocol::Request;

/// The default time limit of a command: a busy machine takes twice as long as an idle one.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Prefixes of the variables that a command inherits from this process.
const INHERITED: [&str; 5] = ["TRACER_", "RUST_", "LC_", "LANG", "TERM"];

/// A program with arguments, environment and working directory.
///
/// The program is searched on the PATH of this process, after the folder that `TRACER_BIN_DIR` names. It runs as root with an empty
/// standard input. The environment is PATH, HOME and the variables about TRACER, RUST, language and terminal; the working directory
/// is that of this process.
#[derive(Debug, Clone)]
pub struct Command {
    argv: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: PathBuf,
    timeout: Duration,
}

impl Command {
    /// Returns a command that runs a program, given by its name or path.
    pub fn new(program: impl Into<String>) -> Self {
        let inherited = |name: &str| INHERITED.iter().any(|prefix| name.starts_with(prefix));
        let mut env: BTreeMap<String, String> = env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| inherited(name))
            .collect();
        let path = env::var("PATH").unwrap_or_else(|_| "/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
        let path = match env.get("TRACER_BIN_DIR") {
            Some(programs) => format!("{programs}:{path}"),
            None => path,
        };
        env.insert("PATH".to_owned(), path);
        env.insert(
            "HOME".to_owned(),
            env::var("HOME").unwrap_or_else(|_| "/root".to_owned()),
        );
        Self {
            argv: vec![program.into()],
            env,
            cwd: env::current_dir().unwrap_or_else(|_| "/".into()),
            timeout: TIMEOUT,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.argv.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.argv.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = folder.into();
        self
    }

    /// Sets the time limit. The machine is killed when the command takes longer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Returns the time limit.
    pub(crate) fn limit(&self) -> Duration {
        self.timeout
    }

    /// Returns the program and its arguments, formatted for an error message.
    pub(crate) fn shown(&self) -> String {
        self.argv.join(" ")
    }

    /// Returns the request to the agent. `terminal` is the size of the terminal that the program gets, if it gets one.
    pub(crate) fn request(&self, terminal: Option<(u16, u16)>) -> Request {
        Request::Run {
            argv: self.argv.clone(),
            env: self.env.clone(),
            cwd: self.cwd.clone(),
            terminal,
        }
    }
}

/// The source of a piece of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The output of a command and its exit.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// The exit code, or 128 + n if signal n killed the command.
    pub code: i32,
    /// All of its standard output; empty if it was forwarded piece by piece.
    pub stdout: Vec<u8>,
    /// All of its standard error; empty if it was forwarded piece by piece.
    pub stderr: Vec<u8>,
    /// How long it took, by the guest's clock.
    pub duration: Duration,
}

impl Output {
    /// Returns standard output as text.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns standard error as text.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}
