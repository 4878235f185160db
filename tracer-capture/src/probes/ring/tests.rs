use std::fs;

use super::*;

const NEW: EventSet = SETS[0];
const OLD: EventSet = SETS[1];

/// Reads a real format file, from a running kernel.
fn fixture(kernel: &str, event: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tracefs");
    fs::read_to_string(format!("{folder}/{kernel}/{event}.format")).unwrap()
}

fn formats(kernel: &str, set: EventSet) -> [Format; 3] {
    set.names
        .map(|name| Format::parse(name, &fixture(kernel, name)).unwrap())
}

#[test]
fn old_events() {
    for kernel in ["6.1.0-56-amd64", "6.12.107+deb13-amd64", "6.16.12+deb13-amd64"] {
        let plan = Plan::of(OLD, &formats(kernel, OLD), None).unwrap();
        let job = EventLayout {
            fence: 16,
            ring: 24,
            job_id: 32,
            queued: 40,
            ..EventLayout::NONE
        };
        let done = EventLayout {
            fence: 8,
            ..EventLayout::NONE
        };
        assert_eq!(plan.layouts, [Plain(job), Plain(job), Plain(done)], "{kernel}");
        assert!(!plan.raw);
    }
}

#[test]
fn new_events() {
    let plan = Plan::of(NEW, &formats("7.2.13+deb14-amd64", NEW), None).unwrap();
    let job = EventLayout {
        ring: 8,
        queued: 12,
        device: 20,
        context: 24,
        seqno: 32,
        client_id: 40,
        ..EventLayout::NONE
    };
    let done = EventLayout {
        context: 8,
        seqno: 16,
        ..EventLayout::NONE
    };
    assert_eq!(plan.layouts, [Plain(job), Plain(job), Plain(done)]);
}

/// Returns the text of a format file with these fields.
fn synthetic(fields: &[(&str, u32, u32)]) -> String {
    let lines: String = fields
        .iter()
        .map(|(declaration, offset, size)| {
            format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
        })
        .collect();
    format!("name: synthetic\nID: 1\nformat:\n{lines}\nprint fmt: \"\"\n")
}

fn job_fields() -> Vec<(&'static str, u32, u32)> {
    vec![
        ("unsigned short common_type", 0, 2),
        ("__data_loc char[] name", 8, 4),
        ("u32 job_count", 12, 4),
        ("__data_loc char[] dev", 20, 4),
        ("u64 fence_context", 24, 8),
        ("u64 fence_seqno", 32, 8),
        ("u64 client_id", 40, 8),
    ]
}

fn layout_of(fields: &[(&str, u32, u32)]) -> Result<EventLayout, CaptureError> {
    job_layout(&Format::parse("synthetic", &synthetic(fields))?, false)
}

#[test]
fn fields_inserted_and_moved_are_followed() {
    let mut fields = job_fields();
    fields.insert(1, ("u64 something_new[4]", 8, 32));
    for field in &mut fields[2..] {
        field.1 += 32;
    }
    fields.reverse();
    let layout = layout_of(&fields).unwrap();
    assert_eq!(
        (
            layout.ring,
            layout.device,
            layout.context,
            layout.seqno,
            layout.client_id,
            layout.queued
        ),
        (40, 52, 56, 64, 72, 44)
    );
}

#[test]
fn a_field_that_is_gone_is_absent_if_jobs_can_be_joined_without_it() {
    let without = |name: &str| {
        let mut fields = job_fields();
        fields.retain(|field| !field.0.ends_with(name));
        layout_of(&fields)
    };
    assert_eq!(without(" dev").unwrap().device, ABSENT);
    assert_eq!(without(" client_id").unwrap().client_id, ABSENT);
    assert_eq!(without(" job_count").unwrap().queued, ABSENT);
    for needed in ["name", "fence_context", "fence_seqno"] {
        let error = without(needed).unwrap_err().to_string();
        assert!(error.contains(needed) && error.contains("synthetic"), "{error}");
    }
}

#[test]
fn a_field_of_another_type_is_not_taken_for_the_one_meant() {
    let changed = |name: &str, declaration: &'static str, size: u32| {
        let mut fields = job_fields();
        for field in fields.iter_mut().filter(|field| field.0.ends_with(name)) {
            (field.0, field.2) = (declaration, size);
        }
        layout_of(&fields)
    };
    assert!(changed(" fence_seqno", "u32 fence_seqno", 4).is_err());
    assert!(changed(" name", "char name[16]", 16).is_err());
    assert!(changed(" name", "const char * name", 8).is_err());
    assert_eq!(changed(" dev", "u32 dev", 4).unwrap().device, ABSENT);
}

#[test]
fn a_renamed_field_is_refused_by_name() {
    let mut fields = job_fields();
    fields[4].0 = "u64 fence_ctx";
    let error = layout_of(&fields).unwrap_err().to_string();
    assert!(error.contains("fence_context of 8 bytes"), "{error}");
}

#[test]
fn what_is_cut_short_is_refused() {
    let text = fixture("7.2.13+deb14-amd64", "drm_sched_job_queue");
    for end in (0..text.find("print fmt").unwrap()).step_by(7) {
        let cut = Format::parse("drm_sched_job_queue", &text[..end]);
        assert!(cut.is_err(), "accepted {:?}", &text[..end]);
    }
    let absurd = synthetic(&[("u64 fence_seqno", 4_294_967_290, 8)]);
    assert!(Format::parse("absurd", &absurd).is_err());
    let nameless = synthetic(&[("", 8, 8)]);
    assert!(Format::parse("nameless", &nameless).is_err());
}
