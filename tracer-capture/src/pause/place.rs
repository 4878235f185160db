//! The place where a thread stands, by `/proc/PID/task/TID/syscall`: the system call's number and its six arguments in hexadecimal,
//! the stack pointer and the program counter; `-1` and these two outside of calls; or `running`.

use std::fs;

use tracer_common::{kfd, pause::place};

/// The maximum distance of the stack pointer below its place at the probe: the probed instruction, which runs before the thread
/// stops, may make a frame; and the kernel's own code around a probe of a function's return keeps some words there.
const DEEPER: u64 = 4096;
/// The maximum distance of the stack pointer above its place at the probe: a return takes one word.
const HIGHER: u64 = 64;

/// The result of comparing a thread's place with its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// The thread stands at the place in its entry.
    There,
    /// The thread is somewhere else.
    Elsewhere,
    /// The thread runs at this moment, or no descriptor is left for the check.
    Unknown,
}

/// Returns whether the thread, which is stopped, stands at `place`. If the kernel does not say (no right to ask, or a kernel
/// without this file), the thread counts as standing there: a process that stays stopped is the greater harm.
pub fn of_thread(pid: u32, tid: u32, place: u64) -> Stand {
    match fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")) {
        Ok(text) => stand(&text, place),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)) => {
            Stand::Unknown
        }
        Err(_) => Stand::There,
    }
}

fn stand(text: &str, place: u64) -> Stand {
    if place == place::ANYWHERE {
        return Stand::There;
    }
    let mut words = text.split_whitespace();
    let Some(Ok(number)) = words.next().map(str::parse::<i64>) else {
        return Stand::Unknown;
    };
    let values: Vec<u64> = words
        .map_while(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok())
        .collect();
    let there = if place & place::SYSCALL == 0 {
        let near = place.saturating_sub(DEEPER)..=place.saturating_add(HIGHER);
        number == -1 && values.first().is_some_and(|stack| near.contains(stack))
    } else {
        let call = (place & !place::SYSCALL) as i64;
        number == call && is_expected(call, &values)
    };
    if there { Stand::There } else { Stand::Elsewhere }
}

/// Returns whether these are arguments of a call at whose end a program pauses: the call maps something to execute, or is a
/// process's first ioctl of the KFD.
fn is_expected(call: i64, arguments: &[u64]) -> bool {
    match call {
        libc::SYS_mmap => arguments.get(2).is_some_and(|bits| bits & libc::PROT_EXEC as u64 != 0),
        // libc may sign-extend the command.
        libc::SYS_ioctl => arguments.get(1).is_some_and(|&command| kfd::begins(command as u32)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MMAP: u64 = place::syscall(libc::SYS_mmap as u32);
    const IOCTL: u64 = place::syscall(libc::SYS_ioctl as u32);

    #[test]
    fn only_executable_mappings_are_places_of_mmap() {
        let there = "9 0x7f0000000000 0x1000 0x5 0x812 0x3 0x2000 0x7ffd 0x7f01\n";
        assert_eq!(stand(there, MMAP), Stand::There);
        for elsewhere in [
            "9 0x7f0000000000 0x1000 0x1 0x812 0x3 0x2000 0x7ffd 0x7f01\n",
            "10 0x7f0000000000 0x1000 0x5 0x812 0x3 0x2000 0x7ffd 0x7f01\n",
            "-1 0x7ffd 0x7f01\n",
            "9\n",
        ] {
            assert_eq!(stand(elsewhere, MMAP), Stand::Elsewhere, "{elsewhere}");
        }
        for unknown in ["running\n", ""] {
            assert_eq!(stand(unknown, MMAP), Stand::Unknown, "{unknown}");
        }
    }

    #[test]
    fn only_the_first_use_of_the_kfd_is_a_place_of_ioctl() {
        // GET_VERSION, sign-extended; WAIT_EVENTS; a console's KDGETMODE.
        let there = "16 0x3 0xffffffff80084b01 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n";
        assert_eq!(stand(there, IOCTL), Stand::There);
        for elsewhere in [
            "16 0x3 0xc0184b0c 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n",
            "16 0x0 0x4b3b 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n",
            "9 0x3 0x80084b01 0x7ffd 0x0 0x0 0x0 0x7ffd 0x7f01\n",
        ] {
            assert_eq!(stand(elsewhere, IOCTL), Stand::Elsewhere, "{elsewhere}");
        }
    }

    #[test]
    fn a_thread_that_the_recorder_stopped_may_stand_anywhere() {
        for text in [
            "running\n",
            "-1 0x7ffd1000 0x7f01\n",
            "202 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffd1008 0x7f01\n",
        ] {
            assert_eq!(stand(text, place::ANYWHERE), Stand::There, "{text}");
        }
    }

    #[test]
    fn in_user_space_the_stack_says_where() {
        let probe = place::stack(0x7ffd_1008);
        assert_eq!(stand("-1 0x7ffd1000 0x7f01\n", probe), Stand::There);
        // Linux 6.18 stops a thread at the return of a function in its trampoline, three words deeper.
        assert_eq!(stand("-1 0x7ffd0ff0 0x7fffffffe00d\n", probe), Stand::There);
        assert_eq!(stand("-1 0x7ffc0f00 0x7f01\n", probe), Stand::Elsewhere);
        assert_eq!(stand("-1 0x7ffd2000 0x7f01\n", probe), Stand::Elsewhere);
        assert_eq!(
            stand("202 0x0 0x0 0x0 0x0 0x0 0x0 0x7ffd1008 0x7f01\n", probe),
            Stand::Elsewhere
        );
    }
}
