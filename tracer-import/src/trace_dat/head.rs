//! Everything in a file except its records: formats of events, names of threads, and where the records of each processor are.

use std::{
    collections::HashMap,
    io::{Read, Seek},
};

use tracer_core::trace_format::TraceFormat;

use super::{
    Event, MAGIC, Result, TraceDatError,
    cpu::{Cpu, Packed},
    data::{Compression, MAX_PART, array, bytes, go, half, quarter, skip, string, word},
    print::Print,
};
use TraceDatError::{Damaged, Unsupported};

/// Most systems of events, events of a system, processors, and sections of options.
const MAX_COUNT: u32 = 1 << 16;
/// Pages of a kernel have 4 KiB, and buffers may have larger ones.
const MAX_PAGE: u32 = 1 << 20;

/// Numbers of options and sections.
mod id {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const CLOCK: u16 = 4;
    pub const OFFSET: u16 = 7;
    pub const EVENT_FORMATS: u16 = 18;
    pub const NAMES: u16 = 21;
    pub const TEXT: u16 = 22;
}

/// Flag of a section that is compressed.
const IS_COMPRESSED: u16 = 1;

/// The head of a file.
#[derive(Debug, Default)]
pub struct Head {
    /// The events, by the numbers in records.
    pub events: HashMap<u16, Event>,
    /// Names of threads.
    pub names: HashMap<u32, String>,
    /// The processors of every buffer.
    pub cpus: Vec<Cpu>,
    /// Buffers beside the first one: their places, in format 6.
    others: Vec<u64>,
    page: usize,
    clock: String,
    /// Added to every time, ns.
    shift_ns: i64,
}

impl Head {
    /// Reads the head.
    pub fn read<R: Read + Seek>(file: &mut R, is_used: impl Fn(&str) -> bool) -> Result<Self> {
        if array::<10>(file)? != MAGIC {
            return Err(Damaged("it does not begin like trace.dat"));
        }
        let version = string(file)?;
        let [is_big, long] = array(file)?;
        if is_big != 0 || long != 8 {
            let what = "it is from a big-endian or 32-bit machine, which tracer does not read";
            return Err(Unsupported(what.to_owned()));
        }
        let page = half(file)?;
        if !page.is_power_of_two() || page > MAX_PAGE {
            return Err(Damaged("the size of a page makes no sense"));
        }
        let mut head = Self {
            page: page as usize,
            ..Self::default()
        };
        match version.as_str() {
            "6" => head.read_6(file, is_used)?,
            "7" => head.read_7(file, is_used)?,
            other => {
                return Err(Unsupported(format!(
                    "it is format {other:?} of trace.dat; tracer reads 6 and 7"
                )));
            }
        }
        if head.clock.contains("[x86-tsc]") || head.clock == "x86-tsc" {
            let what = "its clock counts cycles of the processor; record with `trace-cmd record -C mono`";
            return Err(Unsupported(what.to_owned()));
        }
        for cpu in &mut head.cpus {
            cpu.shift_ns = head.shift_ns;
        }
        Ok(head)
    }

    fn read_6<R: Read + Seek>(&mut self, file: &mut R, is_used: impl Fn(&str) -> bool) -> Result<()> {
        for name in [&b"header_page\0"[..], b"header_event\0"] {
            if bytes(file, name.len() as u64)? != name {
                return Err(Damaged("the format of its pages is missing"));
            }
            let size = word(file)?;
            skip(file, size)?;
        }
        // Events of ftrace itself.
        for _ in 0..count(half(file)?)? {
            let size = word(file)?;
            skip(file, size)?;
        }
        self.events(file, is_used)?;
        // Symbols, and formats of trace_printk.
        for _ in 0..2 {
            let size = half(file)?;
            skip(file, size.into())?;
        }
        self.names(file)?;
        let cpus = count(half(file)?)?;
        loop {
            match &array::<10>(file)? {
                b"options  \0" => self.options_6(file)?,
                b"flyrecord\0" => break,
                _ => return Err(latency()),
            }
        }
        self.pages_6(file, cpus)?;
        for place in std::mem::take(&mut self.others) {
            go(file, place)?;
            if &array::<10>(file)? != b"flyrecord\0" {
                return Err(latency());
            }
            self.pages_6(file, cpus)?;
        }
        Ok(())
    }

    fn options_6(&mut self, file: &mut impl Read) -> Result<()> {
        loop {
            let id = quarter(file)?;
            if id == id::DONE {
                return Ok(());
            }
            let size = half(file)?;
            let data = bytes(file, size.into())?;
            match id {
                id::BUFFER => self.others.push(word(&mut data.as_slice())?),
                id::CLOCK => self.clock = text(&data),
                id::OFFSET => self.shift(&data),
                _ => {}
            }
        }
    }

    fn pages_6(&mut self, file: &mut impl Read, cpus: u32) -> Result<()> {
        for _ in 0..cpus {
            let (offset, size) = (word(file)?, word(file)?);
            self.cpus.push(Cpu::new(offset, size, self.page, None));
        }
        Ok(())
    }

    fn read_7<R: Read + Seek>(&mut self, file: &mut R, is_used: impl Fn(&str) -> bool) -> Result<()> {
        let compression = Compression::named(&string(file)?)?;
        let _version = string(file)?;
        let mut next = word(file)?;
        let mut sections = Vec::new();
        for _ in 0..MAX_COUNT {
            if next == 0 {
                break;
            }
            let data = section(file, next, compression)?;
            next = self.options_7(&mut data.as_slice(), &mut sections)?;
        }
        for (id, data) in sections {
            match id {
                id::BUFFER => self.buffer_7(file, &data, compression)?,
                id::TEXT => return Err(latency()),
                id::EVENT_FORMATS | id::NAMES => {
                    let part = section(file, word(&mut data.as_slice())?, compression)?;
                    let mut part = part.as_slice();
                    match id {
                        id::NAMES => self.names(&mut part)?,
                        _ => self.events(&mut part, &is_used)?,
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes the options of a section. Returns where the next one is; 0: there is none.
    fn options_7(&mut self, data: &mut &[u8], sections: &mut Vec<(u16, Vec<u8>)>) -> Result<u64> {
        loop {
            let (id, size) = (quarter(data)?, half(data)?);
            let option = bytes(data, size.into())?;
            match id {
                id::DONE => return word(&mut option.as_slice()),
                id::CLOCK => self.clock = text(&option),
                id::OFFSET => self.shift(&option),
                id => sections.push((id, option)),
            }
        }
    }

    /// Takes the place of a buffer's records.
    fn buffer_7<R: Read + Seek>(&mut self, file: &mut R, option: &[u8], compression: Compression) -> Result<()> {
        let mut data = option;
        let place = word(&mut data)?;
        let (_name, clock) = (string(&mut data)?, string(&mut data)?);
        self.clock = clock;
        // Since trace-cmd 3.1 the size of a page comes first. Each processor has 20 bytes.
        let page = if data.len() % 20 == 8 { half(&mut data)? } else { 0 };
        if page > MAX_PAGE {
            return Err(Damaged("the size of a page makes no sense"));
        }
        let page = if page == 0 { self.page } else { page as usize };
        let cpus = count(half(&mut data)?)?;
        go(file, place)?;
        let (_id, flags) = (quarter(file)?, quarter(file)?);
        let packed = (flags & IS_COMPRESSED != 0).then(|| Packed::new(compression));
        for _ in 0..cpus {
            let (_cpu, offset, size) = (half(&mut data)?, word(&mut data)?, word(&mut data)?);
            self.cpus.push(Cpu::new(offset, size, page, packed.clone()));
        }
        Ok(())
    }

    fn events(&mut self, file: &mut impl Read, is_used: impl Fn(&str) -> bool) -> Result<()> {
        for _ in 0..count(half(file)?)? {
            let _system = string(file)?;
            for _ in 0..count(half(file)?)? {
                let size = word(file)?;
                let text = bytes(file, size)?;
                let Ok(format) = TraceFormat::parse(&String::from_utf8_lossy(&text)) else {
                    continue;
                };
                let Some(id) = format.id else { continue };
                let print = is_used(&format.name).then(|| Print::of(&format));
                let name = format.name;
                self.events.insert(id, Event { name, print });
            }
        }
        Ok(())
    }

    /// Takes the names of threads: a line for each, with its id first.
    fn names(&mut self, file: &mut impl Read) -> Result<()> {
        let size = word(file)?;
        let text = bytes(file, size)?;
        let text = String::from_utf8_lossy(&text);
        let lines = text.lines().filter_map(|line| line.trim().split_once(' '));
        let named = lines.filter_map(|(tid, name)| Some((tid.parse().ok()?, name.to_owned())));
        self.names.extend(named);
        Ok(())
    }

    fn shift(&mut self, option: &[u8]) {
        self.shift_ns = text(option).trim().parse().unwrap_or(0);
    }
}

/// Reads the contents of a section.
fn section<R: Read + Seek>(file: &mut R, place: u64, compression: Compression) -> Result<Vec<u8>> {
    go(file, place)?;
    let (_id, flags) = (quarter(file)?, quarter(file)?);
    let _description = half(file)?;
    let size = word(file)?;
    if flags & IS_COMPRESSED == 0 {
        bytes(file, size)
    } else {
        compression.part(file, MAX_PART)
    }
}

fn text(option: &[u8]) -> String {
    let text = option.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn count(count: u32) -> Result<u32> {
    if count <= MAX_COUNT {
        Ok(count)
    } else {
        Err(Damaged("a count makes no sense"))
    }
}

fn latency() -> TraceDatError {
    Unsupported(
        "it has the text of a latency tracer, not records of events; record with `trace-cmd record -e gpu_scheduler COMMAND`".to_owned(),
    )
}
