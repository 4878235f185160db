//! Formatting of the queues' observations. Written by hand, because at half a million packets a second this is most of the log's
//! work.

use serde_json::Value;

use super::Seen;
use crate::aql::packet::{Packet, RawPacket};

/// Appends a line for each observation.
pub fn push_batch(text: &mut Vec<u8>, pid: i32, queue_id: u32, seen: &[Seen]) {
    for seen in seen {
        match seen {
            Seen::Doorbell { time_ns, value } => {
                begin(text, "doorbell", pid, queue_id);
                field(text, "value", *value);
                end(text, *time_ns);
            }
            Seen::Sdma {
                time_ns,
                op,
                src,
                dst,
                bytes,
                offset,
            } => {
                begin(text, "sdma", pid, queue_id);
                string(text, "op", op);
                field(text, "src", *src);
                field(text, "dst", *dst);
                field(text, "bytes", *bytes);
                field(text, "offset", *offset);
                end(text, *time_ns);
            }
            Seen::Pm4 {
                time_ns,
                op,
                address,
                offset,
                buffer,
                dispatch,
            } => {
                begin(text, "pm4", pid, queue_id);
                string(text, "op", op);
                field(text, "address", *address);
                field(text, "buffer", *buffer);
                field(text, "offset", *offset);
                if let Some((program, groups, threads)) = dispatch {
                    field(text, "program", *program);
                    array(text, "groups", groups.map(u64::from));
                    array(text, "threads", threads.map(u64::from));
                }
                end(text, *time_ns);
            }
            Seen::Timed {
                time_ns,
                index,
                start,
                end: ended,
            } => {
                begin(text, "timed", pid, queue_id);
                field(text, "index", *index);
                field(text, "start_ticks", *start);
                field(text, "end_ticks", *ended);
                end(text, *time_ns);
            }
            Seen::Kernel {
                time_ns,
                index,
                kernel_object,
                name: kernel,
            } => {
                begin(text, "kernel", pid, queue_id);
                field(text, "index", *index);
                field(text, "kernel_object", *kernel_object);
                name(text, "name");
                // The client chose it: any character may be in it.
                text.extend_from_slice(Value::from(kernel.as_str()).to_string().as_bytes());
                end(text, *time_ns);
            }
            Seen::Packet { time_ns, index, bytes } => {
                begin(text, "packet", pid, queue_id);
                field(text, "index", *index);
                packet(text, bytes);
                end(text, *time_ns);
            }
        }
    }
}

fn begin(text: &mut Vec<u8>, event: &str, pid: i32, queue_id: u32) {
    text.extend_from_slice(b"{\"ev\":\"");
    text.extend_from_slice(event.as_bytes());
    text.push(b'"');
    field(text, "pid", pid.unsigned_abs().into());
    field(text, "queue_id", queue_id.into());
}

fn end(text: &mut Vec<u8>, time_ns: u64) {
    field(text, "time_ns", time_ns);
    text.extend_from_slice(b"}\n");
}

fn packet(text: &mut Vec<u8>, bytes: &RawPacket) {
    name(text, "bytes");
    text.push(b'"');
    push_hex(text, bytes);
    text.push(b'"');
    let packet = Packet::decode(bytes);
    string(text, "kind", packet.kind());
    if let Packet::KernelDispatch(dispatch) | Packet::ExtKernelDispatch { dispatch, .. } = &packet {
        field(text, "kernel_object", dispatch.kernel_object);
        field(text, "kernarg_address", dispatch.kernarg_address);
        array(text, "grid", dispatch.grid.map(u64::from));
        array(text, "workgroup", dispatch.workgroup.map(u64::from));
    }
    field(text, "completion_signal", packet.completion_signal().unwrap_or(0));
}

fn name(text: &mut Vec<u8>, name: &str) {
    text.extend_from_slice(b",\"");
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"\":");
}

fn field(text: &mut Vec<u8>, key: &str, value: u64) {
    name(text, key);
    push_number(text, value);
}

fn string(text: &mut Vec<u8>, key: &str, value: &str) {
    name(text, key);
    text.push(b'"');
    text.extend_from_slice(value.as_bytes());
    text.push(b'"');
}

fn array(text: &mut Vec<u8>, key: &str, values: [u64; 3]) {
    name(text, key);
    for (at, value) in values.into_iter().enumerate() {
        text.push(if at == 0 { b'[' } else { b',' });
        push_number(text, value);
    }
    text.push(b']');
}

fn push_number(text: &mut Vec<u8>, value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// Appends bytes as lower-case hex.
fn push_hex(text: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let start = text.len();
    text.resize(start + 2 * bytes.len(), 0);
    for (pair, &byte) in text[start..].as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
}

/// Returns bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    push_hex(&mut text, bytes);
    text.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_hex() {
        let mut text = Vec::new();
        for value in [0, 7, 10, u64::MAX] {
            push_number(&mut text, value);
            text.push(b' ');
        }
        assert_eq!(text, b"0 7 10 18446744073709551615 ");
        assert_eq!(hex(&[0, 0x1f, 0xa0]), "001fa0");
    }
}
