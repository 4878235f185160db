//! A real Prometheus on loopback that scrapes what a test serves, and promtool.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{Read, Seek, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
};

use serde_json::Value;

use crate::{place, running::wait_for};

/// The labels of a series, including its name.
pub type Labels = BTreeMap<String, String>;

/// The running server. Dropping the value kills it.
pub struct Prometheus {
    process: Child,
    address: String,
}

impl Prometheus {
    /// Starts a server with its files in that folder. It scrapes the addresses, and evaluates the rules in a file, every second.
    #[must_use]
    pub fn start(folder: &Path, targets: &[&str], rules: &Path) -> Self {
        let config = folder.join("prometheus.yml");
        // JSON is YAML with quotes.
        let text = serde_json::json!({
            "global": { "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s" },
            "rule_files": [rules],
            "scrape_configs": [{ "job_name": "tracer", "static_configs": [{ "targets": targets }] }],
        });
        fs::write(&config, text.to_string()).expect("it can be written");
        let mut command = Command::new(place::monitors().join("prometheus"));
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()))
            .arg("--web.listen-address=127.0.0.1:0");
        // Writes the output to a file, because a pipe would have to be read while the server runs.
        let log = folder.join("prometheus.log");
        let out = File::create(&log).expect("it can be made");
        let process = command
            .stdout(Stdio::null())
            .stderr(out)
            .spawn()
            .expect("Prometheus runs");
        let mut prometheus = Self {
            process,
            address: String::new(),
        };
        prometheus.address = wait_for("Prometheus", || {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let ended = prometheus.process.try_wait().expect("a child");
            assert!(ended.is_none(), "Prometheus ended with {ended:?}:\n{said}");
            listens_on(&said).map(str::to_owned)
        });
        wait_for("its storage", || (prometheus.get("/-/ready").0 == "200").then_some(()));
        prometheus
    }

    /// Returns the current result of a query.
    ///
    /// # Errors
    /// Returns the error message of Prometheus.
    pub fn query(&self, expression: &str) -> Result<Vec<(Labels, f64)>, String> {
        let answer = self.ask(&format!("/api/v1/query?query={}", escaped(expression)));
        if answer["status"] != "success" {
            return Err(answer["error"].to_string());
        }
        let data = &answer["data"];
        let series = match data["resultType"].as_str() {
            Some("vector") => data["result"].as_array().expect("a list").clone(),
            _ => return Err(format!("no vector: {data}")),
        };
        let one = |series: &Value| {
            let labels = serde_json::from_value(series["metric"].clone()).expect("labels");
            let number = series["value"][1].as_str().and_then(|number| number.parse().ok());
            (labels, number.expect("a number"))
        };
        Ok(series.iter().map(one).collect())
    }

    /// Returns the only number that a query gives; `None` if it gives none.
    ///
    /// # Panics
    /// Panics if Prometheus does not understand the query, or if there are several numbers.
    #[must_use]
    pub fn number(&self, expression: &str) -> Option<f64> {
        let found = self
            .query(expression)
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        assert!(found.len() < 2, "{expression}: {found:?}");
        found.first().map(|(_, number)| *number)
    }

    /// Returns a response of the HTTP API.
    ///
    /// # Panics
    /// Panics if there is none.
    #[must_use]
    pub fn ask(&self, path: &str) -> Value {
        let (_, body) = self.get(path);
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
    }

    /// Returns status and body of a response.
    fn get(&self, path: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        // With HTTP/1.0, the response comes in one piece.
        write!(stream, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").expect("it takes requests");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).expect("a status");
        (status.to_owned(), body.to_owned())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The server has no state to save.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the address in a complete line `... msg="Listening on" address=127.0.0.1:PORT`.
fn listens_on(log: &str) -> Option<&str> {
    let lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let mut heard = lines.filter(|line| line.contains("msg=\"Listening on\""));
    Some(heard.next()?.split("address=").nth(1)?.trim())
}

/// Escapes text for use in a URL.
fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        // Writing to a string does not fail.
        let _ = write!(out, "%{byte:02X}");
        out
    })
}

/// Runs promtool in a folder, with `input` on its standard input.
///
/// # Panics
/// Panics if it cannot be run.
#[must_use]
pub fn promtool(folder: &Path, words: &[&str], input: &str) -> Output {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(input.as_bytes()).expect("it can be written");
    file.rewind().expect("a file");
    Command::new(place::monitors().join("promtool"))
        .args(words)
        .current_dir(folder)
        .stdin(file)
        .output()
        .expect("promtool runs")
}

/// Converts OpenMetrics to Prometheus' own older format, the only one that promtool reads: its comments name the samples.
///
/// # Panics
/// Panics if a sample's metric has no type.
#[must_use]
pub fn in_the_older_format(text: &str) -> String {
    let lines = text.lines().filter(|line| *line != "# EOF");
    let kinds: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let older = lines.map(|line| {
        let mut words = line.splitn(4, ' ');
        let (Some("#"), Some(what), Some(name)) = (words.next(), words.next(), words.next()) else {
            return format!("{line}\n");
        };
        let (suffix, kind) = match kinds[name] {
            "counter" => ("_total", "counter"),
            "info" => ("_info", "gauge"),
            kind => ("", kind),
        };
        let rest = if what == "TYPE" {
            kind
        } else {
            words.next().unwrap_or_default()
        };
        format!("# {what} {name}{suffix} {rest}\n")
    });
    older.collect()
}
