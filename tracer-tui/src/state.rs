//! What the screen shows, and how.

use std::collections::VecDeque;

use tracer_core::live::{Picture, QueueRow};
use tracer_core::words::Named;

use crate::{
    rows::Choice,
    views::{api, copies, ioctls, kernels, processes, queues, rings},
};

/// Maximum number of pictures that are kept for looking back.
const MOST_PICTURES: usize = 600;
/// Maximum number of rows in all of these pictures. With 1000 queues the history is shorter.
const MOST_ROWS: usize = 120_000;

/// Number of views.
const VIEWS: usize = View::TABS.len() + 1;

/// A view in the body of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum View {
    /// All queues.
    Queues,
    /// Kernels.
    Kernels,
    /// Calls of functions of HIP, HSA and OpenCL.
    Api,
    /// Copies and fills.
    Copies,
    /// Rings of the kernel driver.
    Rings,
    /// Ioctls.
    Ioctls,
    /// The tree of processes.
    Processes,
    /// One queue.
    Queue,
}

impl View {
    /// The views with a number key, in the order of the keys.
    pub const TABS: [Self; 7] = [
        Self::Queues,
        Self::Kernels,
        Self::Api,
        Self::Copies,
        Self::Rings,
        Self::Ioctls,
        Self::Processes,
    ];

    /// Returns the name for people.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Api => "API calls",
            other => other.name(),
        }
    }
}

/// The status of the screen that does not come from facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The source of the pictures: a command, processes, or a trace.
    pub source: String,
    /// What is not watched.
    pub blind: Vec<String>,
    /// The speed of a replay.
    pub speed: Option<u32>,
    /// Whether the watched processes have exited, or the replay is at its end.
    pub ended: bool,
    /// The path of the current recording.
    pub recording: Option<String>,
    /// The last result or error.
    pub message: Option<String>,
}

/// The state of the screen.
#[derive(Debug)]
pub struct Top {
    view: View,
    /// The sort column, and whether it is reversed, by view.
    sorting: [(usize, bool); VIEWS],
    selected: [usize; VIEWS],
    filter: String,
    /// Whether characters go into the filter.
    pub(crate) editing: bool,
    pub(crate) help: bool,
    /// The number of the queue in [`View::Queue`].
    pub(crate) detail: Option<u32>,
    pictures: VecDeque<Picture>,
    rows: usize,
    /// The picture that stays on the screen, counted from the newest; `None` follows the newest.
    frozen: Option<usize>,
    /// The status that does not come from facts.
    pub status: Status,
    /// Whether colours may be used.
    pub colours: bool,
    /// The index of the first row that was drawn, and the line where the rows begin: for the mouse.
    pub(crate) drawn: std::cell::Cell<(usize, u16)>,
}

impl Top {
    /// Creates a screen that shows the view of the queues and has no picture yet.
    #[must_use]
    pub fn new(status: Status) -> Self {
        let mut sorting = [(0, false); VIEWS];
        for (view, first) in [
            (View::Queues, queues::FIRST),
            (View::Api, api::FIRST),
            (View::Copies, copies::FIRST),
        ] {
            sorting[view as usize].0 = first;
        }
        Self {
            view: View::Queues,
            sorting,
            selected: [0; VIEWS],
            filter: String::new(),
            editing: false,
            help: false,
            detail: None,
            pictures: VecDeque::new(),
            rows: 0,
            frozen: None,
            status,
            colours: true,
            drawn: std::cell::Cell::new((0, 0)),
        }
    }

    /// Adds the newest picture. A picture that the user stopped at stays on the screen.
    pub fn push(&mut self, picture: Picture) {
        // Before the first fact there is no time to go back to.
        if self.pictures.back().is_some_and(|newest| newest.time_ns == 0) {
            return self.renew(picture);
        }
        self.rows += size(&picture);
        self.pictures.push_back(picture);
        while self.pictures.len() > MOST_PICTURES || (self.rows > MOST_ROWS && self.pictures.len() > 1) {
            if let Some(oldest) = self.pictures.pop_front() {
                self.rows -= size(&oldest);
            }
        }
        let oldest = self.pictures.len() - 1;
        self.frozen = self.frozen.map(|back| (back + 1).min(oldest));
        self.bound();
    }

    /// Replaces the newest picture: for pictures in between that are not kept.
    pub fn renew(&mut self, picture: Picture) {
        if let Some(newest) = self.pictures.back_mut() {
            self.rows = self.rows + size(&picture) - size(newest);
            *newest = picture;
            self.bound();
        } else {
            self.push(picture);
        }
    }

    /// Returns the picture to show, unless there is none yet.
    #[must_use]
    pub fn picture(&self) -> Option<&Picture> {
        let last = self.pictures.len().checked_sub(1)?;
        self.pictures.get(last - self.frozen.unwrap_or(0).min(last))
    }

    /// Returns the current view.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Returns the text that rows must contain.
    #[must_use]
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Returns how far the picture shown is behind the newest, ns; `None` if the screen follows the newest.
    #[must_use]
    pub fn behind_ns(&self) -> Option<u64> {
        self.frozen?;
        let newest = self.pictures.back()?.time_ns;
        Some(newest.saturating_sub(self.picture()?.time_ns))
    }

    /// Returns the rows that the user chose for the current view.
    pub(crate) fn choice(&self) -> Choice<'_> {
        let (sorted, reversed) = self.sorting[self.view as usize];
        Choice {
            filter: &self.filter,
            sorted,
            reversed,
        }
    }

    /// Returns how many rows the view shows, and by how many columns it can be sorted.
    fn extent(&self, picture: &Picture) -> (usize, usize) {
        let choice = self.choice();
        match self.view {
            View::Queues => (queues::rows(choice, picture).len(), queues::COLUMNS.len()),
            View::Kernels => (kernels::rows(choice, picture).len(), kernels::COLUMNS.len()),
            View::Api => (api::rows(choice, picture).len(), api::COLUMNS.len()),
            View::Copies => (copies::rows(choice, picture).len(), copies::COLUMNS.len()),
            View::Rings => (rings::rows(choice, picture).len(), rings::COLUMNS.len()),
            View::Ioctls => (ioctls::rows(choice, picture).len(), ioctls::COLUMNS.len()),
            View::Processes => {
                let tree = processes::tree(picture);
                (processes::sorted(choice, &tree).len(), processes::COLUMNS.len())
            }
            View::Queue => (self.queue(picture).map_or(0, |queue| queue.packets.len()), 0),
        }
    }

    pub(crate) fn selected(&self) -> usize {
        self.selected[self.view as usize]
    }

    /// Returns the queue of [`View::Queue`], if it still exists.
    pub(crate) fn queue<'a>(&self, picture: &'a Picture) -> Option<&'a QueueRow> {
        let number = self.detail?;
        picture.queues.iter().find(|queue| queue.queue == number)
    }

    pub(crate) fn show(&mut self, view: View) {
        self.view = view;
        self.bound();
    }

    pub(crate) fn next_view(&mut self, step: usize) {
        let tabs = View::TABS.len();
        let at = (self.view as usize).min(tabs - 1);
        self.show(View::TABS[(at + step) % tabs]);
    }

    /// Opens the selected queue.
    pub(crate) fn open(&mut self) {
        if self.view == View::Queues
            && let Some(picture) = self.picture()
        {
            let selected = queues::rows(self.choice(), picture)
                .get(self.selected())
                .map(|row| row.queue);
            if selected.is_some() {
                self.detail = selected;
                self.show(View::Queue);
            }
        }
    }

    pub(crate) fn select(&mut self, change: impl Fn(usize) -> usize) {
        let place = self.view as usize;
        self.selected[place] = change(self.selected[place]);
        self.bound();
    }

    pub(crate) fn sort_by_next(&mut self, step: isize) {
        let columns = self.picture().map_or(0, |picture| self.extent(picture).1);
        if columns > 0 {
            let sorting = &mut self.sorting[self.view as usize];
            sorting.0 = (sorting.0 as isize + step).rem_euclid(columns as isize) as usize;
        }
    }

    pub(crate) fn reverse(&mut self) {
        let reversed = &mut self.sorting[self.view as usize].1;
        *reversed = !*reversed;
    }

    pub(crate) fn edit_filter(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.bound();
    }

    /// Stops at the picture that is shown, or follows the newest again.
    pub(crate) fn freeze(&mut self) {
        self.frozen = self.frozen.is_none().then_some(0);
        self.bound();
    }

    /// Moves to earlier (positive) or later pictures.
    pub(crate) fn look_back(&mut self, pictures: isize) {
        let most = self.pictures.len().saturating_sub(1);
        let back = self.frozen.unwrap_or(0) as isize + pictures;
        self.frozen = Some(back.clamp(0, most as isize) as usize);
        self.bound();
    }

    /// Keeps the selection on a row.
    fn bound(&mut self) {
        let rows = self.picture().map_or(0, |picture| self.extent(picture).0);
        let selected = &mut self.selected[self.view as usize];
        *selected = (*selected).min(rows.saturating_sub(1));
    }
}

fn size(picture: &Picture) -> usize {
    // A queue's row needs about as much memory as four other rows: it contains its last packets.
    4 * picture.queues.len()
        + picture.kernels.len()
        + picture.rings.len()
        + picture.ioctls.len()
        + picture.api.len()
        + picture.copies.len()
        + picture.processes.len()
        + 1
}
