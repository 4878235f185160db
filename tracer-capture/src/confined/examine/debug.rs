//! Debug files of a library, found by readers and parsed by a parser.

use std::{ffi::OsStr, io, os::unix::ffi::OsStrExt, path::Path};

use super::{Bytes, Examine, File, NotRead};
use crate::{
    confined::{
        answer::{Answer, ReadError},
        parser::{Job, Output},
        parsers::ParseFailed,
        request::Request,
    },
    runtime::{
        debug_files::{
            By, DebugSymbols, MAX_SUMMED, Network, caches, compare_checksums, inside, judge, not_opened, places,
        },
        resolver::debug::{DebugFiles, DebugKey, Lookup, NotUsed, Tried},
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
        let shown = match self.examine.ask(&request) {
            Ok(Answer::Bytes(contents)) => contents.bytes().to_vec(),
            _ => Vec::new(),
        };
        let path = inside(&self.path, Path::new(OsStr::from_bytes(&shown)));
        path.rsplit_once('/').map(|(folder, _)| folder.to_owned())
    }

    fn symbols(&self, file: Result<File, ReadError>, by: By<'_>) -> Result<DebugSymbols, NotUsed> {
        let file = file.map_err(|error| match error {
            ReadError::Refused(code) => not_opened(&io::Error::from_raw_os_error(code)),
            other => NotUsed::Refused(other.to_string()),
        })?;
        let refused = |error: NotRead| NotUsed::Refused(error.to_string());
        let mut input = Bytes::of(self.examine, &file);
        let output = self.examine.run(&Job::DebugSymbols, None, &mut input);
        let Output::DebugSymbols(symbols) = output.map_err(refused)? else {
            return Err(refused(ParseFailed::Crashed.into()));
        };
        if let Some(error) = input.failed {
            return Err(refused(error.into()));
        }
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
    fn look(&mut self, key: &DebugKey) -> Lookup {
        let mut lookup = Lookup::default();
        let folder = key.link.as_ref().and_then(|_| self.folder());
        for (place, by) in places(folder.as_deref(), key) {
            let symbols = self.symbols(self.examine.in_root(place.as_bytes()), by);
            if lookup.settle_symbols(place, symbols) {
                return lookup;
            }
        }
        let Some(build_id) = &key.build_id else {
            let why_not = NotUsed::NotTried("the library has no build-id to search by".to_owned());
            let place = "debuginfod".to_owned();
            lookup.tried.push(Tried { place, why_not });
            return lookup;
        };
        let by = By::BuildId(build_id);
        for cache in caches() {
            let path = cache.join(build_id).join("debuginfo");
            let symbols = self.symbols(self.examine.own(&path), by);
            if lookup.settle_symbols(path.display().to_string(), symbols) {
                return lookup;
            }
        }
        match self.network.ask(build_id) {
            Ok(path) => {
                let symbols = self.symbols(self.examine.own(&path), by);
                lookup.settle_symbols(path.display().to_string(), symbols);
            }
            Err(why_not) => {
                let place = "debuginfod-find".to_owned();
                lookup.tried.push(Tried { place, why_not });
            }
        }
        lookup
    }
}
