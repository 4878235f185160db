use std::sync::Arc;

use tracer_core::{
    analysis::Analysis,
    plots::Plots,
    sample::{self, recording},
    summary::Summary,
    tables::{Copy, Dispatch, DispatchRun, Doorbell, Fact, OtherPacket, RingJob},
};

use super::*;
use crate::{Column, Kind};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\"'&";

fn job(time_ns: u64) -> RingJob {
    RingJob {
        time_ns,
        device: Some(HOSTILE.to_owned()),
        submit_ns: Some(time_ns),
        run_ns: Some(time_ns + 5),
        done_ns: Some(time_ns + 50),
        queued: Some(0),
        ..recording::job(HOSTILE, "comp", Some(true))
    }
}

fn page(facts: &[Fact], watched: Capabilities) -> String {
    page_with(facts, watched, Vec::new())
}

fn page_with(facts: &[Fact], watched: Capabilities, tables: Vec<Section>) -> String {
    let mut summary = Summary::new(watched);
    let mut analysis = Analysis::default();
    let mut plots = Plots::new(0, Some(3999));
    for fact in facts {
        summary.add(fact);
        let launch = analysis.add(fact);
        plots.add(fact, launch);
    }
    let (report, answers, figures) = (summary.finish(true), analysis.finish(), plots.finish());
    let page = Page {
        title: HOSTILE,
        simulated: Some(HOSTILE),
        part: Some(HOSTILE),
        is_of_kernels: false,
        headline: vec![Block::Line {
            label: "target".to_owned(),
            text: HOSTILE.to_owned(),
        }],
        findings: Vec::new(),
        tables,
        visible: 10,
        report: &report,
        answers: &answers,
        figures: &figures,
        watched,
        started_ns: 0,
        tool: "tracer",
    };
    let mut text = Vec::new();
    page.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn facts(queue_kind: &str) -> Vec<Fact> {
    let dispatch = |index, time_ns| {
        Fact::Dispatch(Dispatch {
            kernel: Some(Arc::from(HOSTILE)),
            ..sample::dispatch(index, time_ns)
        })
    };
    let queue = tracer_core::tables::Queue {
        kind: queue_kind.to_owned(),
        ..sample::queue(3)
    };
    vec![
        Fact::Queue(queue),
        dispatch(0, 5),
        Fact::Doorbell(sample::doorbell(0, 5)),
        dispatch(1, 15),
        dispatch(2, 15),
        Fact::RingJob(job(100)),
        Fact::Copy(sample::copy(200)),
    ]
}

#[test]
fn foreign_text_is_never_markup() {
    let page = page(&facts(HOSTILE), sample::EVERYTHING);
    assert!(!page.contains("<img"));
    // The only script is the page's own.
    assert_eq!(
        (page.matches("<script").count(), page.matches("</script>").count()),
        (1, 1)
    );
    // The title of the window, the heading, the signs and the headline; of the lane of the ring its name and device; of the queue's
    // lanes its type.
    assert_eq!(page.matches("&lt;/script&gt;&lt;img src=x").count(), 5 + 2 + 2);
}

#[test]
fn bins_of_lanes_are_in_the_page() {
    let page = page(&facts("compute-aql"), sample::EVERYTHING);
    // 400 bins of 10 ns.
    assert!(page.contains("data-bins=\"400\" data-width=\"10\" data-from=\"0\""));
    assert!(page.contains("data-dispatches=\"0:1 1:2\""));
    assert!(page.contains("data-jobs=\"10:1\" data-busy=\"10:5 11:10 12:10 13:10 14:10\""));
    assert!(page.contains("data-copies=\"20:1\""));
    assert!(!page.contains("<b>?</b>"));
    assert!(page.contains("<b>100.0 %</b>of them by doorbell"));
}

/// Other packets stand on the dispatches of their bar, and the highest bar has the whole height.
#[test]
fn bars_of_a_lane_are_stacked() {
    let page = page(
        &[
            Fact::Dispatch(sample::dispatch(0, 5)),
            Fact::Packet(sample::unread(1, 3, 5)),
        ],
        sample::EVERYTHING,
    );
    assert!(page.contains("<path class=\"dispatches\" d=\"M0 82.0v-20.5h1v20.5z\">"));
    assert!(page.contains("<path class=\"packets\" d=\"M0 61.5v-61.5h1v61.5z\">"));
}

/// What was not watched is said in words. No number stands for it.
#[test]
fn plots_without_data_say_why() {
    let page = page(&[], Capabilities::default());
    for reason in [
        "Nothing was submitted, as far as tracer watched",
        "Jobs on rings of the kernel driver: not watched.",
        "Unknown: calls were not recorded (record --api all).",
        "Unknown: reserves were not recorded (record --detail full).",
        "Unknown: doorbells of SDMA queues were not watched.",
        "No index of an AQL queue is known, so no depth is.",
        "Unknown: neither API calls nor ioctls were recorded.",
        "<b>?</b>kernels dispatched",
        "<b>?</b>of them by doorbell",
        "<b>?</b>jobs on rings: not watched",
        "Not watched, so unknown here: doorbells, packets,",
    ] {
        assert!(page.contains(reason), "{reason}");
    }
    assert!(!page.contains("<td>0</td>"));
}

#[test]
fn the_page_loads_nothing() {
    let page = page(&facts("compute-aql"), sample::EVERYTHING);
    for outside in ["http://", "https://", "src=\"", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-"));
    // The policy allows no style in attributes.
    assert!(!page.contains(" style=\""));
}

/// The limit of the issue: 5 MB for a million dispatches. Here are more queues than lanes, something of each kind in each bar, and
/// ten tables of 500 rows.
#[test]
fn a_page_of_the_worst_trace_is_below_5_mb() {
    let mut facts = Vec::new();
    for (bin, queue) in (0..400_u64).flat_map(|bin| (0..100_u32).map(move |queue| (bin, queue))) {
        let time_ns = 10 * bin;
        // The counts have five digits.
        let run = DispatchRun {
            queue,
            end_ns: time_ns,
            ..sample::dispatch_run(0, 10_000 + u64::from(queue), time_ns)
        };
        let unread = OtherPacket {
            queue,
            ..sample::unread(0, 20_000 + bin, time_ns)
        };
        let doorbell = Doorbell {
            queue: Some(queue),
            read_index: 0,
            ..sample::doorbell(10_000 * (bin % 7), time_ns)
        };
        let copy = Copy {
            queue: Some(queue),
            ..sample::copy(time_ns)
        };
        facts.extend([
            Fact::DispatchRun(run),
            Fact::Packet(unread),
            Fact::Doorbell(doorbell),
            Fact::Copy(copy),
        ]);
    }
    let columns = (0..17).map(|at| Column {
        heading: format!("COLUMN {at}"),
        kind: if at == 0 { Kind::Name } else { Kind::Number },
    });
    let name = "void mul_mat_vec_f<float, float, 1, 256, false>(float const*, float const*) ".repeat(3);
    let row: Vec<String> = std::iter::once(name)
        .chain((1..17).map(|_| "123.4 ms".to_owned()))
        .collect();
    let table = Block::Table {
        columns: columns.collect(),
        rows: vec![row; 500],
        left_out: 1000,
    };
    let section = Section {
        id: "kernels",
        title: "Kernels",
        blocks: vec![table; 10],
    };
    let page = page_with(&facts, sample::EVERYTHING, vec![section]);
    let lanes = page.matches("data-dispatches=").count();
    assert_eq!((lanes, page.matches("data-depth=").count()), (24 + 1, 16));
    assert!(page.contains("76 more queues and rings"));
    println!("{} bytes", page.len());
    assert!((2_000_000..5_000_000).contains(&page.len()), "{} bytes", page.len());
}
