//! The columns of every table, by the fields of the fact that is its row.

mod calls;
mod code;
mod driver;
mod processes;
mod runs;
mod submissions;

use tracer_core::fact::{
    ApiCall, ApiStats, CodeObject, Copy, Dispatch, DispatchRun, Doorbell, DoorbellRun, DriverCall, DriverEvent, Fact,
    GpuTime, Ioctl, Kernel, Loss, OtherPacket, Process, Progress, Proxy, Queue, Request, RingJob,
};

use super::field::{Get, Misfit};
use super::{Column, Table};
use crate::columns::Buffer;

/// A fact as a row.
trait Row: Sized {
    fn columns() -> Vec<Column>;
    fn put(&self, to: &mut [Buffer]);
    fn get(from: &mut Get<'_>) -> Result<Self, Misfit>;
}

/// Returns the columns of a table.
pub(super) fn columns(table: Table) -> Vec<Column> {
    match table {
        Table::Processes => Process::columns(),
        Table::Queues => Queue::columns(),
        Table::Progress => Progress::columns(),
        Table::Ioctls => Ioctl::columns(),
        Table::Doorbells => Doorbell::columns(),
        Table::DoorbellRuns => DoorbellRun::columns(),
        Table::Dispatches => Dispatch::columns(),
        Table::DispatchRuns => DispatchRun::columns(),
        Table::GpuTimes => GpuTime::columns(),
        Table::Proxies => Proxy::columns(),
        Table::Requests => Request::columns(),
        Table::Packets => OtherPacket::columns(),
        Table::CodeObjects => CodeObject::columns(),
        Table::Kernels => Kernel::columns(),
        Table::Copies => Copy::columns(),
        Table::RingJobs => RingJob::columns(),
        Table::DriverCalls => DriverCall::columns(),
        Table::DriverEvents => DriverEvent::columns(),
        Table::ApiCalls => ApiCall::columns(),
        Table::ApiStats => ApiStats::columns(),
        Table::Losses => Loss::columns(),
    }
}

/// Appends a fact to the columns of its table.
pub(crate) fn put(fact: &Fact, to: &mut [Buffer]) {
    match fact {
        Fact::Process(row) => row.put(to),
        Fact::Queue(row) => row.put(to),
        Fact::Progress(row) => row.put(to),
        Fact::Ioctl(row) => row.put(to),
        Fact::Doorbell(row) => row.put(to),
        Fact::DoorbellRun(row) => row.put(to),
        Fact::Dispatch(row) => row.put(to),
        Fact::DispatchRun(row) => row.put(to),
        Fact::GpuTime(row) => row.put(to),
        Fact::Proxy(row) => row.put(to),
        Fact::Request(row) => row.put(to),
        Fact::Packet(row) => row.put(to),
        Fact::CodeObject(row) => row.put(to),
        Fact::Kernel(row) => row.put(to),
        Fact::Copy(row) => row.put(to),
        Fact::RingJob(row) => row.put(to),
        Fact::DriverCall(row) => row.put(to),
        Fact::DriverEvent(row) => row.put(to),
        Fact::ApiCall(row) => row.put(to),
        Fact::ApiStats(row) => row.put(to),
        Fact::Loss(row) => row.put(to),
    }
}

/// Reads a row of a table, as the original fact.
pub(crate) fn get(table: Table, columns: &[Buffer], row: usize) -> Result<Fact, Misfit> {
    let mut from = Get::new(columns, row);
    Ok(match table {
        Table::Processes => Fact::Process(Row::get(&mut from)?),
        Table::Queues => Fact::Queue(Row::get(&mut from)?),
        Table::Progress => Fact::Progress(Row::get(&mut from)?),
        Table::Ioctls => Fact::Ioctl(Row::get(&mut from)?),
        Table::Doorbells => Fact::Doorbell(Row::get(&mut from)?),
        Table::DoorbellRuns => Fact::DoorbellRun(Row::get(&mut from)?),
        Table::Dispatches => Fact::Dispatch(Row::get(&mut from)?),
        Table::DispatchRuns => Fact::DispatchRun(Row::get(&mut from)?),
        Table::GpuTimes => Fact::GpuTime(Row::get(&mut from)?),
        Table::Proxies => Fact::Proxy(Row::get(&mut from)?),
        Table::Requests => Fact::Request(Row::get(&mut from)?),
        Table::Packets => Fact::Packet(Row::get(&mut from)?),
        Table::CodeObjects => Fact::CodeObject(Row::get(&mut from)?),
        Table::Kernels => Fact::Kernel(Row::get(&mut from)?),
        Table::Copies => Fact::Copy(Row::get(&mut from)?),
        Table::RingJobs => Fact::RingJob(Row::get(&mut from)?),
        Table::DriverCalls => Fact::DriverCall(Row::get(&mut from)?),
        Table::DriverEvents => Fact::DriverEvent(Row::get(&mut from)?),
        Table::ApiCalls => Fact::ApiCall(Row::get(&mut from)?),
        Table::ApiStats => Fact::ApiStats(Row::get(&mut from)?),
        Table::Losses => Fact::Loss(Row::get(&mut from)?),
    })
}

/// Defines rows, with one line per field: its columns (the field's name unless given), unit and meaning. The types are the fields'
/// own.
macro_rules! rows {
    ($($row:ident { $($field:ident $([$($name:literal),+])?, $unit:literal, $meaning:literal;)+ })+) => {$(
        impl Row for $row {
            fn columns() -> Vec<Column> {
                let mut columns = Vec::new();
                $(describe(&mut columns, |row: &Self| &row.$field, names!($field $($($name),+)?), $unit, $meaning);)+
                columns
            }

            fn put(&self, to: &mut [Buffer]) {
                let mut to = to.iter_mut();
                $(self.$field.put(&mut to);)+
            }

            fn get(from: &mut Get<'_>) -> Result<Self, Misfit> {
                Ok(Self { $($field: from.field()?,)+ })
            }
        }
    )+};
}

macro_rules! names {
    ($field:ident) => {
        &[stringify!($field)]
    };
    ($field:ident $($name:literal),+) => {
        &[$($name),+]
    };
}

pub(super) use {names, rows};
