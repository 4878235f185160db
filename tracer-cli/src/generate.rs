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
    use std::fmt::Write as _;

    use super::*;

    /// The columns of the help in the page of commands.
    const WIDTH: usize = 80;

    /// Returns the page of the book that has every command with its help.
    fn page() -> String {
        let mut page =
            "# Commands and options\n\nThe help of each command, as `tracer COMMAND --help` prints it. A test \
                        writes this page from the\ndefinition of the command line: \
                        `UPDATE_DOCS=1 cargo test -p tracer-cli page_of_commands`.\n"
                .to_owned();
        let mut all = Cli::command().term_width(WIDTH);
        all.build();
        let names = all.get_subcommands().filter(|command| !command.is_hide_set());
        let names: Vec<_> = names.map(|command| command.get_name().to_owned()).collect();
        let mut write = |name: &str, command: &mut clap::Command| {
            let help = command.render_long_help().to_string();
            let lines: Vec<_> = help.trim_end().lines().map(str::trim_end).collect();
            writeln!(page, "\n## {name}\n```text\n{}\n```", lines.join("\n")).expect("a string takes everything");
        };
        write("tracer", &mut all);
        for name in names.iter().filter(|name| *name != "help") {
            let command = all.find_subcommand_mut(name).expect("it is one of them");
            let mut command = command.clone().term_width(WIDTH);
            write(&format!("tracer {name}"), &mut command);
        }
        page
    }

    #[test]
    fn the_page_of_commands_is_that_of_the_command_line() {
        let expected = page();
        crate::docs::is("commands.md", &expected, "run this test with UPDATE_DOCS=1");
        let wide = expected.lines().skip_while(|line| !line.starts_with("```"));
        let wide: Vec<_> = wide.filter(|line| line.chars().count() > WIDTH).collect();
        assert!(wide.is_empty(), "{wide:#?}");
    }

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
