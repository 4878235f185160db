//! `tracer generate`: writes man pages and completions, generated from the definition of the command line.

use std::{fs, path::Path, process::ExitCode};

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;

/// Paths below `share` where shells search for completions.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/tracer"),
    (Shell::Zsh, "zsh/site-functions/_tracer"),
    (Shell::Fish, "fish/vendor_completions.d/tracer.fish"),
];

/// Writes the man pages and completions below `share`, a folder such as /usr/local/share.
///
/// # Errors
/// Returns an error if a file can't be written.
pub fn run(share: &Path) -> anyhow::Result<ExitCode> {
    let man = share.join("man/man1");
    fs::create_dir_all(&man).with_context(|| format!("cannot create {}", man.display()))?;
    clap_mangen::generate_to(Cli::command(), &man).with_context(|| format!("cannot write {}", man.display()))?;
    for (shell, name) in COMPLETIONS {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "tracer", &mut script);
        let file = share.join(name);
        let written = file.parent().map_or(Ok(()), fs::create_dir_all);
        written
            .and_then(|()| fs::write(&file, script))
            .with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_is_completed() {
        let share = tempfile::tempdir().unwrap();
        run(share.path()).unwrap();
        let read = |name: &str| fs::read_to_string(share.path().join(name)).unwrap();
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        for name in shown.map(clap::Command::get_name) {
            assert!(
                read(&format!("man/man1/tracer-{name}.1")).contains(".SH OPTIONS"),
                "{name}"
            );
            for (_, script) in COMPLETIONS {
                assert!(read(script).contains(name), "{script}: {name}");
            }
        }
        assert!(!share.path().join("man/man1/tracer-generate.1").exists());
    }
}
