//! Why a collector cannot be used.

use std::{io, path::PathBuf};

use thiserror::Error;

/// Why a collector cannot be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The text is no URL of a collector. It is not shown, because it may contain a password.
    #[error("give the URL of the collector as http://HOST:PORT or https://HOST:PORT, optionally with a path")]
    Url,
    /// The URL contains a user name or a password, which other users of the machine can read.
    #[error("the URL of the collector contains a user name: other users can read it; use --otlp-headers-file FILE")]
    Secret,
    /// A file can't be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The path of the file.
        file: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// A line of the file is no header that may be set.
    #[error("line {line} of {file} is not `Name: value`, or is a header that tracer sets itself")]
    Header {
        /// The path of the file.
        file: String,
        /// The number of the line, from 1.
        line: u32,
    },
    /// The file contains no certificate.
    #[error("{} contains no certificate in PEM format", .0.display())]
    NoCertificate(PathBuf),
    /// The certificates of the system can't be read.
    #[error("cannot read the certificates of the system: {0}; give --otlp-ca-file FILE")]
    System(#[source] io::Error),
    /// There is no thread, or no means to wait for a connection.
    #[error("cannot start the thread that pushes metrics: {0}")]
    Thread(#[source] io::Error),
}
