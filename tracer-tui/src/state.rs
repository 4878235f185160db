//! What is looked at, and how.

use std::collections::VecDeque;

use tracer_core::live::{Picture, QueueRow};

use crate::{picks, views::queues};

/// Pictures that are kept for looking back.
const MOST_PICTURES: usize = 600;
/// Rows in all of these at the most: with 1000 queues the past is shorter.
const MOST_ROWS: usize = 120_000;

/// What the body shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All queues.
    Queues,
    /// Kernels.
    Kernels,
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
    /// Those with a number key, in its order.
    pub const TABS: [Self; 5] = [Self::Queues, Self::Kernels, Self::Rings, Self::Ioctls, Self::Processes];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Kernels => "kernels",
            Self::Rings => "rings",
            Self::Ioctls => "ioctls",
            Self::Processes => "processes",
            Self::Queue => "queue",
        }
    }

    const fn place(self) -> usize {
        match self {
            Self::Queues => 0,
            Self::Kernels => 1,
            Self::Rings => 2,
            Self::Ioctls => 3,
            Self::Processes => 4,
            Self::Queue => 5,
        }
    }
}

/// What does not come out of facts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What is looked at: a command, processes, a trace.
    pub source: String,
    /// The GPU is simulated.
    pub simulated: bool,
    /// What nobody watches.
    pub blind: Vec<String>,
    /// Of a replay: its speed.
    pub speed: Option<u32>,
    /// What was watched has ended.
    pub ended: bool,
    /// Where what is seen is being recorded.
    pub recording: Option<String>,
    /// The last thing that was done or went wrong.
    pub message: Option<String>,
}

/// The state of the screen.
#[derive(Debug)]
pub struct Top {
    view: View,
    /// Sort column and whether it is reversed, by view.
    sorting: [(usize, bool); 6],
    selected: [usize; 6],
    filter: String,
    /// Characters go into the filter.
    pub(crate) editing: bool,
    pub(crate) help: bool,
    /// Number of the queue in [`View::Queue`].
    detail: Option<u32>,
    pictures: VecDeque<Picture>,
    rows: usize,
    /// The picture that is held, counted from the newest; `None`: the newest, whatever comes.
    held: Option<usize>,
    /// What does not come out of facts.
    pub status: Status,
    /// Colours may be used.
    pub colours: bool,
    /// The first row that was drawn, and where the rows began: for the mouse.
    pub(crate) drawn: std::cell::Cell<(usize, u16)>,
}

impl Top {
    /// Shows the queues, and nothing yet.
    #[must_use]
    pub fn new(status: Status) -> Self {
        Self {
            view: View::Queues,
            sorting: [
                (queues::FIRST, false),
                (0, false),
                (0, false),
                (0, false),
                (0, false),
                (0, false),
            ],
            selected: [0; 6],
            filter: String::new(),
            editing: false,
            help: false,
            detail: None,
            pictures: VecDeque::new(),
            rows: 0,
            held: None,
            status,
            colours: true,
            drawn: std::cell::Cell::new((0, 0)),
        }
    }

    /// Takes the newest picture. A held one stays on the screen.
    pub fn push(&mut self, picture: Picture) {
        self.rows += size(&picture);
        self.pictures.push_back(picture);
        if let Some(back) = &mut self.held {
            *back += 1;
        }
        while self.pictures.len() > MOST_PICTURES || (self.rows > MOST_ROWS && self.pictures.len() > 1) {
            if let Some(oldest) = self.pictures.pop_front() {
                self.rows -= size(&oldest);
            }
        }
        if let Some(back) = &mut self.held {
            *back = (*back).min(self.pictures.len() - 1);
        }
        self.bound();
    }

    /// Takes the place of the newest picture: between two that are kept.
    pub fn renew(&mut self, picture: Picture) {
        if let Some(newest) = self.pictures.back_mut() {
            self.rows = self.rows + size(&picture) - size(newest);
            *newest = picture;
            self.bound();
        } else {
            self.push(picture);
        }
    }

    /// The picture to show, unless there is none yet.
    #[must_use]
    pub fn picture(&self) -> Option<&Picture> {
        let last = self.pictures.len().checked_sub(1)?;
        self.pictures.get(last - self.held.unwrap_or(0).min(last))
    }

    /// What the body shows.
    #[must_use]
    pub fn view(&self) -> View {
        self.view
    }

    /// Text that rows must contain.
    #[must_use]
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// How far the picture shown lies behind the newest, ns; `None` if it is the newest, whatever comes.
    #[must_use]
    pub fn behind_ns(&self) -> Option<u64> {
        self.held?;
        let newest = self.pictures.back()?.time_ns;
        Some(newest.saturating_sub(self.picture()?.time_ns))
    }

    pub(crate) fn sorting(&self) -> (usize, bool) {
        self.sorting[self.view.place()]
    }

    pub(crate) fn selected(&self) -> usize {
        self.selected[self.view.place()]
    }

    /// The queue of [`View::Queue`], if it is still there.
    pub(crate) fn queue<'a>(&self, picture: &'a Picture) -> Option<&'a QueueRow> {
        let number = self.detail?;
        picture.queues.iter().find(|queue| queue.queue == number)
    }

    pub(crate) fn detail(&self) -> Option<u32> {
        self.detail
    }

    pub(crate) fn show(&mut self, view: View) {
        self.view = view;
        self.bound();
    }

    pub(crate) fn next_view(&mut self, step: usize) {
        let tabs = View::TABS.len();
        let at = self.view.place().min(tabs - 1);
        self.show(View::TABS[(at + step) % tabs]);
    }

    /// Opens the selected queue.
    pub(crate) fn open(&mut self) {
        if self.view == View::Queues
            && let Some(picture) = self.picture()
        {
            let selected = queues::rows(self, picture).get(self.selected()).map(|row| row.queue);
            if selected.is_some() {
                self.detail = selected;
                self.show(View::Queue);
            }
        }
    }

    pub(crate) fn select(&mut self, change: impl Fn(usize) -> usize) {
        let place = self.view.place();
        self.selected[place] = change(self.selected[place]);
        self.bound();
    }

    pub(crate) fn sort_by_next(&mut self, step: isize) {
        let columns = self.picture().map_or(0, |picture| picks::extent(self, picture).1);
        if columns > 0 {
            let sorting = &mut self.sorting[self.view.place()];
            sorting.0 = (sorting.0 as isize + step).rem_euclid(columns as isize) as usize;
        }
    }

    pub(crate) fn reverse(&mut self) {
        let reversed = &mut self.sorting[self.view.place()].1;
        *reversed = !*reversed;
    }

    pub(crate) fn edit_filter(&mut self, change: impl FnOnce(&mut String)) {
        change(&mut self.filter);
        self.bound();
    }

    /// Holds what is shown, or follows again.
    pub(crate) fn hold(&mut self) {
        self.held = match self.held {
            None => Some(0),
            Some(_) => None,
        };
        self.bound();
    }

    /// Looks at earlier (positive) or later pictures.
    pub(crate) fn look_back(&mut self, pictures: isize) {
        let most = self.pictures.len().saturating_sub(1);
        let back = self.held.unwrap_or(0) as isize + pictures;
        self.held = Some(back.clamp(0, most as isize) as usize);
        self.bound();
    }

    /// The selection stays on a row.
    fn bound(&mut self) {
        let rows = self.picture().map_or(0, |picture| picks::extent(self, picture).0);
        let selected = &mut self.selected[self.view.place()];
        *selected = (*selected).min(rows.saturating_sub(1));
    }
}

fn size(picture: &Picture) -> usize {
    // A queue's row is worth about four of the others: it carries its last packets.
    4 * picture.queues.len()
        + picture.kernels.len()
        + picture.rings.len()
        + picture.ioctls.len()
        + picture.processes.len()
        + 1
}
