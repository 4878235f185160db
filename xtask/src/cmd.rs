//! Running other programs: commands are shown, and failed commands are named.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

/// Shows and runs a command with this program's own output, and waits for success.
pub fn run(command: &mut Command) -> Result<()> {
    eprintln!("$ {}", render(command));
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", program(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", render(command));
    }
    Ok(())
}

/// Runs a command quietly and returns its standard output. Its error messages appear only in the error.
pub fn read(command: &mut Command) -> Result<String> {
    let stdout = read_bytes(command)?;
    String::from_utf8(stdout).with_context(|| format!("`{}` printed something else than text", program(command)))
}

/// Runs a command quietly and returns the bytes of its standard output.
pub fn read_bytes(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{}`", program(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` failed ({}): {}", render(command), output.status, complaint.trim());
    }
    Ok(output.stdout)
}

/// Interval at which a program with a time limit is checked for its exit.
const POLL: Duration = Duration::from_millis(20);

/// Shows and runs a command whose output goes to the file `output`, and waits for success, at most for `limit`.
///
/// The command runs in its own process group. A command that takes longer is killed with its whole group. The output goes to a file
/// and not through a pipe: a process that left the group and keeps its end of a pipe open would make this function wait.
pub fn run_within(command: &mut Command, limit: Duration, output: &Path) -> Result<()> {
    eprintln!("$ {}", render(command));
    let file = fs::File::create(output).with_context(|| format!("cannot create {}", output.display()))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start `{}`", program(command)))?;
    let Some(status) = wait_within(&mut child, limit)? else {
        // The child has not been waited for, so no other process can have its id or its group's id yet.
        let group = Pid::from_child(&child);
        kill_process_group(group, Signal::KILL).context("cannot kill a process group")?;
        child.wait().context("cannot wait for a killed program")?;
        bail!("`{}` did not end within {} s", render(command), limit.as_secs_f32());
    };
    if !status.success() {
        let complaint = fs::read(output).unwrap_or_default();
        let complaint = String::from_utf8_lossy(&complaint);
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        bail!(
            "`{}` failed ({status}): {}",
            render(command),
            last.unwrap_or_default().trim()
        );
    }
    Ok(())
}

/// Waits for a program. Returns `None` if it still runs after `limit`.
fn wait_within(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        let ended = child.try_wait().context("cannot wait for a program")?;
        if ended.is_some() || started.elapsed() >= limit {
            return Ok(ended);
        }
        thread::sleep(POLL);
    }
}

/// Finds a program on the search path.
pub fn find(name: &str) -> Option<PathBuf> {
    let paths = env::var_os("PATH")?;
    env::split_paths(&paths)
        .map(|dir| dir.join(name))
        .find(|file| is_executable(file))
}

/// Fails with `remedy` unless the program is on the search path.
pub fn require(name: &str, remedy: &str) -> Result<()> {
    if find(name).is_none() {
        bail!("`{name}` is not installed: {remedy}");
    }
    Ok(())
}

/// Returns whether a file exists and is executable.
pub fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Returns whether this program runs as root.
pub fn is_root() -> Result<bool> {
    let own = fs::metadata("/proc/self").context("cannot read /proc/self to learn the user id")?;
    Ok(own.uid() == 0)
}

/// Removes a folder or a file, which may be missing.
pub fn remove_all(path: &Path) -> Result<()> {
    let removed = if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {0}: run `sudo rm -r {0}`", path.display()))
        }
        _ => Ok(()),
    }
}

fn program(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

/// Formats the command as a shell would take it, including the variables that were set.
fn render(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        let value = value?;
        // A whole search path is not useful to the reader, nor is the target folder, which is always set.
        let known = name == "PATH" || name == "CARGO_TARGET_DIR";
        (!known).then(|| format!("{}={}", name.to_string_lossy(), shell_quote(&value.to_string_lossy())))
    });
    // The path of cargo is not shown if it is the cargo that runs this program.
    let is_cargo = env::var_os("CARGO").is_some_and(|cargo| cargo == command.get_program());
    let name = if is_cargo {
        OsStr::new("cargo")
    } else {
        command.get_program()
    };
    let words = std::iter::once(name).chain(command.get_args());
    let words = words.map(|word| shell_quote(&word.to_string_lossy()));
    variables.chain(words).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a POSIX shell if necessary.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(shell_quote("-Ctarget-cpu=gfx1100"), "-Ctarget-cpu=gfx1100");
        assert_eq!(shell_quote("it's two"), r"'it'\''s two'");
        assert_eq!(shell_quote(""), "''");
    }

    #[test]
    fn commands_are_shown_with_their_variables() {
        let mut command = Command::new("cargo");
        command
            .arg("build")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("PATH", "/bin")
            .env_remove("RUSTFLAGS");
        assert_eq!(render(&command), "RUSTC_BOOTSTRAP=1 cargo build");
    }

    #[test]
    fn failures_name_the_command_and_its_complaint() {
        let error = read(Command::new("sh").args(["-c", "echo no such thing >&2; exit 3"]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("exit status: 3") && error.ends_with("no such thing"),
            "{error}"
        );
    }
}
