//! The database file, and the rows that others refer to by number: strings, processes, threads, agents, streams.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use serde_json::json;

use super::{schema, views};
use crate::{About, ExportError};

/// The only node.
const NODE: i64 = 1;

/// A database, and what is in it by name.
#[derive(Debug)]
pub(super) struct Database {
    connection: Connection,
    suffix: String,
    about: About,
    strings: HashMap<String, i64>,
    processes: HashMap<u32, i64>,
    threads: HashMap<(u32, u32), i64>,
    /// Threads whose number is the id of a row.
    tids: HashSet<u32>,
    agents: HashMap<(u32, Agent), i64>,
    streams: HashMap<(u32, Option<u64>), i64>,
    tracks: HashMap<(u32, u32, String), i64>,
}

/// What memory belongs to, or what runs kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Agent {
    /// The host.
    Host,
    /// A GPU, by the KFD's id; `None` if it is unknown.
    Gpu(Option<u32>),
}

/// Returns a number as SQLite has it: 64 bits with a sign. Numbers from 2^63 on are negative there.
pub(super) fn number(n: impl Into<u64>) -> Value {
    Value::Integer(n.into().cast_signed())
}

/// Returns a number that may be unknown.
pub(super) fn maybe(n: Option<impl Into<u64>>) -> Value {
    n.map_or(Value::Null, number)
}

pub(super) fn text(text: impl Into<String>) -> Value {
    Value::Text(text.into())
}

impl Database {
    /// Creates the tables and views in an empty file.
    pub fn create(path: &Path, about: &About) -> Result<Self, ExportError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(64);
        // The file has its name only when it is whole, so there is nothing to roll back to.
        connection.execute_batch(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;
             PRAGMA temp_store = MEMORY;",
        )?;
        let guid = guid(about.identity());
        let suffix = format!("_{}", guid.replace('-', "_"));
        connection.execute_batch("BEGIN")?;
        connection.execute_batch(&schema::tables(&suffix, &guid))?;
        connection.execute_batch(&views::views())?;
        let mut database = Self {
            connection,
            suffix,
            about: about.clone(),
            strings: HashMap::new(),
            processes: HashMap::new(),
            threads: HashMap::new(),
            tids: HashSet::new(),
            agents: HashMap::new(),
            streams: HashMap::new(),
            tracks: HashMap::new(),
        };
        let uuid = database.suffix.clone();
        for (tag, value) in [("schema_version", schema::VERSION), ("uuid", &uuid), ("guid", &guid)] {
            database.metadata(tag, value)?;
        }
        database.node()?;
        Ok(database)
    }

    fn node(&mut self) -> Result<(), ExportError> {
        let about = self.about.clone();
        self.insert(
            "info_node",
            &[
                ("id", Value::Integer(NODE)),
                ("hash", Value::Integer((about.identity() as u64 >> 1).cast_signed())),
                ("machine_id", text(about.boot_id.unwrap_or_else(|| about.host.clone()))),
                ("system_name", text("Linux")),
                ("hostname", text(about.host)),
                ("release", text(about.kernel)),
                ("hardware_name", text(about.machine)),
            ],
        )
        .map(drop)
    }

    pub fn metadata(&mut self, tag: &str, value: &str) -> Result<(), ExportError> {
        self.insert("metadata", &[("tag", text(tag)), ("value", text(value))])
            .map(drop)
    }

    /// Adds a row, and returns its id. Every table but two refers to the node.
    pub fn insert(&mut self, table: &str, row: &[(&str, Value)]) -> Result<i64, ExportError> {
        let columns: Vec<String> = row.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let sql = format!(
            "INSERT INTO \"rocpd_{table}{}\" ({}) VALUES ({})",
            self.suffix,
            columns.join(", "),
            vec!["?"; row.len()].join(", ")
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        Ok(statement.insert(params_from_iter(row.iter().map(|(_, value)| value)))?)
    }

    /// Adds a row that refers to the node.
    pub fn insert_here(&mut self, table: &str, row: &[(&str, Value)]) -> Result<i64, ExportError> {
        let mut all = vec![("nid", Value::Integer(NODE))];
        all.extend_from_slice(row);
        self.insert(table, &all)
    }

    /// Returns the id of a string.
    pub fn string(&mut self, string: &str) -> Result<Value, ExportError> {
        if let Some(id) = self.strings.get(string) {
            return Ok(Value::Integer(*id));
        }
        let id = self.insert("string", &[("string", text(string))])?;
        self.strings.insert(string.to_owned(), id);
        Ok(Value::Integer(id))
    }

    /// Returns the id of a process. That of one without a row is its number, too.
    pub fn process(&mut self, pid: u32) -> Result<Value, ExportError> {
        if !self.processes.contains_key(&pid) {
            self.describe_process(pid, &[])?;
        }
        Ok(number(pid))
    }

    /// Adds a process, with what is known of it. One whose number was used before keeps the first row.
    pub fn describe_process(&mut self, pid: u32, known: &[(&str, Value)]) -> Result<(), ExportError> {
        if self.processes.insert(pid, pid.into()).is_some() {
            return Ok(());
        }
        let mut row = vec![("id", number(pid)), ("pid", number(pid))];
        row.extend_from_slice(known);
        self.insert_here("info_process", &row).map(drop)
    }

    /// Returns the id of a thread. Thread 0 of a process stands for none.
    pub fn thread(&mut self, pid: u32, tid: u32) -> Result<Value, ExportError> {
        if let Some(id) = self.threads.get(&(pid, tid)) {
            return Ok(Value::Integer(*id));
        }
        let process = self.process(pid)?;
        let name = match tid {
            0 => "no thread was seen".to_owned(),
            tid => format!("thread {tid}"),
        };
        let mut row = vec![("pid", process), ("tid", number(tid)), ("name", text(name))];
        // AMD's ids are the numbers of the threads. A thread that is in two processes has only one row with it.
        if tid != 0 && self.tids.insert(tid) {
            row.push(("id", number(tid)));
        } else {
            let above = (1_i64 << 32) + self.threads.len() as i64;
            row.push(("id", Value::Integer(above)));
        }
        let id = self.insert_here("info_thread", &row)?;
        self.threads.insert((pid, tid), id);
        Ok(Value::Integer(id))
    }

    /// Returns the id of an agent of a process.
    pub fn agent(&mut self, pid: u32, agent: Agent) -> Result<Value, ExportError> {
        if let Some(id) = self.agents.get(&(pid, agent)) {
            return Ok(Value::Integer(*id));
        }
        let process = self.process(pid)?;
        let row = match agent {
            Agent::Host => vec![("type", text("CPU")), ("name", text("host"))],
            Agent::Gpu(id) => self.gpu(id),
        };
        let mut all = vec![("pid", process)];
        all.extend(row);
        let id = self.insert_here("info_agent", &all)?;
        self.agents.insert((pid, agent), id);
        Ok(Value::Integer(id))
    }

    fn gpu(&self, id: Option<u32>) -> Vec<(&'static str, Value)> {
        let at = self.about.gpus.iter().position(|gpu| Some(gpu.gpu_id) == id);
        let gpu = at.map(|at| &self.about.gpus[at]);
        let target = gpu.map_or("unknown GPU", |gpu| gpu.name.as_str());
        let product = gpu.and_then(|gpu| gpu.product.as_deref()).unwrap_or(target);
        let known = json!({
            "gpu_id": id,
            "scheduler": gpu.map(|gpu| &gpu.scheduler),
            "simulated": self.about.simulated,
        });
        let index = maybe(at.map(|at| at as u64));
        vec![
            ("type", text("GPU")),
            ("logical_index", index.clone()),
            ("type_index", index),
            ("name", text(target)),
            ("vendor_name", text("AMD")),
            ("product_name", text(self.about.named(product))),
            ("user_name", text(self.about.named(target))),
            ("extdata", text(known.to_string())),
        ]
    }

    /// Returns the id of a stream of a process; `None` is one that is unknown.
    pub fn stream(&mut self, pid: u32, stream: Option<u64>) -> Result<Value, ExportError> {
        if let Some(id) = self.streams.get(&(pid, stream)) {
            return Ok(Value::Integer(*id));
        }
        let process = self.process(pid)?;
        let name = match stream {
            None => "unknown stream".to_owned(),
            Some(0) => "Default Stream".to_owned(),
            Some(handle) => format!("stream {handle:#x}"),
        };
        let known = json!({ "handle": stream }).to_string();
        let row = [("pid", process), ("name", text(name)), ("extdata", text(known))];
        let id = self.insert_here("info_stream", &row)?;
        self.streams.insert((pid, stream), id);
        Ok(Value::Integer(id))
    }

    /// Returns the id of a track of samples.
    pub fn track(&mut self, pid: u32, tid: u32, name: &str) -> Result<Value, ExportError> {
        let key = (pid, tid, name.to_owned());
        if let Some(id) = self.tracks.get(&key) {
            return Ok(Value::Integer(*id));
        }
        let row = [
            ("pid", self.process(pid)?),
            ("tid", self.thread(pid, tid)?),
            ("name_id", self.string(name)?),
        ];
        let id = self.insert_here("track", &row)?;
        self.tracks.insert(key, id);
        Ok(Value::Integer(id))
    }

    /// Completes the file.
    pub fn finish(self) -> Result<(), ExportError> {
        self.connection.flush_prepared_statement_cache();
        self.connection.execute_batch("COMMIT")?;
        self.connection.close().map_err(|(_, error)| error.into())
    }
}

/// Returns 128 bits in the form of a UUID of version 8 (RFC 9562), whose other bits may mean anything.
fn guid(bits: u128) -> String {
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 0x8 << 76 | 0x2 << 62;
    let digits = format!("{bits:032x}");
    let (a, rest) = digits.split_at(8);
    let (b, rest) = rest.split_at(4);
    let (c, rest) = rest.split_at(4);
    let (d, e) = rest.split_at(4);
    format!("{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_uuids() {
        assert_eq!(guid(0), "00000000-0000-8000-8000-000000000000");
        assert_eq!(guid(u128::MAX), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    }
}
