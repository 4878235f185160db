//! Where the metrics go.

use std::{path::Path, time::Duration};

use hyper::{Uri, http::uri::Scheme};
use rustls::{
    RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{error::TargetError, file, headers::Headers, limits::Limits};

/// The maximum size of a file of certificates, in bytes: more than those of a system take.
const MOST: u64 = 4 << 20;

/// A collector, and how often it gets the metrics.
#[derive(Clone, Debug)]
pub struct Target {
    pub(crate) url: Uri,
    pub(crate) interval: Duration,
    pub(crate) headers: Headers,
    pub(crate) roots: Option<RootCertStore>,
    pub(crate) limits: Limits,
}

impl Target {
    /// Sends to `URL/v1/metrics` at this interval.
    ///
    /// # Errors
    /// Returns [`TargetError::Url`] or [`TargetError::Secret`].
    pub fn new(url: &str, interval: Duration) -> Result<Self, TargetError> {
        let uri: Uri = url.parse().map_err(|_| TargetError::Url)?;
        let (Some(scheme), Some(authority), None) = (uri.scheme(), uri.authority(), uri.query()) else {
            return Err(TargetError::Url);
        };
        // The parser of URLs drops a fragment.
        let is_http = *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
        if !is_http || authority.host().is_empty() || url.contains('#') {
            return Err(TargetError::Url);
        }
        if authority.as_str().contains('@') {
            return Err(TargetError::Secret);
        }
        let path = format!("{}/v1/metrics", uri.path().trim_end_matches('/'));
        let built = Uri::builder()
            .scheme(scheme.clone())
            .authority(authority.clone())
            .path_and_query(path);
        Ok(Self {
            url: built.build().map_err(|_| TargetError::Url)?,
            interval,
            headers: Headers::default(),
            roots: None,
            limits: Limits::default(),
        })
    }

    /// Returns the whole URL.
    #[must_use]
    pub fn url(&self) -> String {
        self.url.to_string()
    }

    /// Sends these headers with each request.
    #[must_use]
    pub fn with_headers(self, headers: Headers) -> Self {
        Self { headers, ..self }
    }

    /// Trusts the certificate authorities in this file (PEM) instead of those of the system.
    ///
    /// # Errors
    /// Returns [`TargetError::Unreadable`] or [`TargetError::NoCertificate`].
    pub fn with_ca_file(self, path: &Path) -> Result<Self, TargetError> {
        let pem = file::read(path, MOST)?;
        let mut roots = RootCertStore::empty();
        let certificates = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok);
        if roots.add_parsable_certificates(certificates).0 == 0 {
            return Err(TargetError::NoCertificate(path.to_owned()));
        }
        let roots = Some(roots);
        Ok(Self { roots, ..self })
    }

    /// Sets the limits on time.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }
}
