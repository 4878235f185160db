//! Options of the commands that show what goes on: `tracer top` and `tracer serve`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{ArgGroup, Args};
use tracer_files::Mode;

use super::capture::Capture;
use crate::units;

/// `tracer top`
#[derive(Debug, Args)]
#[command(
    override_usage = "tracer top [OPTIONS] -- COMMAND [ARGUMENT]...\n       tracer top [OPTIONS] -p PID...\n       \
    tracer top [OPTIONS] -a\n       tracer top [OPTIONS] TRACE",
    group = ArgGroup::new("subject").args(["trace", "pid", "all", "command"]).required(true),
    group = ArgGroup::new("live").args(["pid", "all", "command"]).multiple(true),
    after_help = "top discards the output of the command, because it uses the terminal itself. To keep the output, start the \
    command elsewhere and attach with -p.\n\n\
    Keys: ? lists all keys. q quits; the traced processes continue. See docs/top.md.\n\n\
    Examples:\n  sudo tracer top -- ./app --its-own-options\n  sudo tracer top -p $(pgrep -n app)\n  \
    sudo tracer top --once --json --duration 5s -p $(pgrep -n app) | jq .totals\n  tracer top app.trace --speed 10"
)]
pub struct Top {
    /// The trace to replay
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// Replay speed
    #[arg(long, value_name = "N", default_value_t = 1, requires = "trace", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub speed: u32,
    /// Print the state at the end and exit; no screen
    #[arg(long, requires = "json")]
    pub once: bool,
    /// Print JSON (stable schema)
    #[arg(long, requires = "once")]
    pub json: bool,
    /// Exit after this time: 10, 10s, 500ms, 5m, 1h
    #[arg(long, value_name = "TIME", requires = "live", value_parser = units::time)]
    pub duration: Option<Duration>,
    /// Folder that the R key records to; tracer replaces %pid%, %hostname% and %time% [default: NAME-%time%.trace]
    #[arg(short, long, value_name = "DIR", requires = "live")]
    pub output: Option<PathBuf>,
    /// Permissions of the folders of a trace that the R key records, octal; files get the same without execute permission
    /// [default: 700, files 600]
    #[arg(
        long,
        value_name = "MODE",
        requires = "live",
        default_value = "700",
        hide_default_value = true
    )]
    pub mode: Mode,
    #[command(flatten)]
    pub capture: Capture,
    /// The command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `tracer serve`
#[derive(Debug, Args)]
#[command(
    override_usage = "tracer serve [OPTIONS] -- COMMAND [ARGUMENT]...\n       tracer serve [OPTIONS] -p PID...\n       \
    tracer serve [OPTIONS] -a",
    group = ArgGroup::new("subject").args(["pid", "all", "command"]).required(true),
    after_help = "Paths: /metrics for Prometheus (dashboards/ has dashboards and alerts), / for the live page, /api/live for its \
    data as JSON, /healthz for the state of the capture. See docs/serve.md.\n\n\
    Exit status: as for `tracer record`.\n\n\
    Examples:\n  sudo tracer serve -- ./app\n  sudo tracer serve -p $(pgrep -n app) --listen 127.0.0.1:9000\n  \
    sudo tracer serve --listen 0.0.0.0:9478 --token-file /etc/tracer/token -- ./app"
)]
pub struct Serve {
    /// Address to listen on; an address that is not loopback requires --token-file or --tls-cert
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:9478")]
    pub listen: SocketAddr,
    /// Accept requests that use this host name, besides addresses and localhost; repeatable
    ///
    /// Without --token-file and TLS, tracer refuses other names: a web page could otherwise point a name of its own at this
    /// address and read the answers.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,
    /// Require the first line of this file as bearer token (`Authorization: Bearer ...`)
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Serve over TLS with this certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// Keep serving after all traced processes have exited, until a signal arrives
    #[arg(long)]
    pub stay: bool,
    #[cfg(feature = "otlp")]
    #[command(flatten)]
    pub otlp: super::otlp::Otlp,
    #[command(flatten)]
    pub capture: Capture,
    /// The command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

impl Top {
    /// Whether it captures, and does not replay a trace.
    pub fn is_live(&self) -> bool {
        self.trace.is_none()
    }
}
