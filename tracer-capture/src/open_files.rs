//! How many files this process may have open: on kernels that place probes one by one each of them is a file, and the usual
//! limit of 1024 is reached with the API functions of two copies of the libraries.

use std::{io, sync::OnceLock};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What the limit was.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Allows this process what it may allow itself.
pub fn allow_all() {
    let before = BEFORE.get_or_init(|| getrlimit(Resource::Nofile));
    let all = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    // It may always be raised that far; and if not, a probe that finds no room says so.
    let _ = setrlimit(Resource::Nofile, all);
}

/// The limit that a command is to have: the recorder's is none of its business, and programs that use `select` rely on it.
#[derive(Clone, Copy)]
pub struct OfCommand(Option<Rlimit>);

impl OfCommand {
    /// As it was before [`allow_all`].
    pub fn now() -> Self {
        Self(BEFORE.get().copied())
    }

    /// Gives it to the calling process. One system call, no memory: also between fork and exec.
    pub fn assume(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |limit| Ok(setrlimit(Resource::Nofile, limit)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_the_limit_that_was_there_before() {
        let before = getrlimit(Resource::Nofile);
        allow_all();
        assert_eq!(getrlimit(Resource::Nofile).current, before.maximum);
        OfCommand::now().assume().expect("it is lower");
        assert_eq!(getrlimit(Resource::Nofile), before);
    }
}
