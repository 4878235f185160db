//! Long text on a terminal, through the user's pager.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
    process::{Command, Stdio},
};

use crate::say;

/// What shows a text that is longer than the terminal.
#[derive(Debug, PartialEq)]
struct Pager {
    /// A command for the shell.
    command: OsString,
    /// Whether it may not run other programs or open other files.
    is_confined: bool,
}

/// Writes text to standard output: if that is a terminal with fewer lines, through `TRACER_PAGER`, `PAGER` or `less`.
///
/// # Errors
/// If the text can't be written. A reader that is gone is not an error.
pub fn print(text: &[u8], use_pager: bool) -> anyhow::Result<()> {
    let out = io::stdout();
    let rows = rustix::termios::tcgetwinsize(&out).map_or(0, |size| usize::from(size.ws_row));
    let lines = text.iter().filter(|&&byte| byte == b'\n').count();
    // One line is for the prompt of the shell.
    let is_long = out.is_terminal() && rows > 0 && lines >= rows;
    let pager = (use_pager && is_long)
        .then(|| pager(|name| std::env::var_os(name), rustix::process::geteuid().is_root()))
        .flatten();
    if let Some(pager) = pager
        && through(&pager, text).is_ok()
    {
        return Ok(());
    }
    let mut out = out.lock();
    let written = out.write_all(text).and_then(|()| out.flush());
    say::unless_gone(written.map_err(Into::into))
}

/// Returns the pager that the user chose. Behind sudo, variables of the user name no program that root runs.
fn pager(variable: impl Fn(&str) -> Option<OsString>, is_root: bool) -> Option<Pager> {
    let is_confined = is_root && variable("SUDO_UID").is_some();
    let chosen = ["TRACER_PAGER", "PAGER"].into_iter().find_map(&variable);
    let command = chosen.filter(|_| !is_confined).unwrap_or_else(|| "less".into());
    (!command.is_empty() && command != "cat").then_some(Pager { command, is_confined })
}

/// Passes the text to the pager, and waits until the user leaves it. An error says that the pager did not start.
fn through(pager: &Pager, text: &[u8]) -> io::Result<()> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(&pager.command).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() || pager.is_confined {
        // End where the text fits, pass colours on, and leave the text on the screen.
        command.env("LESS", "FRX");
    }
    if pager.is_confined {
        command.env("LESSSECURE", "1").env_remove("LESSOPEN");
    }
    let mut child = command.spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // The user may leave before the end of the text.
        let _ = input.write_all(text);
    }
    // The shell returns 127 if there is no such program.
    match child.wait()?.code() {
        Some(127) => Err(io::ErrorKind::NotFound.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], is_root: bool) -> Option<(String, bool)> {
        let value = |name: &str| {
            let mut known = variables.iter();
            known.find(|(known, _)| *known == name).map(|(_, value)| value.into())
        };
        let pager = pager(value, is_root)?;
        Some((pager.command.into_string().expect("text"), pager.is_confined))
    }

    #[test]
    fn the_user_chooses_the_pager_and_can_have_none() {
        let is = |name: &str, confined| Some((name.to_owned(), confined));
        assert_eq!(chosen(&[], false), is("less", false));
        assert_eq!(chosen(&[("PAGER", "most -w")], false), is("most -w", false));
        assert_eq!(
            chosen(&[("PAGER", "most"), ("TRACER_PAGER", "more")], true),
            is("more", false)
        );
        assert_eq!(chosen(&[("PAGER", "cat")], false), None);
        assert_eq!(chosen(&[("TRACER_PAGER", ""), ("PAGER", "most")], false), None);
    }

    #[test]
    fn behind_sudo_no_variable_names_a_program() {
        let sudo = [("PAGER", "touch /tmp/x"), ("SUDO_UID", "1000")];
        assert_eq!(chosen(&sudo, true), Some(("less".to_owned(), true)));
        assert_eq!(chosen(&sudo, false), Some(("touch /tmp/x".to_owned(), false)));
    }
}
