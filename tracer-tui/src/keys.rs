//! Keys and the mouse.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

use crate::state::{Top, View};

/// An action that the screen alone can't do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the program.
    Quit,
    /// Replay faster (positive) or slower, by a power of two.
    Speed(i8),
    /// Start or stop recording.
    Record,
}

/// Number of rows by which a page moves.
const PAGE: usize = 10;

/// The keys that the last line always names, those to keep on a narrow screen first.
const HINTS: [&str; 7] = [
    "? help",
    "q quit",
    "1-7 views",
    "Enter queue",
    "s sort",
    "/ filter",
    "Space freeze",
];

/// Returns the keys that the last line names. A replay has a speed, and cannot be recorded.
pub fn hints(replays: bool) -> impl Iterator<Item = &'static str> {
    let last = if replays { "+- speed" } else { "R record" };
    HINTS.into_iter().chain([last])
}

/// Every key and what it does, for the help.
pub const HELP: [(&str, &str); 14] = [
    (
        "1..7, Tab",
        "queues, kernels, API calls, copies, rings, ioctls, processes",
    ),
    ("up, down, PgUp, PgDn", "select a row"),
    ("Enter", "show details of the selected queue; Esc goes back"),
    ("s, S", "sort by the next or the previous column"),
    ("r", "reverse the sort order"),
    ("/", "show only rows that contain a text; Esc clears it"),
    ("Space", "freeze the display, or continue"),
    ("left, right", "freeze, and go back or forward in time"),
    ("[, ]", "go back or forward ten times as far"),
    ("+, -", "replay faster or slower"),
    ("R", "start to record a trace, or stop"),
    ("mouse", "scroll and click to select; click again for details"),
    ("?", "show this help"),
    ("q, Ctrl-C", "quit"),
];

impl Top {
    /// Handles a key.
    pub fn key(&mut self, key: KeyEvent) -> Option<Action> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Some(Action::Quit);
        }
        if self.editing {
            self.edit(key.code);
            return None;
        }
        if self.help {
            self.help = false;
            return (key.code == KeyCode::Char('q')).then_some(Action::Quit);
        }
        match key.code {
            KeyCode::Char('q') => return Some(Action::Quit),
            KeyCode::Char('+') => return Some(Action::Speed(1)),
            KeyCode::Char('-') => return Some(Action::Speed(-1)),
            KeyCode::Char('R') => return Some(Action::Record),
            KeyCode::Char(digit @ '1'..='7') => self.show(View::TABS[digit as usize - '1' as usize]),
            KeyCode::Tab => self.next_view(1),
            KeyCode::BackTab => self.next_view(View::TABS.len() - 1),
            KeyCode::Up | KeyCode::Char('k') => self.select(|at| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(|at| at + 1),
            KeyCode::PageUp => self.select(|at| at.saturating_sub(PAGE)),
            KeyCode::PageDown => self.select(|at| at + PAGE),
            KeyCode::Home => self.select(|_| 0),
            KeyCode::End => self.select(|_| usize::MAX),
            KeyCode::Enter => self.open(),
            KeyCode::Esc if self.view() == View::Queue => self.show(View::Queues),
            KeyCode::Esc => self.edit_filter(String::clear),
            KeyCode::Char('s') => self.sort_by_next(1),
            KeyCode::Char('S') => self.sort_by_next(-1),
            KeyCode::Char('r') => self.reverse(),
            KeyCode::Char('/') => self.editing = true,
            KeyCode::Char(' ') => self.freeze(),
            KeyCode::Left => self.look_back(1),
            KeyCode::Right => self.look_back(-1),
            KeyCode::Char('[') => self.look_back(PAGE as isize),
            KeyCode::Char(']') => self.look_back(-(PAGE as isize)),
            KeyCode::Char('?' | 'h') => self.help = true,
            _ => {}
        }
        None
    }

    fn edit(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.editing = false,
            KeyCode::Esc => {
                self.editing = false;
                self.edit_filter(String::clear);
            }
            KeyCode::Backspace => self.edit_filter(|text| {
                text.pop();
            }),
            KeyCode::Char(c) => self.edit_filter(|text| text.push(c)),
            _ => {}
        }
    }

    /// Handles an event of the mouse.
    pub fn mouse(&mut self, mouse: MouseEvent) {
        match mouse.kind {
            MouseEventKind::ScrollUp => self.select(|at| at.saturating_sub(1)),
            MouseEventKind::ScrollDown => self.select(|at| at + 1),
            MouseEventKind::Down(MouseButton::Left) => {
                let (first, y) = self.drawn.get();
                if let Some(down) = mouse.row.checked_sub(y) {
                    let row = first + usize::from(down);
                    if row == self.selected() {
                        self.open();
                    } else {
                        self.select(|_| row);
                    }
                }
            }
            _ => {}
        }
    }
}
