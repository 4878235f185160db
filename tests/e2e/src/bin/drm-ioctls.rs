//! Makes amdgpu's ioctls on a render node, and prints the result of each. A tracer of ioctls must have seen the same.
//!
//! Numbers and layouts are those of `include/uapi/drm/amdgpu_drm.h`, repeated here independently. This program checks nothing.

use std::{
    fs::File,
    io,
    os::fd::{AsRawFd, RawFd},
    process::ExitCode,
};

use serde_json::{Value, json};

/// A call: a name, the command, and its argument as 4-byte words (8-byte fields take two, the low one first).
struct Call {
    name: &'static str,
    cmd: u32,
    words: &'static [u32],
}

/// Encodes `DRM_IOWR` and `DRM_IOW` of type 'd'.
const fn command(direction: u32, nr: u32, size: u32) -> u32 {
    direction << 30 | size << 16 | (b'd' as u32) << 8 | nr
}
const READ_WRITE: u32 = 3;
const WRITE: u32 = 1;

const CALLS: [Call; 6] = [
    // union drm_amdgpu_ctx: op ALLOC_CTX, flags, ctx_id, priority -1023 (very low)
    Call {
        name: "AMDGPU_CTX",
        cmd: command(READ_WRITE, 0x42, 16),
        words: &[1, 0, 0, 0xffff_fc01],
    },
    // union drm_amdgpu_cs: ctx_id, bo_list_handle, num_chunks, flags, chunks
    Call {
        name: "AMDGPU_CS",
        cmd: command(READ_WRITE, 0x44, 24),
        words: &[7, 9, 3, 0, 0x1000, 0x7f00],
    },
    // union drm_amdgpu_userq: op CREATE, queue_id, ip_type COMPUTE, doorbell_handle, doorbell_offset, flags; then of 8
    // bytes queue_va, queue_size, rptr_va, wptr_va, mqd, mqd_size
    Call {
        name: "AMDGPU_USERQ",
        cmd: command(READ_WRITE, 0x56, 72),
        words: &[
            1, 0, 1, 5, 8, 0, 0x10_0000, 1, 4096, 0, 0x1000, 2, 0x1008, 2, 0x3000, 3, 16, 0,
        ],
    },
    // The same, op FREE, queue_id 3
    Call {
        name: "AMDGPU_USERQ",
        cmd: command(READ_WRITE, 0x56, 72),
        words: &[2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    },
    // struct drm_amdgpu_info: return_pointer (8 bytes, filled in by `make`), return_size, query ACCEL_WORKING
    Call {
        name: "AMDGPU_INFO",
        cmd: command(WRITE, 0x45, 32),
        words: &[0, 0, 4, 0, 0, 0, 0, 0],
    },
    // A number that the header does not define.
    Call {
        name: "nr-0x7f",
        cmd: command(READ_WRITE, 0x7f, 8),
        words: &[1, 2],
    },
];

fn main() -> ExitCode {
    let device = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "/dev/dri/renderD128".to_owned());
    let file = match File::options().read(true).write(true).open(&device) {
        Ok(file) => file,
        Err(error) => {
            eprintln!("drm-ioctls: {device}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let calls: Vec<Value> = CALLS.iter().map(|call| make(file.as_raw_fd(), call)).collect();
    println!(
        "{}",
        json!({"pid": std::process::id(), "fd": file.as_raw_fd(), "ioctls": calls})
    );
    ExitCode::SUCCESS
}

fn make(device: RawFd, call: &Call) -> Value {
    let mut words = [0_u32; 32];
    words[..call.words.len()].copy_from_slice(call.words);
    let mut answer = [0_u32; 1];
    if call.name == "AMDGPU_INFO" {
        let pointer = answer.as_mut_ptr() as u64;
        words[..2].copy_from_slice(&[pointer as u32, (pointer >> 32) as u32]);
    }
    // SAFETY: the device reads and writes at most the bytes that the command specifies, fewer than the buffer has, and the 4 bytes
    // of the result that AMDGPU_INFO points to; the other pointers in the arguments are not followed.
    let status = unsafe { libc::ioctl(device, libc::Ioctl::from(call.cmd), words.as_mut_ptr()) };
    let error = io::Error::last_os_error().raw_os_error().unwrap_or_default();
    let ret = if status >= 0 { status } else { -error };
    json!({"name": call.name, "cmd": call.cmd, "ret": ret})
}
