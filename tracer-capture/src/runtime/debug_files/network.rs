//! debuginfod: its local cache, and its client program, which can download a debug file from the network.

use std::{
    env,
    ffi::OsString,
    io::{self, ErrorKind, Read},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{runtime::resolver::debug::NotUsed, target::launch::User};

/// The client program of elfutils. It handles protocols and proxies, and caches the files that it downloads.
const CLIENT: &str = "debuginfod-find";
/// Longest path (PATH_MAX).
const MAX_PATH: u64 = 4096;

/// Access to debuginfod servers over the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Whether the user has allowed network access.
    pub allowed: bool,
    /// The servers, from `DEBUGINFOD_URLS`.
    pub urls: Option<OsString>,
    /// The client program.
    pub client: PathBuf,
    /// Time limit. A process may wait for the client, so tracer kills the client after this time.
    pub patience: Duration,
}

impl Network {
    /// Reads the servers from the environment.
    #[must_use]
    pub fn new(allowed: bool, patience: Duration) -> Self {
        Self {
            allowed,
            urls: set("DEBUGINFOD_URLS"),
            client: CLIENT.into(),
            patience,
        }
    }

    /// Downloads the debug file of a build with the client program, and returns the file's path.
    pub(crate) fn ask(&self, build_id: &str) -> Result<PathBuf, NotUsed> {
        let Some(urls) = self.urls.as_ref().filter(|_| self.allowed) else {
            let lacks = if self.allowed {
                "DEBUGINFOD_URLS is not set (sudo does not pass it on)"
            } else {
                "not allowed; use --debuginfod"
            };
            return Err(NotUsed::NotTried(lacks.to_owned()));
        };
        let mut client = Command::new(&self.client);
        // The client writes into a cache. It must not do so as root in another user's folder.
        match User::invoking() {
            Ok(Some(user)) => {
                client.uid(user.uid).gid(user.gid).env_remove("XDG_CACHE_HOME");
                client.envs(user.home.map(|home| ("HOME", home)));
            }
            Ok(None) => {}
            Err(error) => return Err(NotUsed::Refused(error.to_string())),
        }
        let spawned = client
            .args(["debuginfo", build_id])
            .env("DEBUGINFOD_URLS", urls)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.map_err(|error| match error.kind() {
            ErrorKind::NotFound => NotUsed::NotTried(format!("{CLIENT} is not installed (apt install debuginfod)")),
            _ => NotUsed::Refused(format!("cannot start {CLIENT}: {error}")),
        })?;
        if !self.wait(&mut child)? {
            return Err(NotUsed::Absent("no server has it".to_owned()));
        }
        let output = child.stdout.take().map(|output| output.take(MAX_PATH));
        match output.map(io::read_to_string) {
            Some(Ok(path)) if path.starts_with('/') => Ok(PathBuf::from(path.trim_end_matches('\n'))),
            _ => Err(NotUsed::Refused(format!("{CLIENT} did not print a file name"))),
        }
    }

    /// Waits for the client. Returns whether it succeeded.
    fn wait(&self, child: &mut Child) -> Result<bool, NotUsed> {
        let began = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok(status.success()),
                Ok(None) if began.elapsed() < self.patience => thread::sleep(Duration::from_millis(5)),
                Ok(None) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    let advice = "download it first: debuginfod-find debuginfo BUILD-ID";
                    return Err(NotUsed::Refused(format!(
                        "{CLIENT} did not answer within {:?}; {advice}",
                        self.patience
                    )));
                }
                Err(error) => return Err(NotUsed::Refused(format!("cannot wait for {CLIENT}: {error}"))),
            }
        }
    }
}

/// Returns a variable of the environment, unless it is empty.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the cache folders of the client (debuginfod-find(1)): those of this user, and of the user who called sudo.
pub(crate) fn caches() -> Vec<PathBuf> {
    if let Some(chosen) = set("DEBUGINFOD_CACHE_PATH") {
        return vec![chosen.into()];
    }
    let base = set("XDG_CACHE_HOME").map(|base| PathBuf::from(base).join("debuginfod_client"));
    let mut caches = Vec::from_iter(base);
    let invoking = User::invoking().ok().flatten().and_then(|user| user.home);
    let homes = env::var_os("HOME").into_iter().chain(invoking.map(OsString::from));
    for home in homes.map(PathBuf::from) {
        caches.push(home.join(".cache/debuginfod_client"));
        caches.push(home.join(".debuginfod_client_cache"));
    }
    caches.dedup();
    caches
}
