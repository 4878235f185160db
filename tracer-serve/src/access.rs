//! Access control: on loopback every client that calls the server by one of its own names, elsewhere clients with a token, or over
//! TLS.

use std::{fmt, fs, io, net::SocketAddr, path::PathBuf};

use thiserror::Error;

use crate::{connections::Limits, hosts::Hosts};

/// A secret that a request must contain: `Authorization: Bearer TOKEN`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Reads the token from the first line of a file.
    ///
    /// # Errors
    /// Returns an error if the file can't be read, or contains nothing that could be a secret.
    pub fn read(path: &std::path::Path) -> Result<Self, ListenError> {
        const LEAST: usize = 16;
        let file = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => return Err(ListenError::Unreadable { file, error }),
        };
        match text.lines().next().unwrap_or_default().trim() {
            token if token.len() >= LEAST => Ok(Self(token.to_owned())),
            _ => Err(ListenError::ShortToken { file, least: LEAST }),
        }
    }

    /// Returns whether the value of a header contains the token. Takes the same time wherever the values differ.
    pub(crate) fn is_in(&self, header: &[u8]) -> bool {
        let Some(given) = header.strip_prefix(b"Bearer ") else {
            return false;
        };
        let own = self.0.as_bytes();
        let differing = own.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        differing == 0 && own.len() == given.len()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// The files for TLS, in PEM format.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, with the chain of certificates above it.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
}

/// The address to listen on, and the clients to answer.
#[derive(Clone, Debug)]
pub struct Listen {
    pub(crate) address: SocketAddr,
    pub(crate) gate: Gate,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
}

/// Which requests are answered.
#[derive(Clone, Debug)]
pub(crate) enum Gate {
    /// Requests that contain the token.
    Token(Token),
    /// Requests that call the server by one of its names. A foreign page in a browser could send others.
    Hosts(Hosts),
    /// All requests. With TLS, a foreign page can't send any: it has no certificate for its own name.
    Open,
}

/// Why tracer does not listen on an address.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Any client could send requests.
    #[error(
        "{0} can be reached from other machines: give --token-file FILE, or --tls-cert FILE and --tls-key FILE, or listen \
         on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// The file contains no secret.
    #[error(
        "the first line of {file} must be a secret of at least {least} characters: `openssl rand -hex 32 > {file}`"
    )]
    ShortToken {
        /// The path of the file.
        file: String,
        /// The minimum number of characters.
        least: usize,
    },
    /// A file can't be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The path of the file.
        file: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
}

impl Listen {
    /// Listens on this address.
    ///
    /// # Errors
    /// Returns [`ListenError::Open`] if the address is not on loopback and neither a token nor TLS is given.
    pub fn new(address: SocketAddr, token: Option<Token>, tls: Option<Tls>) -> Result<Self, ListenError> {
        let gate = match token {
            Some(token) => Gate::Token(token),
            None if tls.is_some() => Gate::Open,
            None if address.ip().to_canonical().is_loopback() => Gate::Hosts(Hosts::default()),
            None => return Err(ListenError::Open(address)),
        };
        Ok(Self {
            address,
            gate,
            tls,
            limits: Limits::default(),
        })
    }

    /// Accepts requests that call the server by these names, besides addresses and localhost. Names matter only if neither a token
    /// nor TLS keeps foreign pages in a browser from reading the answers.
    #[must_use]
    pub fn with_hosts(mut self, names: Vec<String>) -> Self {
        if let Gate::Hosts(hosts) = &mut self.gate {
            *hosts = Hosts::new(names);
        }
        self
    }

    /// Sets the limits on connections.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(address: &str, token: Option<Token>) -> Result<Listen, ListenError> {
        Listen::new(address.parse().unwrap(), token, None)
    }

    #[test]
    fn only_loopback_is_open_to_everybody() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "[::ffff:127.0.0.1]:1"] {
            assert!(listen(address, None).is_ok(), "{address}");
        }
        for address in [
            "0.0.0.0:1",
            "10.0.0.1:1",
            "[::]:1",
            "[fe80::1]:1",
            "[::ffff:10.0.0.1]:1",
        ] {
            let error = listen(address, None).unwrap_err();
            assert!(error.to_string().contains("--token-file"), "{error}");
            assert!(listen(address, Some(Token("x".repeat(16)))).is_ok(), "{address}");
        }
    }

    #[test]
    fn a_token_is_the_whole_of_it() {
        let token = Token("0123456789abcdef".to_owned());
        assert!(token.is_in(b"Bearer 0123456789abcdef"));
        for wrong in [
            "Bearer ",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "0123456789abcdef",
            "",
        ] {
            assert!(!token.is_in(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(..)");
    }
}
