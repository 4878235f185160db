//! Draws the screen from the state, and does nothing else.

use ratatui::{
    Frame,
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};
use tracer_core::words::Named;
use tracer_core::{
    foreign,
    live::Picture,
    units::{count, duration, rate},
};

use crate::{
    cells::{UNKNOWN, known, sparkline},
    keys, notes,
    state::{Top, View},
    table::Table,
    text::{joined, shortened, wrapped},
    views::{api, copies, ioctls, kernels, processes, queue, queues, rings},
};

/// Lines above the body: totals, paths, tabs.
const HEAD: u16 = 3;
/// Lines below the body: losses and blind spots, the source, keys.
const FOOT: u16 = 3;
/// The greatest number of lines for the reasons of unknown values.
const MAX_NOTES: usize = 2;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, top: &Top) {
    let area = frame.area();
    if area.is_empty() {
        return;
    }
    let buffer = frame.buffer_mut();
    if area.height <= HEAD + FOOT || area.width < 20 {
        return line(area, 0, "too small", Style::new(), buffer);
    }
    let empty = Picture::default();
    let picture = top.picture().unwrap_or(&empty);
    head(top, picture, area, buffer);
    let body = Rect::new(area.x, area.y + HEAD, area.width, area.height - HEAD - FOOT);
    if top.help {
        help(body, buffer);
    } else {
        let rest = self::notes(top, picture, body, buffer);
        top.drawn.set((self::body(top, picture, rest, buffer), body.y + 1));
    }
    foot(top, picture, Rect::new(area.x, body.bottom(), area.width, FOOT), buffer);
    if !top.colours {
        for cell in &mut buffer.content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

/// Draws a line of an area.
fn line(area: Rect, down: u16, text: &str, style: Style, buffer: &mut Buffer) {
    buffer.set_stringn(area.x, area.y + down, text, usize::from(area.width), style);
}

fn head(top: &Top, picture: &Picture, area: Rect, buffer: &mut Buffer) {
    let totals = &picture.totals;
    let (dispatches, doorbells) = (
        known(totals.dispatches_per_s, rate),
        known(totals.doorbells_per_s, rate),
    );
    let mut first = if area.width < 60 {
        format!("{dispatches} disp/s {doorbells} db/s ")
    } else {
        let copies = known(totals.copies_per_s, rate);
        format!("tracer  {dispatches} disp/s  {doorbells} doorbells/s  {copies} copies/s ")
    };
    let room = usize::from(area.width).saturating_sub(first.chars().count());
    first.push_str(&sparkline(&totals.history, room.min(60)));
    line(area, 0, &first, Style::new().add_modifier(Modifier::BOLD), buffer);
    let paths = &totals.by_path;
    let mut second = vec![format!("{} dispatches", known(totals.dispatches, count))];
    for (path, n) in paths.each() {
        match (path.name(), n) {
            (name, None) => second.push(format!("{UNKNOWN} {name}")),
            (_, Some(0)) => {}
            (name, Some(n)) => {
                let percent = n as f64 * 100.0 / paths.seen() as f64;
                second.push(format!("{percent:.1}% {name}"));
            }
        }
    }
    for (what, n) in [("unread", totals.unread), ("aggregated", totals.aggregated)] {
        if let Some(n) = n.filter(|&n| n > 0) {
            second.push(format!("{} {what}", count(n)));
        }
    }
    let second = joined(second.iter().map(String::as_str), ", ", area.width);
    line(area, 1, &second, Style::new(), buffer);
    tabs(top, Rect::new(area.x, area.y + 2, area.width, 1), buffer);
}

fn tabs(top: &Top, area: Rect, buffer: &mut Buffer) {
    let short = area.width < 80;
    let mut x = area.x;
    for (at, tab) in View::TABS.into_iter().enumerate() {
        let here = tab == top.view() || (tab == View::Queues && top.view() == View::Queue);
        // On a narrow screen, only the current view has its name.
        let text = if short && !here {
            (at + 1).to_string()
        } else {
            format!("{} {}", at + 1, tab.title())
        };
        let style = if here {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else {
            Style::new()
        };
        let room = usize::from(area.right().saturating_sub(x));
        buffer.set_stringn(x, area.y, &text, room, style);
        x = (x + text.chars().count() as u16 + 2).min(area.right());
    }
}

/// Draws why values of the view are unknown, at the end of the area. Returns the rest of the area.
fn notes(top: &Top, picture: &Picture, area: Rect, buffer: &mut Buffer) -> Rect {
    let sentences = notes::of(top.view(), picture);
    if sentences.is_empty() || is_empty(top, picture) {
        return area;
    }
    // Whole sentences, as many as fit.
    let mut lines = Vec::new();
    for end in 1..=sentences.len() {
        let more = wrapped(&sentences[..end].join(" "), area.width);
        if more.len() > MAX_NOTES {
            break;
        }
        lines = more;
    }
    let rest = area.height.saturating_sub(lines.len() as u16);
    for (down, text) in (rest..).zip(&lines) {
        line(area, down, text, Style::new().add_modifier(Modifier::DIM), buffer);
    }
    Rect { height: rest, ..area }
}

/// Returns whether the view has no row at all.
fn is_empty(top: &Top, picture: &Picture) -> bool {
    match top.view() {
        View::Queues | View::Queue => picture.queues.is_empty(),
        View::Kernels => picture.kernels.is_empty(),
        View::Api => picture.api.is_empty(),
        View::Copies => picture.copies.is_empty(),
        View::Rings => picture.rings.is_empty(),
        View::Ioctls => picture.ioctls.is_empty(),
        View::Processes => picture.processes.is_empty(),
    }
}

/// Draws the view. Returns the index of the first row shown.
fn body(top: &Top, picture: &Picture, area: Rect, buffer: &mut Buffer) -> usize {
    let choice = top.choice();
    macro_rules! table {
        ($columns:expr, $rows:expr, $style:expr) => {{
            let rows = $rows;
            if rows.is_empty() {
                nothing(top, picture, area, buffer);
                return 0;
            }
            Table {
                columns: $columns,
                rows: &rows,
                sorted: choice.sorted,
                reversed: choice.reversed,
                selected: top.selected(),
                style: $style,
            }
            .draw(area, buffer)
        }};
    }
    match top.view() {
        View::Queues => table!(queues::COLUMNS, queues::rows(choice, picture), queues::style),
        View::Kernels => table!(kernels::COLUMNS, kernels::rows(choice, picture), |_| Style::new()),
        View::Api => table!(api::COLUMNS, api::rows(choice, picture), |_| Style::new()),
        View::Copies => table!(copies::COLUMNS, copies::rows(choice, picture), |_| Style::new()),
        View::Rings => table!(rings::COLUMNS, rings::rows(choice, picture), rings::style),
        View::Ioctls => table!(ioctls::COLUMNS, ioctls::rows(choice, picture), |_| Style::new()),
        View::Processes => {
            let tree = processes::tree(picture);
            table!(processes::COLUMNS, processes::sorted(choice, &tree), processes::style)
        }
        View::Queue => {
            match top.queue(picture) {
                Some(row) => queue::draw(row, &picture.kernels, picture.time_ns, top.selected(), area, buffer),
                None => {
                    let number = top.detail.map(|n| n.to_string()).unwrap_or_default();
                    let text = format!("queue {number} no longer exists; Esc goes back");
                    line(area, 0, &text, Style::new(), buffer);
                }
            }
            0
        }
    }
}

/// Draws the reason why there is nothing to see.
fn nothing(top: &Top, picture: &Picture, area: Rect, buffer: &mut Buffer) {
    let view = top.view().title();
    let text = match (top.filter(), notes::unwatched(top.view(), picture)) {
        ("", Some(reason)) => reason.to_owned(),
        ("", None) => format!("no {view} seen"),
        (filter, _) => format!("no {view} with \"{filter}\"; Esc shows all"),
    };
    for (down, text) in (0..area.height).zip(wrapped(&foreign::line(text), area.width)) {
        line(area, down, &text, Style::new(), buffer);
    }
}

/// Draws losses and blind spots, which are always shown, the source, and the keys.
fn foot(top: &Top, picture: &Picture, area: Rect, buffer: &mut Buffer) {
    let status = &top.status;
    let lost: u64 = picture.losses.iter().map(|loss| loss.count).sum();
    let mut words = Vec::new();
    if lost == 0 {
        words.push("lost 0".to_owned());
    } else {
        let most = picture.losses.iter().max_by_key(|loss| loss.count);
        let source = most.map(|loss| loss.source.as_str()).unwrap_or_default();
        words.push(format!("LOST {} ({source})", count(lost)));
    }
    words.extend(picture.simulated.is_some().then(|| "SIMULATED".to_owned()));
    let stuck = picture.queues.iter().filter(|queue| queue.stuck.is_some()).count();
    words.extend((stuck > 0).then(|| format!("{stuck} STUCK")));
    if !picture.unread_tables.is_empty() {
        words.push(format!("UNREADABLE: {}", picture.unread_tables.join(", ")));
    }
    if picture.other_queues > 0 || picture.other_kernels > 0 {
        words.push("too many rows: some omitted".to_owned());
    }
    if !status.blind.is_empty() {
        words.push(format!("not watched: {}", status.blind.join(", ")));
    }
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let style = if lost > 0 { bold.fg(Color::Yellow) } else { bold };
    parts(area, 0, &words, style, buffer);
    let mut words = Vec::new();
    match (top.editing, top.filter()) {
        (true, text) => words.push(format!("/{text}_")),
        (false, "") => {}
        (false, text) => words.push(format!("/{text}")),
    }
    words.extend(status.message.clone());
    words.extend(match top.behind_ns() {
        Some(0) => Some("FROZEN".to_owned()),
        Some(ns) => Some(format!("FROZEN, {} back", duration(ns))),
        None => status.ended.then(|| "ended".to_owned()),
    });
    words.extend(status.recording.as_ref().map(|dir| format!("REC {dir}")));
    words.extend(status.speed.map(|speed| format!("replay x{speed}")));
    let used: usize = words.iter().map(|text| text.chars().count() + 2).sum();
    let room = usize::from(area.width).saturating_sub(used);
    words.push(shortened(&status.source, room.max(8) as u16));
    parts(area, 1, &words, Style::new(), buffer);
    let keys = joined(keys::hints(status.speed.is_some()), "  ", area.width);
    line(area, 2, &keys, Style::new().add_modifier(Modifier::DIM), buffer);
}

/// Draws the parts of a line that fit.
fn parts(area: Rect, down: u16, parts: &[String], style: Style, buffer: &mut Buffer) {
    let parts: Vec<String> = parts.iter().map(foreign::line).collect();
    let text = joined(parts.iter().map(String::as_str), "  ", area.width);
    line(area, down, &text, style, buffer);
}

fn help(area: Rect, buffer: &mut Buffer) {
    for (down, (keys, what)) in (0..area.height).zip(keys::HELP) {
        let text = match area.width {
            ..60 => format!("{keys}: {what}"),
            60.. => format!("{keys:<20}  {what}"),
        };
        line(area, down, &text, Style::new(), buffer);
    }
}
