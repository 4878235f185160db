//! A real browser without windows that opens a page.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::{place, running::wait_for};

/// The result of opening a page in a browser.
pub struct Seen {
    /// The final document, as HTML.
    pub document: String,
    /// The page's messages on the console, including errors of its script and of its rules.
    pub console: Vec<String>,
    /// The addresses that the browser requested, from any server.
    pub requests: Vec<String>,
}

/// A running browser. Dropping the value kills it with all its processes.
struct Chromium(Child);

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A picture to take of a page.
#[derive(Clone, Copy)]
pub struct Picture<'a> {
    /// The file (PNG).
    pub path: &'a Path,
    /// Width and height of the window, in pixels of the page.
    pub size: (u32, u32),
    /// Pixels of the picture for a pixel of the page.
    pub scale: f32,
}

/// Opens a page and waits until some seconds of the browser's virtual time have passed: its timers advance whenever it waits for no
/// response. Takes the picture, if one is wanted, at the end.
///
/// # Panics
/// Panics if the browser does not exit, or exits without success.
#[must_use]
pub fn open_page(folder: &Path, url: &str, seconds: u32, picture: Option<Picture<'_>>) -> Seen {
    let file = |name: &str| folder.join(format!("browser.{name}"));
    let mut command = Command::new(place::browser().join("chromium"));
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args([
            "--enable-logging=stderr",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args(["--disable-component-update", "--dump-dom"])
        .arg(format!("--user-data-dir={}", file("data").display()))
        .arg(format!("--log-net-log={}", file("net").display()))
        .arg(format!("--virtual-time-budget={seconds}000"));
    if let Some(Picture {
        path,
        size: (width, height),
        scale,
    }) = picture
    {
        command
            .arg(format!("--screenshot={}", path.display()))
            .arg(format!("--window-size={width},{height}"))
            .arg(format!("--force-device-scale-factor={scale}"))
            .arg("--hide-scrollbars");
    }
    command
        .arg(url)
        .env("HOME", folder)
        .env("XDG_CACHE_HOME", file("cache"))
        .env("XDG_CONFIG_HOME", file("config"));
    // Writes the output to files, because pipes would have to be read while the browser runs.
    let made = |name| File::create(file(name)).expect("it can be made");
    let child = command
        .stdin(Stdio::null())
        .stdout(made("html"))
        .stderr(made("log"))
        .spawn()
        .expect("Chromium runs");
    let mut chromium = Chromium(child);
    let read = |name| String::from_utf8_lossy(&fs::read(file(name)).expect("it is there")).into_owned();
    let status = wait_for("the browser's end", || chromium.0.try_wait().expect("a child"));
    let log = read("log");
    assert!(status.success(), "Chromium ended with {status}:\n{log}");
    let lines = log.lines().filter(|line| line.contains(":CONSOLE"));
    Seen {
        document: read("html"),
        console: lines.map(str::to_owned).collect(),
        requests: requests(&read("net")),
    }
}

/// Returns the addresses in Chromium's network log: of each request and each redirection.
fn requests(log: &str) -> Vec<String> {
    let log: Value = serde_json::from_str(log).expect("a log of the network");
    let start = &log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"];
    assert!(start.is_u64(), "the log knows no requests");
    let events = log["events"].as_array().expect("events").iter();
    events
        .filter(|event| event["type"] == *start)
        .filter_map(|event| Some(event["params"]["url"].as_str()?.to_owned()))
        .collect()
}
