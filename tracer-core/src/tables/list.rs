//! The list of the tables.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{
    ApiCall, ApiStats, CodeObject, Column, Copy, Dispatch, DispatchRun, Doorbell, DoorbellRun, DriverCall, DriverEvent,
    GpuTime, Ioctl, Kernel, Library, Loss, Misfit, OtherPacket, Process, Progress, Proxy, Queue, Request, RingJob, Row,
    Rows, Source, Stack, Target, Value,
};

/// Lists the tables: the table, the fact, and the struct that is its row.
macro_rules! tables {
    ($($table:ident, $fact:ident($row:ident);)+) => {
        /// A conclusion of the model: a row of a table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum Fact {
            $(#[doc = concat!("A row of [`Table::", stringify!($table), "`].")] $fact($row),)+
        }

        /// A table of the trace: one folder of Parquet parts.
        ///
        /// The order is the one in which rows of the same time are read. The row of a process or a queue comes before the rows
        /// of its events.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Table {
            $(#[doc = concat!("Rows of [`", stringify!($row), "`].")] $table,)+
        }

        impl Table {
            /// Every table.
            pub const ALL: [Self; [$(Self::$table),+].len()] = [$(Self::$table),+];

            /// Returns the name, used in queries, in the manifest and for the folder.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$table => $row::NAME,)+
                }
            }

            /// Returns a description of the table's rows.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$table => $row::MEANING,)+
                }
            }

            /// Returns the column that orders the table.
            #[must_use]
            pub const fn time_column(self) -> &'static str {
                match self {
                    $(Self::$table => $row::TIME,)+
                }
            }

            const fn rows(self) -> Rows {
                match self {
                    $(Self::$table => $row::ROWS,)+
                }
            }

            /// Returns the columns, in order.
            #[must_use]
            pub fn columns(self) -> &'static [Column] {
                static COLUMNS: LazyLock<[Vec<Column>; Table::ALL.len()]> = LazyLock::new(|| [$($row::columns()),+]);
                &COLUMNS[self as usize]
            }

            /// Returns the table that a fact is a row of.
            #[must_use]
            pub const fn of(fact: &Fact) -> Self {
                match fact {
                    $(Fact::$fact(_) => Self::$table,)+
                }
            }

            /// Reads a row of this table.
            ///
            /// # Errors
            ///
            /// A cell has a value that its field does not allow.
            pub fn get(self, from: &mut impl Source) -> Result<Fact, Misfit> {
                Ok(match self {
                    $(Self::$table => Fact::$fact(Row::get(from)?),)+
                })
            }
        }

        impl Fact {
            /// Passes the cells of this row to `to`, from left to right.
            pub fn put(&self, to: &mut impl Target) {
                match self {
                    $(Self::$fact(row) => row.put(to),)+
                }
            }
        }
    };
}

tables! {
    Processes, Process(Process);
    Queues, Queue(Queue);
    Progress, Progress(Progress);
    Ioctls, Ioctl(Ioctl);
    Stacks, Stack(Stack);
    Doorbells, Doorbell(Doorbell);
    DoorbellRuns, DoorbellRun(DoorbellRun);
    Dispatches, Dispatch(Dispatch);
    DispatchRuns, DispatchRun(DispatchRun);
    GpuTimes, GpuTime(GpuTime);
    Proxies, Proxy(Proxy);
    Requests, Request(Request);
    Packets, Packet(OtherPacket);
    CodeObjects, CodeObject(CodeObject);
    Kernels, Kernel(Kernel);
    Copies, Copy(Copy);
    RingJobs, RingJob(RingJob);
    DriverCalls, DriverCall(DriverCall);
    DriverEvents, DriverEvent(DriverEvent);
    ApiCalls, ApiCall(ApiCall);
    ApiStats, ApiStats(ApiStats);
    Libraries, Library(Library);
    Losses, Loss(Loss);
}

impl Fact {
    /// Returns the value of the column that orders its table, ns.
    #[must_use]
    pub fn time_ns(&self) -> u64 {
        self.number_at(Table::of(self).time_index()).unwrap_or(0)
    }

    /// Returns the process of the row; `None` if it is unknown, or its table has none.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        let columns = Table::of(self).columns();
        let at = columns.iter().position(|column| column.name == "pid")?;
        self.number_at(at).and_then(|pid| u32::try_from(pid).ok())
    }

    /// Returns the number in a column.
    fn number_at(&self, at: usize) -> Option<u64> {
        /// Takes the number in one column.
        struct Pick {
            before: usize,
            done: bool,
            number: Option<u64>,
        }

        impl Target for Pick {
            fn put(&mut self, value: Value<'_>) {
                match (self.before.checked_sub(1), value) {
                    (Some(before), _) => self.before = before,
                    (None, value) if !self.done => {
                        self.done = true;
                        if let Value::Number(bits) = value {
                            self.number = Some(bits);
                        }
                    }
                    (None, _) => {}
                }
            }
        }

        let mut pick = Pick {
            before: at,
            done: false,
            number: None,
        };
        self.put(&mut pick);
        pick.number
    }
}

impl Table {
    /// Returns the table with this name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|table| table.name() == name)
    }

    /// Returns whether a row describes a thing that continues to live. Such a row can be written again, and the last one counts.
    #[must_use]
    pub fn is_snapshot(self) -> bool {
        self.rows() == Rows::Snapshots
    }

    /// Returns whether each row represents several things: the number in the column `count`.
    #[must_use]
    pub fn is_of_runs(self) -> bool {
        self.rows() == Rows::Runs
    }

    /// Returns the position of [`Self::time_column`] among the columns.
    #[must_use]
    pub fn time_index(self) -> usize {
        let name = self.time_column();
        self.columns().iter().take_while(|column| column.name != name).count()
    }
}
