//! The thread that pushes metrics.

use std::{
    sync::mpsc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use prost::Message;
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    time::{Instant, sleep_until},
};
use tracer_core::metrics::Family;

use crate::{
    client::{Client, Failure, Taken},
    ended::Series,
    error::TargetError,
    request::{Origin, Times, request},
    target::Target,
};

/// What a pusher did. A message that the end interrupted does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of messages that the collector took.
    pub taken: u64,
    /// Number of messages that it did not take.
    pub failed: u64,
    /// Number of points that it refused in the messages that it took.
    pub refused_points: u64,
    /// Whether it took the last message, with the last values.
    pub has_last: bool,
}

/// A thread that pushes metrics at intervals until it is told to end. Dropping the value also ends the thread, without a last push.
///
/// There is no queue and no second attempt: counters are cumulative, so each message contains what the ones before contained. After
/// a failure, the collector misses points in time and no counts.
#[derive(Debug)]
pub struct Pusher {
    /// Dropping the sender stops the thread; a message makes it push a last time before.
    stop: oneshot::Sender<()>,
    end: mpsc::Receiver<Counts>,
    patience: Duration,
}

/// When the first push is due, at the latest: a collector that does not work is reported soon, and the state of a capture is known
/// by then.
const FIRST: Duration = Duration::from_secs(2);
/// How much longer than the last push the end may take: the values are read before it, and the thread ends after it.
const SLACK: Duration = Duration::from_secs(1);

impl Pusher {
    /// Starts the thread. `families` returns every metric; its counters were 0 when the thread starts.
    ///
    /// # Errors
    /// Returns [`TargetError::System`] or [`TargetError::Thread`].
    pub fn start(
        target: &Target,
        origin: Origin,
        families: impl FnMut() -> Vec<Family> + Send + 'static,
    ) -> Result<Self, TargetError> {
        let client = Client::new(target, &format!("tracer/{}", origin.version))?;
        // Names are looked up in a thread, which may hang for long: there is at most one.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(1)
            .build()
            .map_err(TargetError::Thread)?;
        let (stop, stopped) = oneshot::channel();
        let (done, end) = mpsc::channel();
        let pushing = Pushing {
            client,
            target: target.clone(),
            origin,
            families,
            start_ns: unix_ns(),
            known: Series::default(),
            counts: Counts::default(),
            state: State::New,
        };
        let thread = thread::Builder::new().name("otlp".to_owned());
        let body = move || {
            let counts = run(runtime, pushing, stopped);
            // Nobody listens if the pusher was dropped.
            let _ = done.send(counts);
        };
        thread.spawn(body).map_err(TargetError::Thread)?;
        let patience = target.limits.last + SLACK;
        Ok(Self { stop, end, patience })
    }

    /// Makes the thread push a last time, waits for that, and returns what the thread did. It takes at most [`Limits::last`] and
    /// one second; after that the thread is left to itself, and its counts are unknown.
    ///
    /// [`Limits::last`]: crate::Limits::last
    #[must_use]
    pub fn finish(self) -> Option<Counts> {
        // The thread is gone if it panicked.
        let _ = self.stop.send(());
        self.end.recv_timeout(self.patience).ok()
    }
}

fn run<F: FnMut() -> Vec<Family>>(runtime: Runtime, mut pushing: Pushing<F>, stopped: oneshot::Receiver<()>) -> Counts {
    runtime.block_on(pushing.until(stopped));
    // A look-up of a name that hangs is not waited for.
    runtime.shutdown_background();
    pushing.counts
}

/// The state of a collector. Each change is logged once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing was sent yet.
    New,
    Works,
    /// It takes messages, but not all points.
    Refuses,
    Fails,
}

struct Pushing<F> {
    client: Client,
    target: Target,
    origin: Origin,
    families: F,
    start_ns: u64,
    /// The series that the collector knows.
    known: Series,
    counts: Counts,
    state: State,
}

impl<F: FnMut() -> Vec<Family>> Pushing<F> {
    /// Pushes at each interval, and a last time when it is told to end.
    async fn until(&mut self, mut stopped: oneshot::Receiver<()>) {
        let limits = self.target.limits;
        let mut next = Instant::now() + self.target.interval.min(FIRST);
        let ended = loop {
            tokio::select! {
                ended = &mut stopped => break ended,
                () = sleep_until(next) => {}
            }
            let began = Instant::now();
            // The last push takes the place of one that is under way: it has later values. Nobody knows whether the collector took
            // that one, so it does not count.
            let pause = tokio::select! {
                ended = &mut stopped => break ended,
                pause = self.push(limits.push) => pause,
            };
            next = (began + self.target.interval).max(Instant::now() + pause.unwrap_or_default());
        };
        if ended.is_ok() {
            self.push(limits.last).await;
        }
    }

    /// Pushes the current values. Returns how long the collector demands not to be asked.
    async fn push(&mut self, limit: Duration) -> Option<Duration> {
        let families = (self.families)();
        let series = Series::in_families(&families);
        let times = Times {
            start_ns: self.start_ns,
            // The clock of the machine can be set back.
            now_ns: unix_ns().max(self.start_ns),
        };
        let message = request(&families, &self.known.without(&series), &self.origin, times);
        // A collector may have taken a message whose answer did not arrive.
        self.known.add(&series);
        match self.client.send(message.encode_to_vec(), limit).await {
            Ok(taken) => {
                self.known = series;
                self.took(&taken);
                None
            }
            Err(failure) => self.failed(&failure),
        }
    }

    fn took(&mut self, taken: &Taken) {
        self.counts.taken += 1;
        self.counts.has_last = true;
        self.counts.refused_points += taken.refused;
        let state = if taken.refused > 0 {
            State::Refuses
        } else {
            State::Works
        };
        let before = self.changes_to(state);
        let url = &self.target.url;
        match (before, state) {
            (None, _) => {}
            (_, State::Refuses) => log::warn!("{url} refuses {} points of the metrics: {}", taken.refused, taken.text),
            (Some(State::New), _) => log::info!("{url} takes the metrics"),
            (Some(_), _) => log::warn!("{url} takes the metrics again"),
        }
    }

    fn failed(&mut self, failure: &Failure) -> Option<Duration> {
        self.counts.failed += 1;
        self.counts.has_last = false;
        if self.changes_to(State::Fails).is_some() {
            log::warn!(
                "{} does not take the metrics: {failure}; tracer goes on trying",
                self.target.url
            );
        }
        match failure {
            Failure::Refused { pause, .. } => *pause,
            Failure::Connection(_) | Failure::Late(_) => None,
        }
    }

    /// Sets the state. Returns the state before, if it was another one.
    fn changes_to(&mut self, state: State) -> Option<State> {
        let before = std::mem::replace(&mut self.state, state);
        (before != state).then_some(before)
    }
}

/// Returns the time in ns since 1970.
fn unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
