//! Takes over the terminal as `tracer top` does, and panics.

use tracer_tui::{Status, Top, terminal::Screen};

fn main() {
    let mut screen = Screen::open().expect("a terminal");
    screen.show(&Top::new(Status::default())).expect("it can be drawn on");
    panic!("on purpose");
}
