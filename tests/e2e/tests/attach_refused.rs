//! Processes that cannot be attached to: the error names the fix, nothing is left behind, and nothing hangs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command},
};

use tracer_e2e::{
    place,
    running::{Recorded, Recorder, state, wait_for},
    scenario::folder,
};

fn refused(pid: u32) -> String {
    let dir = folder();
    let trace = dir.path().join("t");
    let recorded = Recorder::start(&trace, &["-p".into(), pid.to_string()]).wait();
    assert_eq!(recorded.output.status.code(), Some(125), "{}", recorded.said());
    assert!(!trace.exists(), "a trace of nothing was left");
    recorded.said()
}

fn end(mut child: Child) {
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

#[test]
fn an_error_for_a_pid_without_process_names_the_fix() {
    assert!(refused(4_000_000).contains("no such process"));
    if fs::read_to_string("/proc/2/comm").is_ok_and(|comm| comm.trim() == "kthreadd") {
        assert!(refused(2).contains("a thread of the kernel"));
    }
    let mut child = Command::new("/bin/true").spawn().expect("true");
    wait_for("its end", || (state(child.id()) == Some('Z')).then_some(()));
    assert!(refused(child.id()).contains("has ended"));
    child.wait().expect("it ends");
}

/// Writes a 32-bit program that only pauses: `mov eax, 29; int 0x80; jmp`.
fn program_of_32_bits(path: &Path) {
    const BASE: u32 = 0x0804_8000;
    let code = [0xb8, 29, 0, 0, 0, 0xcd, 0x80, 0xeb, 0xf7];
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let half = |file: &mut Vec<u8>, words: &[u16]| words.iter().for_each(|w| file.extend(w.to_le_bytes()));
    let word = |file: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|w| file.extend(w.to_le_bytes()));
    half(&mut file, &[2, 3]);
    word(&mut file, &[1, BASE + 84, 52, 0, 0]);
    half(&mut file, &[52, 32, 1, 0, 0, 0]);
    let size = 84 + code.len() as u32;
    word(&mut file, &[1, 0, BASE, BASE, size, size, 5, 0x1000]);
    file.extend(code);
    fs::write(path, file).expect("it can be written");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it can be made executable");
}

#[test]
fn a_process_of_32_bits_is_refused_with_its_reason() {
    let dir = folder();
    let path = dir.path().join("old");
    program_of_32_bits(&path);
    match Command::new(&path).spawn() {
        Ok(child) => {
            assert!(refused(child.id()).contains("32-bit"));
            end(child);
        }
        Err(error) => println!("skipped: this kernel runs no 32-bit programs ({error})"),
    }
}

/// In the namespace, the process has another id than outside. The error names the id to use.
#[test]
fn the_id_in_a_namespace_is_translated() {
    let child = Command::new("unshare")
        .args(["--pid", "--fork", "/bin/sleep", "1000"])
        .spawn();
    let child = child.expect("unshare, of util-linux");
    let sleeper = wait_for("the sleeper", || {
        tracer_e2e::running::descendants(child.id(), "sleep").first().copied()
    });
    let text = fs::read_to_string(format!("/proc/{sleeper}/status")).expect("it lives");
    let inner = text
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))
        .expect("NSpid");
    let inner = inner.split_whitespace().nth(1).expect("two ids").to_owned();
    // Its id in the namespace is 1, which another process has outside. Nothing shows that another process is meant.
    assert_eq!(inner, "1");
    let dir = folder();
    let recorder = Recorder::attach(&dir.path().join("t"), &[sleeper], &[]);
    let recorded = recorder.interrupt().expect_success();
    assert!(recorded.said().contains("(sleep)"), "{}", recorded.said());
    tracer_e2e::running::signal(sleeper, libc::SIGKILL);
    end(child);
}

#[test]
fn without_rights_the_error_names_the_fix() {
    let dir = folder();
    let mut child = Command::new("/bin/sleep").arg("1000").spawn().expect("sleep");
    let output = place::without_rights()
        .args(["record", "-p", &child.id().to_string(), "-o"])
        .arg(dir.path().join("t"))
        .output()
        .expect("setpriv, of util-linux");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("sudo"), "{said}");
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
}

/// The process may exit before, during or after the attach. There is a trace, or an error that gives the reason.
#[test]
fn a_process_that_ends_meanwhile_does_no_harm() {
    for n in 0..6_u32 {
        let mut child = Command::new("/bin/sleep").arg("1000").spawn().expect("sleep");
        let dir = folder();
        let trace = dir.path().join("t");
        let recorder = Recorder::start(&trace, &["-p".into(), child.id().to_string()]);
        // Attaches at another moment of its start each time.
        std::thread::sleep(std::time::Duration::from_millis(u64::from(n) * 40));
        child.kill().expect("it can be killed");
        child.wait().expect("it ends");
        let recorded: Recorded = recorder.wait();
        let said = recorded.said();
        match recorded.output.status.code() {
            Some(0) => assert!(trace.join("manifest.json").exists(), "{said}"),
            Some(125) => {
                assert!(said.contains("cannot trace"), "{said}");
                assert!(!trace.exists(), "{said}");
            }
            other => panic!("{other:?}: {said}"),
        }
    }
}

#[test]
fn wrong_usage_is_refused_before_anything_runs() {
    for (words, hint) in [
        (vec!["-p", "0"], "0 is not in 1.."),
        (vec!["-p", "1", "--", "/bin/true"], "cannot be used with"),
        (vec!["--duration", "1s", "--", "/bin/true"], "cannot be used with"),
        (vec!["--duration", "1s"], "required"),
        (vec!["-p", "1", "--duration", "1d"], "unit of time"),
        (vec!["-p", "1", "--as-root"], "cannot be used with"),
        (vec![], "required"),
    ] {
        let dir = folder();
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let recorded = Recorder::start(&dir.path().join("t"), &words).wait();
        assert_eq!(recorded.output.status.code(), Some(2), "{words:?}: {}", recorded.said());
        assert!(recorded.said().contains(hint), "{words:?}: {}", recorded.said());
    }
}
