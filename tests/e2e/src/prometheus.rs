//! A real Prometheus on loopback that scrapes what a test serves, VictoriaMetrics that stores what a test pushes, and promtool.

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

/// The running server: Prometheus, or VictoriaMetrics, which answers the same queries. Dropping the value kills it.
pub struct Prometheus {
    process: Child,
    address: String,
}

impl Prometheus {
    /// Starts a server with its files in that folder. It scrapes the addresses, and evaluates the rules in a file, every second.
    #[must_use]
    pub fn start(folder: &Path, targets: &[&str], rules: &Path) -> Self {
        let config = serde_json::json!({
            "global": { "scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s" },
            "rule_files": [rules],
            "scrape_configs": [{ "job_name": "tracer", "static_configs": [{ "targets": targets }] }],
        });
        Self::run(folder, &config)
    }

    fn run(folder: &Path, config: &Value) -> Self {
        let file = folder.join("prometheus.yml");
        // JSON is YAML with quotes.
        fs::write(&file, config.to_string()).expect("it can be written");
        let mut command = Command::new(place::monitors().join("prometheus"));
        command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("prometheus").display()))
            .arg("--web.listen-address=127.0.0.1:0");
        let server = Self::wait(command, "Prometheus", &folder.join("prometheus.log"), |log| {
            // A complete line `... msg="Listening on" address=127.0.0.1:PORT`.
            after(log, "msg=\"Listening on\" address=")
        });
        wait_for("its storage", || (server.get("/-/ready").0 == "200").then_some(()));
        server
    }

    /// Starts VictoriaMetrics with its files in that folder. It stores what others push to [`Self::otlp`], and answers the queries
    /// of Prometheus. With `naming`, it makes names as Prometheus makes them of such metrics; otherwise it leaves names as they are.
    #[must_use]
    pub fn victoria(folder: &Path, naming: bool) -> Self {
        let mut command = Command::new(place::monitors().join("victoria-metrics"));
        command
            .arg(format!("-storageDataPath={}", folder.join("victoria").display()))
            .arg(format!("-opentelemetry.usePrometheusNaming={naming}"))
            // Queries find the newest values.
            .args(["-search.latencyOffset=0s", "-httpListenAddr=127.0.0.1:0"]);
        Self::wait(command, "VictoriaMetrics", &folder.join("victoria.log"), |log| {
            after(log, "started server at http://")
        })
    }

    /// Returns the URL to push to, of VictoriaMetrics.
    #[must_use]
    pub fn otlp(&self) -> String {
        format!("http://{}/opentelemetry", self.address)
    }

    /// Makes VictoriaMetrics answer from what it has received. Otherwise it does so after seconds.
    pub fn flush(&self) {
        let (status, answer) = self.get("/internal/force_flush");
        assert_eq!(status, "200", "{answer}");
    }

    /// Starts a server, and waits for its address in its log.
    fn wait(mut command: Command, name: &str, log: &Path, address: fn(&str) -> Option<&str>) -> Self {
        // Writes the output to a file, because a pipe would have to be read while the server runs.
        let out = File::create(log).expect("it can be made");
        let process = command.stdout(Stdio::null()).stderr(out).spawn();
        let mut server = Self {
            process: process.expect("it runs"),
            address: String::new(),
        };
        server.address = wait_for(name, || {
            let said = fs::read_to_string(log).unwrap_or_default();
            let ended = server.process.try_wait().expect("a child");
            assert!(ended.is_none(), "{name} ended with {ended:?}:\n{said}");
            address(&said).map(str::to_owned)
        });
        server
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

/// Returns what follows that text in a complete line, without a slash at its end.
fn after<'a>(log: &'a str, text: &str) -> Option<&'a str> {
    let mut lines = log.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let rest = lines.find_map(|line| Some(line.split_once(text)?.1))?;
    Some(rest.trim().trim_end_matches('/'))
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
