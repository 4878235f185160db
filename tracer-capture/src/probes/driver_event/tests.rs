use std::{fs, io};

use super::*;

/// Reads the real format file of a kernel; the fixtures have the files of running kernels.
fn of_kernel(kernel: &str, event: &str) -> Result<Format, CaptureError> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tracefs");
    match fs::read_to_string(format!("{folder}/{kernel}/{event}.format")) {
        Ok(text) => Format::parse(event, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(CaptureError::NoEvent(event.to_owned())),
        Err(error) => panic!("{event}: {error}"),
    }
}

fn plan(kernel: &str) -> Plan {
    Plan::of(|event| of_kernel(kernel, event))
}

/// Returns the layouts in the order of [`EVENTS`]; `None` for absent events.
fn layouts(plan: &Plan) -> [Option<DriverEventLayout>; 5] {
    plan.layouts
        .each_ref()
        .map(|layout| layout.as_ref().ok().map(|layout| layout.0))
}

const NONE: DriverEventLayout = DriverEventLayout::NONE;

const MOVE: DriverEventLayout = DriverEventLayout {
    bytes: 16,
    new_placement: 24,
    old_placement: 28,
    ..NONE
};

const FLUSH: DriverEventLayout = DriverEventLayout {
    ring: 8,
    vmid: 12,
    ..NONE
};

const CLEANER: DriverEventLayout = DriverEventLayout {
    ring: 8,
    seqno: 16,
    ..NONE
};

#[test]
fn events_before_6_17() {
    let job = DriverEventLayout {
        job_id: 8,
        context: 20,
        seqno: 24,
        fence_bytes: 4,
        ..NONE
    };
    let cs = DriverEventLayout {
        ring: 40,
        ibs: 44,
        ..job
    };
    let run = DriverEventLayout {
        ring: 28,
        ibs: 32,
        ..job
    };
    for (kernel, cleaner) in [
        ("6.1.0-56-amd64", None),
        ("6.12.107+deb13-amd64", None),
        ("6.16.12+deb13-amd64", Some(CLEANER)),
    ] {
        let expected = [Some(cs), Some(run), Some(MOVE), Some(FLUSH), cleaner];
        assert_eq!(layouts(&plan(kernel)), expected, "{kernel}");
    }
}

#[test]
fn events_of_6_17_and_later() {
    let job = DriverEventLayout {
        context: 16,
        seqno: 24,
        fence_bytes: 8,
        ..NONE
    };
    let cs = DriverEventLayout {
        ring: 40,
        ibs: 44,
        ..job
    };
    let run = DriverEventLayout {
        ring: 32,
        ibs: 36,
        ..job
    };
    let expected = [Some(cs), Some(run), Some(MOVE), Some(FLUSH), Some(CLEANER)];
    assert_eq!(layouts(&plan("7.2.13+deb14-amd64")), expected);
}

fn synthetic(fields: &[(&str, u32, u32)]) -> Format {
    let lines: String = fields
        .iter()
        .map(|(declaration, offset, size)| {
            format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
        })
        .collect();
    let text = format!("name: synthetic\nID: 1\nformat:\n{lines}\nprint fmt: \"\"\n");
    Format::parse("synthetic", &text).unwrap()
}

#[test]
fn fields_moved_and_widened_are_followed() {
    let format = synthetic(&[
        ("u32 num_ibs", 100, 4),
        ("__data_loc char[] ring", 64, 4),
        ("u64 seqno", 48, 8),
        ("u64 context", 56, 8),
        ("struct dma_fence * fence", 8, 8),
    ]);
    let expected = DriverEventLayout {
        ring: 64,
        context: 56,
        seqno: 48,
        fence_bytes: 8,
        ibs: 100,
        ..NONE
    };
    assert_eq!(layout(DriverEventKind::CsIoctl, &format), expected);
}

#[test]
fn a_field_that_is_gone_or_of_another_type_is_absent() {
    let format = synthetic(&[
        ("u64 bo_size", 16, 8),
        ("u64 new_placement", 24, 8),
        ("char ring[16]", 40, 16),
    ]);
    let expected = DriverEventLayout { bytes: 16, ..NONE };
    assert_eq!(layout(DriverEventKind::BoMove, &format), expected);
    // The context and the sequence number have different sizes: the context is not read with the size of the other field.
    let format = synthetic(&[("u32 context", 8, 4), ("u64 seqno", 16, 8)]);
    let expected = DriverEventLayout { seqno: 16, ..NONE };
    assert_eq!(layout(DriverEventKind::SchedRunJob, &format), expected);
}

/// Each event is optional: a damaged format file does not affect the other events, and is reported.
#[test]
fn a_damaged_format_file_is_reported_and_an_absent_event_is_not() {
    let plan = Plan::of(|event| match event {
        "amdgpu_bo_move" => Format::parse(event, "name: amdgpu_bo_move\n"),
        "amdgpu_vm_flush" => of_kernel("6.1.0-56-amd64", event),
        _ => Err(CaptureError::NoEvent(event.to_owned())),
    });
    assert_eq!(layouts(&plan), [None, None, None, Some(FLUSH), None]);
    let damaged: Vec<String> = plan
        .layouts
        .iter()
        .filter_map(|layout| match layout {
            Ok(_) | Err(CaptureError::NoEvent(_)) => None,
            Err(error) => Some(error.to_string()),
        })
        .collect();
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    assert!(
        damaged[0].contains("amdgpu_bo_move") && damaged[0].contains("cut short"),
        "{damaged:?}"
    );
}
