//! An ioctl's argument as text: `op=create ip_type=compute queue_size=4096 -> queue_id=3`.

use std::fmt::Write as _;

use tracer_common::ioctl_args::{Field, Form, layout};

use crate::event::Ioctl;

/// Returns the named fields, with results after an arrow; `None` for a command of unknown layout, or an argument that could not be
/// read.
///
/// Only a successful call has results: in a union, a failed call leaves its inputs at the place of the results.
pub(super) fn text(event: &Ioctl<'_>) -> Option<String> {
    let layout = layout(event.cmd)?;
    let mut text = fields(layout.input, event.arg_in?);
    let results = event.arg_out.filter(|_| event.ret.is_some_and(|ret| ret >= 0));
    let results = results.map(|bytes| fields(layout.output, bytes)).unwrap_or_default();
    if !results.is_empty() {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}-> {results}");
    }
    Some(text)
}

/// Formats the fields that the argument contains. Callers built for another kernel version have shorter arguments.
fn fields(fields: &[Field], bytes: &[u8]) -> String {
    let one = |field: &Field| value(field, bytes).map(|value| format!("{}={value}", field.name));
    fields.iter().filter_map(one).collect::<Vec<_>>().join(" ")
}

fn value(field: &Field, bytes: &[u8]) -> Option<String> {
    let bytes = bytes.get(field.offset..)?;
    let short = || bytes.first_chunk().map(|b| u32::from_le_bytes(*b));
    let long = || bytes.first_chunk().map(|b| u64::from_le_bytes(*b));
    Some(match field.form {
        Form::U32 => short()?.to_string(),
        Form::I32 => short()?.cast_signed().to_string(),
        Form::U64 => long()?.to_string(),
        Form::Bits32 => format!("{:#x}", short()?),
        Form::Bits64 => format!("{:#x}", long()?),
        Form::Word(word) => {
            let number = short()?;
            word(number).map_or_else(|| number.to_string(), str::to_owned)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Origin;

    const CS: u32 = 0xc018_6444;
    const USERQ: u32 = 0xc048_6456;

    fn call<'a>(cmd: u32, ret: Option<i64>, arg_in: Option<&'a [u8]>, arg_out: Option<&'a [u8]>) -> Ioctl<'a> {
        Ioctl {
            origin: Origin::default(),
            exit_ns: 1,
            fd: 3,
            cmd,
            ret,
            arg_in,
            arg_out,
        }
    }

    /// Returns a `union drm_amdgpu_cs`: ctx_id, bo_list_handle, num_chunks, flags, chunks.
    fn cs() -> Vec<u8> {
        let mut bytes: Vec<u8> = [7_u32, 9, 3, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend_from_slice(&0x7f00_0000_1000_u64.to_le_bytes());
        bytes
    }

    const CS_IN: &str = "ctx_id=7 bo_list_handle=9 num_chunks=3 flags=0x0 chunks=0x7f0000001000";

    #[test]
    fn a_submission_has_the_handle_that_it_received() {
        let (bytes, mut out) = (cs(), cs());
        out[..8].copy_from_slice(&42_u64.to_le_bytes());
        let done = text(&call(CS, Some(0), Some(&bytes), Some(&out)));
        assert_eq!(done.as_deref(), Some(format!("{CS_IN} -> handle=42").as_str()));
    }

    /// In the union, the inputs are still at the place of the result.
    #[test]
    fn a_call_that_failed_or_never_returned_has_no_results() {
        let bytes = cs();
        for ret in [Some(-22), None] {
            assert_eq!(text(&call(CS, ret, Some(&bytes), Some(&bytes))).as_deref(), Some(CS_IN));
        }
        assert_eq!(text(&call(CS, Some(0), Some(&bytes), None)).as_deref(), Some(CS_IN));
    }

    #[test]
    fn user_queue_operations_have_names() {
        let mut bytes = vec![0_u8; 72];
        for (at, word) in [(0, 1_u32), (8, 1), (12, 5), (16, 8)] {
            bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        }
        for (at, word) in [
            (24, 0x10_0000_u64),
            (32, 4096),
            (40, 0x1000),
            (48, 0x2000),
            (56, 0x3000),
            (64, 16),
        ] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let mut out = bytes.clone();
        out[..4].copy_from_slice(&3_u32.to_le_bytes());
        let made = text(&call(USERQ, Some(0), Some(&bytes), Some(&out))).unwrap();
        assert_eq!(
            made,
            "op=create queue_id=0 ip_type=compute doorbell_handle=5 doorbell_offset=8 flags=0x0 queue_va=0x100000 \
             queue_size=4096 rptr_va=0x1000 wptr_va=0x2000 mqd=0x3000 mqd_size=16 -> queue_id=3"
        );
        // Numbers that the header does not define stay numbers.
        bytes[0] = 9;
        bytes[8] = 200;
        let odd = text(&call(USERQ, Some(-22), Some(&bytes), None)).unwrap();
        assert!(odd.starts_with("op=9 queue_id=0 ip_type=200 "), "{odd}");
    }

    #[test]
    fn absent_arguments_are_left_out() {
        let bytes = cs();
        // The shorter argument of an older caller, cut within a field.
        let short = text(&call(0xc00e_6444, Some(-22), Some(&bytes[..14]), None));
        assert_eq!(short.as_deref(), Some("ctx_id=7 bo_list_handle=9 num_chunks=3"));
        assert_eq!(text(&call(CS, Some(-14), None, None)), None, "unreadable");
        assert_eq!(text(&call(0xc018_64ff, Some(0), Some(&bytes), None)), None, "no layout");
        assert_eq!(text(&call(0x5401, Some(0), Some(&bytes), None)), None, "another device");
    }

    #[test]
    fn results_alone_stand_behind_the_arrow() {
        let version = [1, 0, 0, 0, 18, 0, 0, 0];
        let told = text(&call(0x8008_4b01, Some(0), Some(&[0; 8]), Some(&version)));
        assert_eq!(told.as_deref(), Some("-> major_version=1 minor_version=18"));
    }
}
