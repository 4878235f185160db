//! Tests of every view at three sizes, with no, usual, many and stuck queues, as text. `INSTA_UPDATE=always cargo nextest run
//! --workspace -E 'test(screens)'` writes the expected screens anew.

mod pictures;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use ratatui::{Terminal, backend::TestBackend};
use tracer_core::live::Picture;
use tracer_tui::{Action, Status, Top, draw};

/// Every view with the keys that show it.
const VIEWS: [(&str, &str); 8] = [
    ("queues", "1"),
    ("kernels", "2"),
    ("api", "3"),
    ("copies", "4"),
    ("rings", "5"),
    ("ioctls", "6"),
    ("processes", "7"),
    ("queue", "1\n"),
];
const SIZES: [(u16, u16); 3] = [(40, 20), (80, 24), (120, 40)];

fn status() -> Status {
    Status {
        source: "./app".to_owned(),
        blind: vec!["ring".to_owned(), "thunk".to_owned()],
        ..Status::default()
    }
}

fn top(picture: Picture) -> Top {
    let mut top = Top::new(status());
    top.push(picture);
    top
}

fn press(top: &mut Top, keys: &str) -> Option<Action> {
    let mut last = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            'v' => KeyCode::Down,
            '<' => KeyCode::Left,
            '>' => KeyCode::Right,
            other => KeyCode::Char(other),
        };
        last = top.key(KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

fn screen(top: &Top, (width, height): (u16, u16)) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen in memory");
    terminal.draw(|frame| draw(frame, top)).expect("it has room");
    let buffer = terminal.backend().buffer();
    let lines = buffer.content.chunks(usize::from(width)).map(|line| {
        let text: String = line.iter().map(ratatui::buffer::Cell::symbol).collect();
        text.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Compares the screen after these keys, at every size.
fn pictured(name: &str, picture: &Picture, keys: &str) {
    for (width, height) in SIZES {
        let mut top = top(picture.clone());
        press(&mut top, keys);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), screen(&top, (width, height)));
    }
}

#[test]
fn every_view_of_nothing() {
    for (name, keys) in VIEWS.into_iter().filter(|(name, _)| *name != "queue") {
        pictured(&format!("empty_{name}"), &Picture::default(), keys);
    }
}

#[test]
fn every_view_of_a_usual_run() {
    let usual = pictures::usual();
    for (name, keys) in VIEWS {
        pictured(&format!("usual_{name}"), &usual, keys);
    }
    pictured("help", &usual, "?");
}

#[test]
fn a_thousand_queues() {
    let many = pictures::many();
    for (name, keys) in VIEWS {
        pictured(&format!("many_{name}"), &many, keys);
    }
}

#[test]
fn a_stuck_queue_is_on_top_and_explained() {
    let stuck = pictures::stuck();
    for (name, keys) in VIEWS {
        pictured(&format!("stuck_{name}"), &stuck, keys);
    }
}

#[test]
fn a_screen_of_any_size_is_drawn() {
    let many = pictures::many();
    for width in [1, 2, 5, 19, 20, 21, 33, 57, 200] {
        for height in [1, 2, 5, 6, 7, 90] {
            for keys in ["1", "2", "3", "4", "5", "6", "7", "1\n", "?"] {
                let mut top = top(many.clone());
                press(&mut top, keys);
                screen(&top, (width, height));
            }
        }
    }
}

#[test]
fn without_colours_a_stuck_queue_still_stands_out() {
    let mut top = top(pictures::stuck());
    top.colours = false;
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &top)).unwrap();
    let buffer = terminal.backend().buffer();
    assert!(
        buffer
            .content
            .iter()
            .all(|cell| cell.fg == ratatui::style::Color::Reset)
    );
    let text = screen(&top, (80, 24));
    assert!(text.contains("1 STUCK") && text.contains("!6/"), "{text}");
}

#[test]
fn a_filter_keeps_what_contains_it_and_escape_shows_all() {
    let mut top = top(pictures::usual());
    press(&mut top, "2/vector\n");
    let text = screen(&top, (80, 24));
    assert!(text.contains("vector_add") && !text.contains("0x7f00"), "{text}");
    press(&mut top, "\x1b");
    assert!(screen(&top, (80, 24)).contains("0x7f00"));
    press(&mut top, "/nothing like it");
    assert!(screen(&top, (80, 24)).contains("Esc shows all"));
}

#[test]
fn a_frozen_screen_stays_and_the_past_can_be_seen() {
    let mut top = Top::new(status());
    // Before the first fact a picture has no time, and nobody can go back to it.
    top.push(tracer_core::live::Picture::default());
    for dispatches in 0..5 {
        let mut picture = pictures::usual();
        picture.time_ns = 1_000_000_000 * (dispatches + 1);
        picture.totals.dispatches = Some(dispatches);
        top.push(picture);
    }
    let shown = |top: &Top| top.picture().unwrap().totals.dispatches.unwrap();
    assert_eq!((shown(&top), top.behind_ns()), (4, None));
    press(&mut top, " <<");
    assert_eq!((shown(&top), top.behind_ns()), (2, Some(2_000_000_000)));
    assert!(screen(&top, (80, 24)).contains("FROZEN, 2.0 s back"));
    top.push(pictures::usual());
    assert_eq!(shown(&top), 2, "a held picture does not move");
    press(&mut top, ">");
    assert_eq!(shown(&top), 3);
    press(&mut top, "<<<<<<<<");
    assert_eq!((shown(&top), top.picture().unwrap().time_ns), (0, 1_000_000_000));
    press(&mut top, " ");
    assert_eq!(top.behind_ns(), None);
}

#[test]
fn keys_ask_for_what_the_screen_cannot_do() {
    let mut top = top(pictures::usual());
    assert_eq!(press(&mut top, "+"), Some(Action::Speed(1)));
    assert_eq!(press(&mut top, "/q"), None, "a q in a filter is a letter");
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(top.key(interrupt), Some(Action::Quit));
    press(&mut top, "\x1b");
    assert_eq!(press(&mut top, "q"), Some(Action::Quit));
}

#[test]
fn a_click_selects_and_a_second_one_opens() {
    let mut top = top(pictures::usual());
    screen(&top, (80, 24));
    let click = MouseEvent {
        kind: MouseEventKind::Down(MouseButton::Left),
        column: 3,
        row: 5,
        modifiers: KeyModifiers::NONE,
    };
    top.mouse(click);
    top.mouse(click);
    assert_eq!(top.view(), tracer_tui::View::Queue);
    // A click above the rows selects no row.
    top.mouse(MouseEvent { row: 0, ..click });
}

#[test]
fn a_wide_screen_has_every_column() {
    let text = screen(&top(pictures::usual()), (220, 24));
    for title in [
        "process",
        "gpu",
        "gpu id",
        "sched",
        "id",
        "p/db",
        "write",
        "read",
        "p50",
        "p99",
        "last minute",
    ] {
        assert!(text.contains(title), "no {title} in\n{text}");
    }
    assert!(text.contains(" mes "), "{text}");
}

#[test]
fn sorting_goes_through_every_column_and_back() {
    let mut top = top(pictures::usual());
    let first = screen(&top, (120, 40));
    press(&mut top, "r");
    assert_ne!(screen(&top, (120, 40)), first);
    press(&mut top, "r");
    for _ in 0..20 {
        press(&mut top, "s");
    }
    assert_eq!(screen(&top, (120, 40)), first);
}

/// The headings of each view.
const HEADINGS: [(&str, &[&str]); 7] = [
    (
        "1",
        &[
            "last minute",
            "process",
            "gpu id",
            "disp/s",
            "oldest",
            "sched",
            "depth",
            "write",
            "gpu",
            "type",
            "db/s",
            "disp",
            "p/db",
            "read",
            "path",
            "pid",
            "p50",
            "p99",
            "id",
            "q",
        ],
    ),
    ("2", &["process", "disp/s", "kernel", "count", "last", "pid"]),
    (
        "3",
        &[
            "function", "calls/s", "errors", "layer", "calls", "total", "mean", "open", "p50", "p99",
        ],
    ),
    (
        "4",
        &[
            "unknown size",
            "direction",
            "commands",
            "copies/s",
            "bytes/s",
            "copies",
            "engine",
            "bytes",
            "path",
        ],
    ),
    (
        "5",
        &[
            "waiting p50",
            "waiting p99",
            "running p50",
            "running p99",
            "made by",
            "jobs/s",
            "traced",
            "jobs",
            "ring",
        ],
    ),
    ("6", &["calls/s", "errors", "ioctl", "calls", "p50", "p99", "dev"]),
    (
        "7",
        &["process", "queues", "disp/s", "copies", "ioctls", "disp", "pid", "db"],
    ),
];

/// At any width from 80 columns, and whatever the sort column: columns are left out, and no heading, number or unit is cut.
#[test]
fn no_heading_and_no_number_is_cut() {
    for (keys, titles) in HEADINGS {
        for sorted in 0..titles.len() {
            for width in 80..=200 {
                let mut picture = pictures::usual();
                // More cells than the columns have by default.
                picture.queues[0].depth = Some(99_999);
                picture.copies[0].bytes = Some(u64::MAX);
                picture.copies[0].unknown = 1;
                let mut top = top(picture);
                press(&mut top, keys);
                press(&mut top, &"s".repeat(sorted));
                let text = screen(&top, (width, 24));
                let heading = text.lines().nth(3).expect("a heading");
                let rest = titles
                    .iter()
                    .fold(heading.to_owned(), |rest, title| rest.replace(title, ""));
                let rest = rest.replace(['▾', '▴'], "");
                assert_eq!(rest.trim(), "", "{width}: {heading}");
                for line in text.lines().filter(|line| line.contains('…')) {
                    let around = |side: Option<char>| side.is_some_and(|c| c.is_ascii_digit());
                    for (at, mark) in line.match_indices('…') {
                        let sides = [line[..at].chars().next_back(), line[at + mark.len()..].chars().next()];
                        assert!(!sides.into_iter().any(around), "{width}: {line}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_replay_names_the_keys_of_its_speed() {
    let mut top = top(pictures::usual());
    assert!(screen(&top, (80, 24)).contains("R record"));
    top.status.speed = Some(1);
    assert!(screen(&top, (80, 24)).ends_with("+- speed"));
}
