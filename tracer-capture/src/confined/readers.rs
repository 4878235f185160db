//! The recorder's readers. Only the thread that makes a request waits for its answer, and only until a deadline.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    answer::{Answer, ReadError, Shape},
    channel::Message,
    request::Request,
    spawner::{Child, Kind, Spawner},
};
use crate::CaptureError;

/// The maximum number of readers that one user's files and memory can occupy at a time, blocked readers included.
pub const MAX_PER_USER: usize = 4;
/// The maximum number of blocked readers of all users together. A party that controls more users than this allows for can keep the
/// new files and memory of other users from being examined, but never causes a pause.
const MAX_BLOCKED: usize = 64;
/// The maximum number of readers that wait for work.
const MAX_IDLE: usize = 4;
/// The interval at which a request that waits for a place checks for blocked readers that have gone.
const AGAIN: Duration = Duration::from_millis(20);

/// The readers of a recorder. Clones share the same readers.
#[derive(Clone)]
pub struct Readers {
    shared: Arc<Shared>,
}

struct Shared {
    spawner: Spawner,
    state: Mutex<State>,
    /// Notified when a request has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Arc<Child>>,
    users: HashMap<u32, User>,
    /// The time after which a request that is under way counts as blocked; `None` if there is no such time.
    slow: Option<Duration>,
}

/// The readers that one user occupies.
#[derive(Default)]
struct User {
    /// The start of each request that is under way.
    busy: Vec<Instant>,
    blocked: Vec<Arc<Child>>,
}

impl State {
    /// Forgets blocked readers that the kernel has let go.
    fn forget_gone(&mut self) {
        self.users.retain(|_, user| {
            user.blocked.retain(|child| !child.has_ended());
            !user.busy.is_empty() || !user.blocked.is_empty()
        });
    }

    /// Takes one of the user's places. A request that takes longer than `slow` counts as blocked, and no other request waits for
    /// its place.
    fn occupy(&mut self, user: u32) -> Result<Instant, ReadError> {
        self.forget_gone();
        let blocked: usize = self.users.values().map(|user| user.blocked.len()).sum();
        let of_user = self.users.entry(user).or_default();
        let now = Instant::now();
        let is_late = |began: &&Instant| self.slow.is_some_and(|slow| now - **began >= slow);
        let late = of_user.busy.iter().filter(is_late).count();
        if of_user.blocked.len() + late >= MAX_PER_USER || blocked >= MAX_BLOCKED {
            return Err(ReadError::NotExamined);
        }
        if of_user.blocked.len() + of_user.busy.len() >= MAX_PER_USER {
            return Err(ReadError::Busy);
        }
        of_user.busy.push(now);
        Ok(now)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Readers {
    /// Forks the process that forks readers and parsers.
    ///
    /// # Errors
    /// Fails with [`CaptureError::System`] if the process can't be created or confined.
    ///
    /// # Safety
    /// Call it while the process has one thread: the child runs Rust code after a fork. If it is called after the guardian was
    /// forked, neither process keeps a descriptor of the other open.
    pub unsafe fn start() -> Result<Self, CaptureError> {
        let shared = Shared {
            // SAFETY: by this function's contract.
            spawner: unsafe { Spawner::start() }?,
            state: Mutex::default(),
            ended: Condvar::new(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Sets the time after which a request counts as blocked, although its answer is still awaited. Without this call no request
    /// counts as blocked before its deadline.
    pub fn count_as_blocked_after(&self, slow: Duration) {
        self.shared.state().slow = Some(slow);
    }

    /// Forks as many readers as may wait for work, in the background. What a request is for may be gone by the time a new reader
    /// runs: a fork takes milliseconds on a busy machine.
    ///
    /// # Errors
    /// Fails with the errors of creating a thread.
    pub fn prepare(&self) -> io::Result<()> {
        let readers = self.clone();
        let fork = move || {
            while readers.shared.state().idle.len() < MAX_IDLE {
                // Without them, the next request reports what is wrong.
                let Ok(child) = readers.spawn(Kind::Reader) else { return };
                readers.shared.state().idle.push(Arc::new(child));
            }
        };
        std::thread::Builder::new().name("readers".to_owned()).spawn(fork)?;
        Ok(())
    }

    pub(super) fn spawn(&self, kind: Kind) -> io::Result<Child> {
        self.shared.spawner.spawn(kind)
    }

    /// Asks a reader about a process of `user` (see [`super::user_of`]), and waits for this answer only, until `deadline` at the
    /// longest.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn request(&self, user: u32, request: &Request, deadline: Instant) -> Result<Answer, ReadError> {
        self.again(user, request, None, deadline)
    }

    /// Asks as [`Self::request`] does, with the file that [`Request::Again`] refers to.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn again(
        &self,
        user: u32,
        request: &Request,
        file: Option<BorrowedFd<'_>>,
        deadline: Instant,
    ) -> Result<Answer, ReadError> {
        let once = || {
            let began = self.await_place(user, deadline)?;
            self.begin_occupied(user, began, request, file)?.wait(deadline)
        };
        match once() {
            Err(error) if may_pass(error) => once(),
            done => done,
        }
    }

    /// Asks a reader without waiting. The caller takes the answer from the returned value; dropping that value abandons the reader.
    ///
    /// # Errors
    /// Fails with a [`ReadError`]; no request is under way then.
    pub fn begin(&self, user: u32, request: &Request, file: Option<BorrowedFd<'_>>) -> Result<Pending, ReadError> {
        let began = self.shared.state().occupy(user)?;
        self.begin_occupied(user, began, request, file)
    }

    /// Returns the number of blocked readers of each user, with the user's id.
    #[must_use]
    pub fn blocked(&self) -> Vec<(u32, usize)> {
        let mut state = self.shared.state();
        state.forget_gone();
        let users = state.users.iter().map(|(&user, of)| (user, of.blocked.len()));
        users.filter(|(_, count)| *count > 0).collect()
    }

    /// Returns the process id of the process that forks readers and parsers.
    #[must_use]
    pub fn spawner_pid(&self) -> u32 {
        self.shared.spawner.pid
    }

    /// Returns the process ids of the readers that wait for work.
    #[must_use]
    pub fn idle_pids(&self) -> Vec<u32> {
        self.shared.state().idle.iter().map(|child| child.pid).collect()
    }

    /// Takes one of the user's places, as soon as one is free.
    fn await_place(&self, user: u32, deadline: Instant) -> Result<Instant, ReadError> {
        let mut state = self.shared.state();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match state.occupy(user) {
                Err(ReadError::Busy) if !left.is_zero() => {
                    let waited = self.shared.ended.wait_timeout(state, left.min(AGAIN));
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                done => return done,
            }
        }
    }

    fn begin_occupied(
        &self,
        user: u32,
        began: Instant,
        request: &Request,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<Pending, ReadError> {
        // Gives the place back when it is dropped, on every path.
        let place = Place {
            shared: Arc::clone(&self.shared),
            user,
            began,
        };
        // Another process may have killed an idle reader in between.
        loop {
            let idle = self.shared.state().idle.pop();
            let is_new = idle.is_none();
            let child = match idle {
                Some(child) => child,
                None => Arc::new(self.spawn(Kind::Reader).map_err(|_| ReadError::Gone)?),
            };
            // The reader is idle, so there is room for the whole message.
            match child.channel.send_until(request, file.as_slice(), Instant::now()) {
                Ok(()) => {
                    return Ok(Pending {
                        child,
                        request: Shape::of(request),
                        answered: false,
                        place,
                    });
                }
                Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) => {
                    return Err(ReadError::Refused(libc::EMSGSIZE));
                }
                Err(_) if is_new => return Err(ReadError::Gone),
                Err(_) => {}
            }
        }
    }
}

/// Returns whether a second try at once can succeed: the reader was killed while it was idle, or the system refused for the moment.
/// A file or process that does not exist stays so.
fn may_pass(error: ReadError) -> bool {
    match error {
        ReadError::Gone => true,
        ReadError::Refused(number) => !matches!(number, libc::ENOENT | libc::ESRCH),
        _ => false,
    }
}

/// One of a user's places, until it is dropped.
struct Place {
    shared: Arc<Shared>,
    user: u32,
    began: Instant,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(user) = self.shared.state().users.get_mut(&self.user)
            && let Some(at) = user.busy.iter().position(|&began| began == self.began)
        {
            user.busy.swap_remove(at);
        }
        self.shared.ended.notify_all();
    }
}

/// A request that is under way. Its descriptor becomes readable when the answer is there.
pub struct Pending {
    child: Arc<Child>,
    request: Shape,
    answered: bool,
    place: Place,
}

impl Pending {
    /// Returns the process id of the reader, for reports only.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.pid
    }

    /// Returns the answer, once, if it is there.
    pub fn take(&mut self) -> Option<Result<Answer, ReadError>> {
        if self.answered {
            return None;
        }
        let message = self.child.channel.try_receive().transpose()?;
        let message = message.map_err(|_| ReadError::Gone);
        Some(message.and_then(|message| self.answer(message)))
    }

    /// Waits for the answer; if it does not come before `deadline`, abandons the reader.
    ///
    /// # Errors
    /// Fails with a [`ReadError`].
    pub fn wait(mut self, deadline: Instant) -> Result<Answer, ReadError> {
        match self.child.channel.receive_until(deadline) {
            Ok(message) => self.answer(message),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => Err(ReadError::Blocked),
            Err(_) => Err(ReadError::Gone),
        }
    }

    fn answer(&mut self, message: Message) -> Result<Answer, ReadError> {
        let answer = self.request.answer(message);
        // A reader whose answer makes no sense is not asked again.
        self.answered = !matches!(answer, Err(ReadError::Gone));
        answer
    }
}

impl AsFd for Pending {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.child.channel.as_fd()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut state = self.place.shared.state();
        let child = Arc::clone(&self.child);
        if !self.answered {
            child.kill();
            state.users.entry(self.place.user).or_default().blocked.push(child);
        } else if state.idle.len() < MAX_IDLE {
            state.idle.push(child);
        }
    }
}
