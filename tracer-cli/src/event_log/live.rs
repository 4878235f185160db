//! `record --log`: prints each row when the recorder has it.

use std::{
    io,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::JoinHandle,
};

use tracer_core::{
    tables::{Fact, Record, Table},
    words::count,
};

use super::{columns, line};
use crate::say::{self, say};

/// Rows that wait for the thread that prints. A terminal is slower than a GPU's queue.
const WAITING: usize = 1 << 14;
/// Bytes that are printed at once.
const CHUNK: usize = 1 << 16;

/// Rows on their way to standard error. The recorder never waits for its reader.
#[derive(Debug)]
pub struct LiveLog {
    rows: SyncSender<Fact>,
    /// Rows that found no room.
    left_out: u64,
    thread: JoinHandle<()>,
}

impl LiveLog {
    /// Starts the thread that prints. `zero`: the start of the recording, from which lines count their times.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(zero: u64) -> io::Result<Self> {
        let (rows, inbox) = mpsc::sync_channel(WAITING);
        let thread = std::thread::Builder::new().name("log".to_owned());
        Ok(Self {
            rows,
            left_out: 0,
            thread: thread.spawn(move || print(&inbox, zero))?,
        })
    }

    /// Passes a row on, or counts it if too many wait.
    pub fn add(&mut self, fact: &Fact) {
        if !columns(Table::of(fact)).is_empty() && self.rows.try_send(fact.clone()).is_err() {
            self.left_out += 1;
        }
    }

    /// Prints the rest.
    pub fn finish(self) {
        drop(self.rows);
        // A thread that ended by a panic prints nothing more.
        let _ = self.thread.join();
        if self.left_out > 0 {
            say!(
                "log        {} left out, because their reader was too slow; the trace has them",
                count(self.left_out, "line")
            );
        }
    }
}

fn print(inbox: &Receiver<Fact>, zero: u64) {
    let mut text = Vec::new();
    while let Ok(first) = inbox.recv() {
        write(&mut text, &first, zero);
        while text.len() < CHUNK
            && let Ok(next) = inbox.try_recv()
        {
            write(&mut text, &next, zero);
        }
        say::words(&String::from_utf8_lossy(&text));
        text.clear();
    }
}

fn write(text: &mut Vec<u8>, fact: &Fact, zero: u64) {
    // Memory takes it.
    let _ = line(text, &Record::of(fact), fact.time_ns(), zero);
}
