//! A terminal for a program under test, and the text on its screen.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::process::CommandExt,
    },
    process::{Child, Command, ExitStatus},
    time::{Duration, Instant},
};

/// The number of rows and columns.
pub const SIZE: (u16, u16) = (40, 120);
/// The time limit for any single wait.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program in its own terminal.
pub struct Terminal {
    master: File,
    /// Kept open, so that the terminal's settings outlive the program.
    slave: OwnedFd,
    child: Child,
    parser: vt100::Parser,
    written: Vec<u8>,
    before: Settings,
}

/// The settings of a terminal that a program may change, and must restore.
#[derive(Debug, PartialEq, Eq)]
struct Settings {
    input: u32,
    output: u32,
    local: u32,
}

impl Terminal {
    /// Starts the program.
    ///
    /// # Panics
    /// Panics if the machine has no terminals.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        let (mut master, mut slave) = (-1, -1);
        let size = libc::winsize {
            ws_row: SIZE.0,
            ws_col: SIZE.1,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the pointers are valid or null, as openpty requires.
        let opened = unsafe { libc::openpty(&mut master, &mut slave, std::ptr::null_mut(), std::ptr::null(), &size) };
        assert_eq!(opened, 0, "a terminal: {}", io::Error::last_os_error());
        for end in [master, slave] {
            // SAFETY: the descriptor is open. A program that inherits the master keeps its own terminal from hanging up.
            unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
        // SAFETY: both descriptors are open and have no other owner.
        let (master, slave) = unsafe { (File::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) };
        let own = || slave.try_clone().expect("a descriptor");
        command
            .stdin(own())
            .stdout(own())
            .stderr(own())
            .env("TERM", "xterm-256color");
        // SAFETY: both calls are allowed after a fork of a program with threads.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let before = settings(&slave);
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(master.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        Self {
            child: command.spawn().expect("the program starts"),
            master,
            slave,
            parser: vt100::Parser::new(SIZE.0, SIZE.1, 0),
            written: Vec::new(),
            before,
        }
    }

    /// Waits until the screen shows the wanted text.
    ///
    /// # Panics
    /// Panics if it never does.
    pub fn wait_for(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            self.read();
            let shown = self.parser.screen().contents();
            if wanted(&shown) {
                return shown;
            }
            assert!(began.elapsed() < PATIENCE, "this is all that came:\n{shown}");
        }
    }

    /// Presses keys.
    ///
    /// # Panics
    /// Panics if the terminal is gone.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Sends a signal to the program.
    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so the id is still its own.
        unsafe { libc::kill(self.child.id().cast_signed(), signal) };
    }

    /// Sets another size, as a terminal may.
    ///
    /// # Panics
    /// Panics if the terminal is gone.
    pub fn resize(&self, rows: u16, columns: u16) {
        let size = libc::winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        // SAFETY: the descriptor is open, and the struct has the right type.
        let done = unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        assert_eq!(done, 0, "resizing: {}", io::Error::last_os_error());
    }

    /// Returns every byte that the program has written.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.written
    }

    /// Returns the program's process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Closes the terminal, as when its window is closed, and waits for the program's exit: `None` if the program continues.
    ///
    /// # Panics
    /// Panics if it cannot be waited for.
    #[must_use]
    pub fn hang_up(mut self, patience: Duration) -> Option<ExitStatus> {
        let nothing = || File::open("/dev/null").expect("/dev/null");
        (self.master, self.slave) = (nothing(), nothing().into());
        let began = Instant::now();
        while began.elapsed() < patience {
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// Waits for the program's exit, and checks that the terminal is restored.
    ///
    /// # Panics
    /// Panics if it is not restored, or if the program continues.
    pub fn end(mut self) -> (ExitStatus, String) {
        let began = Instant::now();
        let status = loop {
            self.read();
            if let Some(status) = self.child.try_wait().expect("it can be waited for") {
                break status;
            }
            if began.elapsed() > PATIENCE {
                let _ = self.child.kill();
                panic!("it does not end:\n{}", self.parser.screen().contents());
            }
        };
        self.read();
        let screen = self.parser.screen();
        assert!(!screen.alternate_screen(), "the other screen is still shown");
        assert!(!screen.hide_cursor(), "the cursor is still hidden");
        assert_eq!(
            screen.mouse_protocol_mode(),
            vt100::MouseProtocolMode::None,
            "the mouse is still caught"
        );
        assert_eq!(
            settings(&self.slave),
            self.before,
            "the terminal's settings are changed"
        );
        (status, screen.contents())
    }

    /// Reads the available output, or waits briefly.
    fn read(&mut self) {
        let mut bytes = [0; 4096];
        match self.master.read(&mut bytes) {
            Ok(n) if n > 0 => {
                self.written.extend_from_slice(&bytes[..n]);
                self.parser.process(&bytes[..n]);
            }
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

impl Drop for Terminal {
    /// Kills the program. A failing test leaves no program behind: it would continue to watch, and keep its files open.
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_none()) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn settings(terminal: &OwnedFd) -> Settings {
    // SAFETY: plain data, for which all-zero is a valid value.
    let mut now: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and the struct has the right type.
    let read = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &mut now) };
    assert_eq!(read, 0, "settings: {}", io::Error::last_os_error());
    Settings {
        input: now.c_iflag,
        output: now.c_oflag,
        local: now.c_lflag,
    }
}
