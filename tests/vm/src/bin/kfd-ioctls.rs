//! Makes ioctls to the real /dev/kfd and prints the result of each. A tracer of ioctls must have seen the same.
//!
//! Layouts and numbers are those of `include/uapi/linux/kfd_ioctl.h`. Without a GPU, the results are those in the README of
//! `tests/vm`. This program only prints, and checks nothing.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::process::ExitCode;

use serde_json::{Value, json};

/// The device of AMD's compute driver.
const DEVICE: &str = "/dev/kfd";

/// `_IOC_READ` and `_IOC_WRITE`.
const READ: u32 = 2;
const WRITE: u32 = 1;

/// Returns an ioctl number of type 'K'.
const fn number(direction: u32, nr: u32, size: u32) -> u32 {
    direction << 30 | size << 16 | (b'K' as u32) << 8 | nr
}

/// Name, number, argument, and the bytes that the driver fills in.
struct Call {
    name: &'static str,
    cmd: u32,
    argument: Argument,
}

/// The target of the third argument of an ioctl.
enum Argument {
    /// A structure with these words at these byte offsets. The rest is zero.
    Words(&'static [(usize, u32)]),
    /// An address at which nothing is mapped.
    Bad,
}

/// First the calls that succeed without a GPU, then one for each error.
const CALLS: [Call; 7] = [
    // major_version, minor_version
    Call {
        name: "GET_VERSION",
        cmd: number(READ, 0x01, 8),
        argument: Argument::Words(&[]),
    },
    // `gpu_clock_counter`, `cpu_clock_counter`, `system_clock_counter`, `system_clock_freq`, `gpu_id`: an unknown GPU is not an
    // error
    Call {
        name: "GET_CLOCK_COUNTERS",
        cmd: number(READ | WRITE, 0x05, 40),
        argument: Argument::Words(&[]),
    },
    // `event_type` at 12: 0, a signal; `auto_reset` at 16
    Call {
        name: "CREATE_EVENT",
        cmd: number(READ | WRITE, 0x08, 32),
        argument: Argument::Words(&[(16, 1)]),
    },
    // An AQL queue of 4096 bytes on a GPU whose id, at offset 36, does not exist (EINVAL).
    Call {
        name: "CREATE_QUEUE",
        cmd: number(READ | WRITE, 0x02, 88),
        argument: Argument::Words(&[(32, 4096), (36, 0xbad), (40, 2), (44, 100), (48, 7)]),
    },
    // There is no such queue (EINVAL).
    Call {
        name: "DESTROY_QUEUE",
        cmd: number(READ | WRITE, 0x03, 8),
        argument: Argument::Words(&[(0, 77)]),
    },
    // The highest number, which the driver does not define (ENOTTY).
    Call {
        name: "UNKNOWN",
        cmd: number(READ | WRITE, 0xff, 8),
        argument: Argument::Words(&[]),
    },
    // EFAULT
    Call {
        name: "GET_CLOCK_COUNTERS",
        cmd: number(READ | WRITE, 0x05, 40),
        argument: Argument::Bad,
    },
];

fn main() -> ExitCode {
    let device = match File::options().read(true).write(true).open(DEVICE) {
        Ok(device) => device,
        Err(error) => {
            println!(
                "{}",
                json!({"pid": std::process::id(), "open": errno(&error), "ioctls": []})
            );
            return ExitCode::from(2);
        }
    };
    let ioctls: Vec<Value> = CALLS.iter().map(|call| make(device.as_raw_fd(), call)).collect();
    println!("{}", json!({"pid": std::process::id(), "open": 0, "ioctls": ioctls}));
    ExitCode::SUCCESS
}

/// Makes one call. `ret` is 0 or the negated errno; `out` is the argument's bytes afterwards.
fn make(device: RawFd, call: &Call) -> Value {
    let mut bytes = [0_u8; 128];
    let size = (call.cmd >> 16 & 0x3fff) as usize;
    let address = match call.argument {
        Argument::Words(words) => {
            for (offset, word) in words {
                bytes[*offset..offset + 4].copy_from_slice(&word.to_ne_bytes());
            }
            bytes.as_mut_ptr()
        }
        Argument::Bad => std::ptr::without_provenance_mut(8),
    };
    // SAFETY: the driver writes at most the `size` bytes that the number specifies, and the buffer is larger than all of them; the
    // bad address is below the lowest that can be mapped, so that the driver cannot write there.
    let status = unsafe { libc::ioctl(device, libc::Ioctl::from(call.cmd), address) };
    let ret = if status == 0 {
        0
    } else {
        -errno(&io::Error::last_os_error())
    };
    let out: String = bytes[..size].iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"name": call.name, "nr": call.cmd & 0xff, "cmd": call.cmd, "ret": ret, "out": out})
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or_default()
}
