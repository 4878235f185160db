//! Debug files of a library, found by readers and parsed by a parser.

use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt, path::Path};

use super::{Examine, NotRead};
use crate::{
    confined::{
        answer::{File, ReadError},
        parser::{Job, Output},
        parsers::ParseFailed,
        request::Request,
    },
    runtime::{
        debug_files::{
            By, Candidate, DebugSymbols, MAX_SUMMED, Network, caches, compare_checksums, inside, judge, not_opened,
            search,
        },
        resolver::debug::{DebugFiles, DebugKey, Lookup, NotUsed},
    },
};

/// Searches as [`crate::runtime::debug_files::Search`] does, for a library that a process has mapped.
pub struct Debug<'a> {
    examine: Examine<'a>,
    path: String,
    network: Network,
}

impl<'a> Debug<'a> {
    pub(super) fn new(examine: Examine<'a>, path: &str, network: Network) -> Self {
        let path = path.to_owned();
        Self { examine, path, network }
    }

    /// Returns the library's folder in the root of the process.
    fn folder(&self) -> Option<String> {
        let request = Request::Root { pid: self.examine.pid };
        let shown = self.examine.bytes(&request).unwrap_or_default();
        let path = inside(&self.path, Path::new(OsStr::from_bytes(&shown)));
        path.rsplit_once('/').map(|(folder, _)| folder.to_owned())
    }

    fn symbols(&self, file: Result<File, ReadError>, by: By<'_>) -> Result<DebugSymbols, NotUsed> {
        let file = file.map_err(|error| match error {
            ReadError::Refused(code) => not_opened(&io::Error::from_raw_os_error(code)),
            other => NotUsed::Refused(other.to_string()),
        })?;
        let refused = |error: NotRead| NotUsed::Refused(error.to_string());
        let output = self.examine.run_on(&file, &Job::DebugSymbols);
        let Output::DebugSymbols(symbols) = output.map_err(refused)? else {
            return Err(refused(ParseFailed::Crashed.into()));
        };
        judge(symbols.map_err(NotUsed::Refused)?, by, |expected| {
            let sum = self.checksum(&file).map_err(|error| match error {
                NotRead::Read(ReadError::TooLarge) => {
                    format!("tracer does not compute its checksum: it has more than {MAX_SUMMED} bytes")
                }
                other => other.to_string(),
            })?;
            compare_checksums(sum, expected)
        })
    }

    fn checksum(&self, file: &File) -> Result<u32, NotRead> {
        let whole = self.examine.whole(file, MAX_SUMMED)?;
        match self.examine.run(&Job::Checksum, Some(&whole), &mut ())? {
            Output::Checksum(sum) => Ok(sum),
            _ => Err(ParseFailed::Crashed.into()),
        }
    }
}

impl DebugFiles for Debug<'_> {
    fn find(&mut self, key: &DebugKey) -> Lookup {
        let folder = key.link.as_ref().and_then(|_| self.folder());
        search(key, folder.as_deref(), caches, &self.network, |candidate, by| {
            let file = match candidate {
                Candidate::InRoot(path) => self.examine.in_root(path.as_bytes()),
                Candidate::Own(path) => self.examine.own(path),
            };
            self.symbols(file, by)
        })
    }
}
