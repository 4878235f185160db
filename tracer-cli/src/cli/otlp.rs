//! Options of `tracer serve` that push the metrics to a collector.

use std::path::PathBuf;

use clap::{Args, value_parser};

/// Where to push the metrics, and how.
#[derive(Debug, Args)]
pub struct Otlp {
    /// Push the metrics to this OpenTelemetry collector: OTLP over HTTP, as protobuf
    ///
    /// tracer adds /v1/metrics to the URL. Prometheus takes http://HOST:9090/api/v1/otlp. tracer pushes at intervals, and a last
    /// time when it ends. A collector that does not work does not delay the capture.
    #[arg(long, value_name = "URL")]
    pub otlp: Option<String>,
    /// Seconds between two pushes
    #[arg(long, value_name = "SECONDS", default_value_t = 15, requires = "otlp", value_parser = value_parser!(u64).range(1..=3600))]
    pub otlp_interval: u64,
    /// Send the headers in this file with each push: lines `Name: value`
    ///
    /// Put a token into it, because other users can read arguments. Empty lines and lines that start with # do not count.
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub otlp_headers_file: Option<PathBuf>,
    /// Trust the certificate authorities in this file (PEM) instead of those of the system
    #[arg(long, value_name = "FILE", requires = "otlp")]
    pub otlp_ca_file: Option<PathBuf>,
}
