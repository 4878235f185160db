//! The names by which a request may call the server.
//!
//! A page in a browser on this machine can be served from a name whose owner then makes it point to 127.0.0.1 (DNS rebinding). The
//! browser takes the server for that page's own server and lets the page read the answers. The Host header shows such an attempt:
//! it contains the name of the page.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

/// Names that are accepted besides addresses and localhost.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hosts(Vec<String>);

impl Hosts {
    pub(crate) fn new(names: Vec<String>) -> Self {
        Self(names.into_iter().map(|name| plain(&name).to_owned()).collect())
    }

    /// Returns whether a request with these headers calls the server by an address, by localhost, or by one of the names.
    pub(crate) fn allow(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (given.next(), given.next()) else {
            return false;
        };
        host.to_str().is_ok_and(|host| self.allows(name(host)))
    }

    fn allows(&self, name: &str) -> bool {
        let name = plain(name);
        // The owner of a page cannot make an address point elsewhere.
        let address = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        address.unwrap_or(name).parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.0.iter().any(|own| own.eq_ignore_ascii_case(name))
    }
}

/// Returns the value of a Host header without the port.
fn name(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() => name,
        _ => host,
    }
}

/// Returns a name without the dot that may be at its end.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(names: &[&str], host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        Hosts::new(names.iter().map(|&name| name.to_owned()).collect()).allow(&headers)
    }

    #[test]
    fn addresses_localhost_and_given_names_are_accepted() {
        for host in [
            "127.0.0.1:9478",
            "127.0.0.1",
            "[::1]:9478",
            "[::1]",
            "localhost",
            "LocalHost:1",
            "localhost.:1",
        ] {
            assert!(allow(&[], host), "{host}");
        }
        assert!(allow(&["gpu.example"], "GPU.example.:9478"));
    }

    #[test]
    fn other_names_are_not() {
        for host in [
            "evil.example",
            "evil.example:9478",
            "localhost.evil.example",
            "127.0.0.1.evil.example:9478",
            "evil.example:",
            "",
            ":9478",
            "localhost:9478:1",
        ] {
            assert!(!allow(&["gpu.example"], host), "{host}");
        }
        assert!(!Hosts::default().allow(&HeaderMap::new()));
        let mut two = HeaderMap::new();
        two.append(header::HOST, "localhost".parse().unwrap());
        two.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!Hosts::default().allow(&two));
    }
}
