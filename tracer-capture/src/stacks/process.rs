//! What a process has mapped, for its stacks.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tracer_common::record::StackSample;
use tracer_core::foreign;

use super::{
    perf_map::{MAX_MAP, PerfMap},
    walk::Rule,
};
use crate::{
    confined::{Examine, File, FileInfo, ProcFile},
    runtime::unwind::Module,
    target::proc_maps::{self, Mapping},
};

/// How long one file may take.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// A list that costs a time to read is not read again before this many times of it.
const SHARE: u32 = 10;
/// The maximum number of rows and functions of all files together, some 40 bytes each. Beyond it all files are read anew.
const MAX_WEIGHT: usize = 8 << 20;
/// How often a file is tried.
const TRIES: u32 = 3;
/// The maximum number of places of generated code that are remembered for a process.
const MAX_CODE: usize = 1 << 16;
/// The addresses that code of a program can have.
const USER: Range<u64> = 1 << 16..1 << 47;
/// The maximum number of symbols that are demangled at a time.
const SYMBOLS: usize = 16;

/// Files by their identity, and the names of their functions.
#[derive(Default)]
pub struct Modules {
    files: HashMap<FileInfo, Arc<Module>>,
    weight: usize,
    names: HashMap<String, String>,
}

impl Modules {
    fn of(&mut self, examine: &Examine<'_>, file: &File) -> Arc<Module> {
        if let Some(known) = self.files.get(&file.info()) {
            return Arc::clone(known);
        }
        let module = again(|| examine.unwind(file)).unwrap_or_else(|error| {
            log::warn!("stacks end in a file of process {}: {error}", examine.pid);
            Module::default()
        });
        if self.weight > MAX_WEIGHT {
            self.files.clear();
            self.weight = 0;
        }
        self.weight += module.weight();
        let module = Arc::new(module);
        self.files.insert(file.info(), Arc::clone(&module));
        module
    }

    /// Demangles symbols that are not known yet.
    fn learn(&mut self, examine: &Examine<'_>, symbols: impl Iterator<Item = String>) {
        let mut new: Vec<String> = symbols.filter(|symbol| !self.names.contains_key(symbol)).collect();
        new.sort_unstable();
        new.dedup();
        if self.names.len() > MAX_WEIGHT / 64 {
            self.names.clear();
        }
        for some in new.chunks(SYMBOLS) {
            let names = examine.demangle(some.to_vec()).unwrap_or_else(|_| some.to_vec());
            self.names.extend(some.iter().cloned().zip(names));
        }
    }
}

/// A file mapping, and its file.
pub struct Mapped {
    mapping: Mapping,
    /// Set when a stack first has an address in the mapping; `None` in it if the file could not be opened.
    file: OnceLock<Option<Arc<File>>>,
}

/// Tries something again that can fail because the machine is busy.
fn again<T, E>(mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    for _ in 1..TRIES {
        if let Ok(done) = attempt() {
            return Ok(done);
        }
    }
    attempt()
}

/// A place in a file: the number of its mapping, the file's contents, and the linked address.
type Found = (usize, Arc<Module>, u64);

/// What a process had mapped when a sample was taken, and what is needed of its memory.
pub struct View<'a> {
    examine: Examine<'a>,
    mapped: Arc<Vec<Mapped>>,
    perf_map: Arc<PerfMap>,
    code: HashMap<u64, [u8; 8]>,
}

/// A process. Its files stay open, so that the stacks of a process that has exited can be unwound.
pub struct Process<'a> {
    examine: Examine<'a>,
    /// The ranges of all mappings, and of those that are executable and show no file: generated code.
    ranges: Vec<Range<u64>>,
    generated: Vec<Range<u64>>,
    mapped: Arc<Vec<Mapped>>,
    perf_map: Arc<PerfMap>,
    code: HashMap<u64, [u8; 8]>,
    maps_again: Instant,
    perf_map_again: Instant,
}

impl<'a> Process<'a> {
    /// Reads what a process has mapped.
    pub fn new(examine: Examine<'a>) -> Self {
        let now = Instant::now();
        let mut process = Self {
            examine,
            ranges: Vec::new(),
            generated: Vec::new(),
            mapped: Arc::default(),
            perf_map: Arc::default(),
            code: HashMap::new(),
            maps_again: now,
            perf_map_again: now,
        };
        process.read_maps();
        process
    }

    /// Returns whether nothing of the process could be read.
    pub fn is_unknown(&self) -> bool {
        self.mapped.is_empty()
    }

    /// Reads at once what can be gone later: new mappings, and generated code that the stack may return to.
    pub fn view(&mut self, sample: &StackSample) -> View<'a> {
        let bytes = sample.bytes.get(..sample.len as usize).unwrap_or_default();
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: Vec<u64> = words.chain([sample.ip]).filter(|word| USER.contains(word)).collect();
        if words.iter().any(|&word| !is_in(&self.ranges, word)) {
            self.read_maps();
        }
        let code: Vec<u64> = words
            .iter()
            .copied()
            .filter(|&word| is_in(&self.generated, word))
            .collect();
        if code.iter().any(|&word| self.perf_map.name(word - 1).is_none()) {
            self.read_perf_map();
        }
        self.read_code(&code);
        self.open_files(&words);
        View {
            examine: self.examine,
            mapped: Arc::clone(&self.mapped),
            perf_map: Arc::clone(&self.perf_map),
            code: code
                .iter()
                .filter_map(|word| Some((*word, *self.code.get(word)?)))
                .collect(),
        }
    }

    fn read_maps(&mut self) {
        let began = Instant::now();
        if began < self.maps_again {
            return;
        }
        self.examine.deadline = began + PATIENCE;
        let Ok(text) = self.examine.proc_file(ProcFile::Maps) else {
            return;
        };
        let (all, generated) = ranges(&text);
        // The kernel lists no mappings of a process that exits. The sample is from before that, so the former list applies.
        if all.is_empty() {
            return;
        }
        (self.ranges, self.generated) = (all, generated);
        let old: HashMap<_, _> = self
            .mapped
            .iter()
            .map(|mapped| (mapped.mapping.start, mapped))
            .collect();
        let mapped = proc_maps::executable_in(&text).into_iter().map(|mapping| {
            let known = old.get(&mapping.start).filter(|known| known.mapping == mapping);
            let file = known.map_or_else(OnceLock::new, |known| known.file.clone());
            Mapped { mapping, file }
        });
        self.mapped = Arc::new(mapped.collect());
        self.maps_again = Instant::now() + began.elapsed() * SHARE;
    }

    /// Opens the files that a stack may need: quickly, because the process may exit.
    fn open_files(&mut self, words: &[u64]) {
        self.examine.deadline = Instant::now() + PATIENCE;
        for &word in words {
            let after = self.mapped.partition_point(|mapped| mapped.mapping.start <= word);
            let mapped = after.checked_sub(1).and_then(|at| self.mapped.get(at));
            if let Some(mapped) = mapped.filter(|mapped| word < mapped.mapping.end) {
                mapped.file.get_or_init(|| {
                    let file = again(|| self.examine.mapped(&mapped.mapping));
                    let path = &mapped.mapping.path;
                    file.inspect_err(|error| log::warn!("stacks end in {}: {error}", foreign::line(path)))
                        .ok()
                        .map(Arc::new)
                });
            }
        }
    }

    fn read_code(&mut self, places: &[u64]) {
        let new: Vec<u64> = places
            .iter()
            .copied()
            .filter(|place| !self.code.contains_key(place))
            .collect();
        if new.is_empty() {
            return;
        }
        if self.code.len() > MAX_CODE {
            self.code.clear();
        }
        self.examine.deadline = Instant::now() + PATIENCE;
        let memory = self.examine.memory();
        memory.fetch_all(new.iter().copied());
        let read = new
            .iter()
            .filter_map(|place| Some((*place, memory.word(*place).ok()?.to_le_bytes())));
        self.code.extend(read);
    }

    fn read_perf_map(&mut self) {
        let began = Instant::now();
        if began < self.perf_map_again {
            return;
        }
        self.examine.deadline = began + PATIENCE;
        if let Some(map) = self.perf_map() {
            self.perf_map = Arc::new(map);
        }
        self.perf_map_again = Instant::now() + began.elapsed() * SHARE;
    }

    fn perf_map(&self) -> Option<PerfMap> {
        // The process names the file by its id in its own namespace.
        let status = self.examine.proc_file(ProcFile::Status).ok()?;
        let status = String::from_utf8_lossy(&status);
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:\t"))?;
        let own: u32 = ids.split('\t').next_back()?.trim().parse().ok()?;
        let file = self.examine.in_root(format!("/tmp/perf-{own}.map").as_bytes()).ok()?;
        // Any user can create a file of that name.
        self.examine.owns(&file).then_some(())?;
        let whole = self.examine.whole(&file, MAX_MAP).ok()?;
        Some(PerfMap::parse(whole.bytes()))
    }
}

/// Returns the ranges of all mappings, and of those with generated code, in the order of their addresses.
fn ranges(maps: &[u8]) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut all, mut generated) = (Vec::new(), Vec::new());
    for line in maps.split(|&byte| byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let range = words.next().and_then(|word| word.split_once('-'));
        let range = range.and_then(|(start, end)| Some(hex(start)?..hex(end)?));
        let (Some(range), Some(permissions), Some(inode)) = (range, words.next(), words.nth(2)) else {
            continue;
        };
        if permissions.as_bytes().get(2) == Some(&b'x') && inode == "0" {
            generated.push(range.clone());
        }
        all.push(range);
    }
    (all, generated)
}

fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    let after = ranges.partition_point(|range| range.start <= address);
    after
        .checked_sub(1)
        .and_then(|at| ranges.get(at))
        .is_some_and(|range| range.contains(&address))
}

impl View<'_> {
    /// Returns the file at an address: its mapping, its contents, and the linked address.
    fn at(&mut self, modules: &mut Modules, place: u64) -> Option<Found> {
        let index = self
            .mapped
            .partition_point(|mapped| mapped.mapping.start <= place)
            .checked_sub(1)?;
        let mapped = self.mapped.get(index).filter(|mapped| place < mapped.mapping.end)?;
        self.examine.deadline = Instant::now() + PATIENCE;
        let module = modules.of(&self.examine, mapped.file.get()?.as_ref()?);
        let offset = place - mapped.mapping.start + mapped.mapping.offset;
        let address = module.address_of(offset)?;
        Some((index, module, address))
    }

    /// Returns what is known about the code at an address.
    pub fn rule(&mut self, modules: &mut Modules, place: u64, next: u64) -> Rule {
        match self.at(modules, place) {
            Some((_, module, address)) => module.row(address).map_or(Rule::None, Rule::File),
            None => self.code.get(&next).map_or(Rule::None, |code| Rule::Generated(*code)),
        }
    }

    /// Returns the lines of frames, in the form of the table `stacks`.
    pub fn lines(&mut self, modules: &mut Modules, places: &[u64]) -> Vec<String> {
        let found: Vec<_> = places.iter().map(|&place| (place, self.at(modules, place))).collect();
        let symbols = found
            .iter()
            .filter_map(|(_, at)| at.as_ref().and_then(|(_, module, at)| module.symbol(*at)));
        self.examine.deadline = Instant::now() + PATIENCE;
        modules.learn(&self.examine, symbols.map(str::to_owned));
        let line = |(place, at): &(u64, Option<Found>)| {
            let Some((index, module, address)) = at else {
                let name = self.perf_map.name(*place).unwrap_or("-");
                return format!("{}\t-\t{place:#x}\t-", foreign::line(name));
            };
            let symbol = module.symbol(*address);
            let name = symbol.map(|symbol| modules.names.get(symbol).map_or(symbol, String::as_str));
            let path = self
                .mapped
                .get(*index)
                .map_or("-", |mapped| mapped.mapping.path.as_str());
            format!(
                "{}\t{}\t{address:#x}\t{}",
                foreign::line(name.unwrap_or("-")),
                foreign::line(path.rsplit('/').next().unwrap_or("-")),
                module.build_id.as_deref().unwrap_or("-")
            )
        };
        found.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        process::{Command, Stdio},
    };

    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    use super::*;
    use crate::confined::{Parsers, Readers};

    #[test]
    fn what_a_process_had_mapped_stays_known_when_it_exits() {
        // SAFETY: the child process makes only plain calls; the other threads of this test program only wait.
        let readers = unsafe { Readers::start() }.unwrap();
        let parsers = Parsers::new(&readers);
        let mut child = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Once it answers, it has mapped everything.
        child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let soon = Instant::now() + Duration::from_secs(60);
        let examine = Examine::new(&readers, &parsers, child.id(), soon).unwrap();
        let mut process = Process::new(examine);
        assert!(!process.is_unknown());
        let mapping = |mapped: &Mapped| mapped.mapping.clone();
        let before: Vec<_> = process.mapped.iter().map(mapping).collect();
        let ranges = process.ranges.clone();

        child.kill().unwrap();
        // The process keeps its number until it is waited for.
        waitid(
            WaitId::Pid(Pid::from_child(&child)),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        )
        .unwrap();
        // Some kernels list nothing, others refuse.
        assert_eq!(examine.proc_file(ProcFile::Maps).unwrap_or_default(), b"");
        process.maps_again = Instant::now();
        process.read_maps();
        child.wait().unwrap();
        assert_eq!(process.mapped.iter().map(mapping).collect::<Vec<_>>(), before);
        assert_eq!(process.ranges, ranges);
    }

    #[test]
    fn generated_code_is_what_is_executable_and_shows_no_file() {
        let maps = b"1000-2000 r-xp 00000000 fd:01 77    /a b\n2000-3000 r-xp 00000000 00:00 0 \n\
            4000-5000 rw-p 00000000 00:00 0 [heap]\nnonsense\n";
        let (all, generated) = ranges(maps);
        assert_eq!(all, [0x1000..0x2000, 0x2000..0x3000, 0x4000..0x5000]);
        assert_eq!((generated.len(), generated[0].clone()), (1, 0x2000..0x3000));
        assert!(is_in(&all, 0x2fff) && !is_in(&all, 0x3000) && !is_in(&all, 0));
    }
}
