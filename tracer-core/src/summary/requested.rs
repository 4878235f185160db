//! Counts over submissions of programs to proxies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::when;
use crate::tables::Proxy;
use crate::tally::more;

/// Submissions of programs to the proxies that a tool gave them. The submissions of the tool itself are counted elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requested {
    /// Proxies that programs got; `None` if proxies were not watched, or not everything that programs do with them.
    pub proxies: Option<u64>,
    /// How often programs rang them; `None` in the same cases.
    pub doorbells: Option<u64>,
    /// Kernel dispatches that programs submitted to them; `None` in the same cases.
    pub dispatches: Option<u64>,
    /// Other packets; `None` in the same cases.
    pub other_packets: Option<u64>,
    /// Packets that could not be read; `None` in the same cases.
    pub unread: Option<u64>,
}

/// Counts submissions to proxies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    proxies: u64,
    doorbells: u64,
    other_packets: u64,
    unread: u64,
    /// Number of rows.
    pub(super) dispatches: u64,
}

impl Counter {
    pub(super) fn add(&mut self, proxy: &Proxy) {
        self.proxies += 1;
        more(&mut self.doorbells, proxy.doorbells);
        more(&mut self.other_packets, proxy.other_packets);
        more(&mut self.unread, proxy.unread);
    }

    pub(super) fn report(self, known: bool) -> Requested {
        Requested {
            proxies: when(known, self.proxies),
            doorbells: when(known, self.doorbells),
            dispatches: when(known, self.dispatches),
            other_packets: when(known, self.other_packets),
            unread: when(known, self.unread),
        }
    }
}
