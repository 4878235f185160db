//! Who may ask: on loopback everybody who calls the server by a name of its own, elsewhere those with a token, or over TLS.

use std::{fmt, fs, io, net::SocketAddr, path::PathBuf};

use thiserror::Error;

use crate::{connections::Limits, hosts::Hosts};

/// A secret that a request must carry: `Authorization: Bearer TOKEN`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// The first line of a file.
    ///
    /// # Errors
    /// If it can't be read, or holds nothing that could be a secret.
    pub fn read(path: &std::path::Path) -> Result<Self, ListenError> {
        const LEAST: usize = 16;
        let text = fs::read_to_string(path).map_err(|error| ListenError::Unreadable {
            file: path.display().to_string(),
            error,
        })?;
        let token = text.lines().next().unwrap_or_default().trim();
        if token.len() < LEAST {
            return Err(ListenError::ShortToken {
                file: path.display().to_string(),
                least: LEAST,
            });
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether a header's value carries it; takes as long whatever differs.
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

/// Files of TLS, PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificate, with those above it.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Where to answer, and whom.
#[derive(Clone, Debug)]
pub struct Listen {
    pub(crate) address: SocketAddr,
    pub(crate) token: Option<Token>,
    pub(crate) tls: Option<Tls>,
    pub(crate) hosts: Hosts,
    pub(crate) limits: Limits,
}

/// Why this is no place to listen.
#[derive(Debug, Error)]
pub enum ListenError {
    /// Anybody could ask.
    #[error(
        "{0} can be reached from other machines: give --token-file FILE, or --tls-cert FILE and --tls-key FILE, or listen \
         on 127.0.0.1"
    )]
    Open(SocketAddr),
    /// No secret.
    #[error(
        "the first line of {file} must be a secret of at least {least} characters: `openssl rand -hex 32 > {file}`"
    )]
    ShortToken {
        /// The file.
        file: String,
        /// Characters that it must have.
        least: usize,
    },
    /// A file can't be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        #[source]
        error: io::Error,
    },
}

impl Listen {
    /// On this address.
    ///
    /// # Errors
    /// [`ListenError::Open`] if it is not on loopback and neither a token nor TLS is given.
    pub fn new(address: SocketAddr, token: Option<Token>, tls: Option<Tls>) -> Result<Self, ListenError> {
        if !address.ip().to_canonical().is_loopback() && token.is_none() && tls.is_none() {
            return Err(ListenError::Open(address));
        }
        Ok(Self {
            address,
            token,
            tls,
            hosts: Hosts::default(),
            limits: Limits::default(),
        })
    }

    /// Accepts requests that call the server by these names, besides addresses and localhost. Names matter only where neither
    /// a token nor TLS keeps foreign pages in a browser from reading the answers.
    #[must_use]
    pub fn with_hosts(self, names: Vec<String>) -> Self {
        Self {
            hosts: Hosts::new(names),
            ..self
        }
    }

    /// Bounds what connections may take.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The names that requests have to use; `None` where a foreign page in a browser can't ask anyway: it has no token, and no
    /// certificate for its own name.
    pub(crate) fn named(&self) -> Option<Hosts> {
        (self.token.is_none() && self.tls.is_none()).then(|| self.hosts.clone())
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
