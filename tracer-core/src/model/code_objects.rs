//! The kernel at an address at a given time: code objects are loaded and unloaded, and their addresses are reused.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{LINGER_NS, loss};
use crate::code_object::CodeObject as Loaded;
use crate::event::{CodeObject as Event, CodeObjectChange, Origin};
use crate::losses::{KERNEL_LIMIT, LIST_UNREAD};
use crate::tables::{CodeObject, Evidence, Fact, Kernel};

/// Largest number of kernels kept, over all processes. Kernels beyond the limit have no name.
const MAX_KERNELS: usize = 1 << 20;

/// Code objects that are loaded, or were unloaded so recently that dispatches of their kernels may still arrive.
#[derive(Debug, Default)]
pub(super) struct CodeObjects {
    /// Loaded code objects, by process and the number assigned by capture.
    live: BTreeMap<(u32, u64), Live>,
    /// Kernels by process and address; for one address, the youngest last. No entry is empty.
    kernels: BTreeMap<(u32, u64), Vec<Named>>,
    count: usize,
    /// Unloaded code objects whose kernels are still known.
    ended: VecDeque<Ended>,
    next: u32,
}

/// An unloaded code object: time, process, number, addresses of its kernels.
type Ended = (u64, u32, u32, Vec<u64>);

#[derive(Debug)]
struct Live {
    fact: CodeObject,
    /// Addresses of its kernels.
    addresses: Vec<u64>,
}

/// A kernel while its code object was loaded.
#[derive(Debug)]
struct Named {
    code_object: u32,
    from_ns: u64,
    to_ns: u64,
    name: Arc<str>,
}

impl CodeObjects {
    /// Returns the name of the kernel whose descriptor was at an address at a time, if known.
    pub(super) fn name(&self, pid: u32, address: u64, time_ns: u64) -> Option<&Arc<str>> {
        let mut named = self.kernels.get(&(pid, address))?.iter().rev();
        let kernel = named.find(|kernel| (kernel.from_ns..=kernel.to_ns).contains(&time_ns))?;
        Some(&kernel.name)
    }

    /// Names the kernel of a dispatch, or of a request.
    pub(super) fn set_name(&self, fact: &mut Fact) {
        let (pid, address, time_ns, kernel) = match fact {
            // A log names its kernels itself.
            Fact::Dispatch(row) if row.evidence == Evidence::Log => return,
            Fact::Dispatch(row) => (row.pid, row.kernel_object, row.time_ns, &mut row.kernel),
            Fact::Request(row) => (row.pid, row.kernel_object, row.time_ns, &mut row.kernel),
            _ => return,
        };
        *kernel = self.name(pid, address, time_ns).cloned();
    }

    /// Applies a change of a runtime's list.
    pub(super) fn apply(&mut self, event: &Event<'_>, out: &mut impl FnMut(Fact)) {
        let Origin { time_ns, pid, .. } = event.origin;
        match event.change {
            CodeObjectChange::Loaded(loaded) => self.load(pid, time_ns, loaded, out),
            CodeObjectChange::Unloaded { id } => {
                if let Some(live) = self.live.remove(&(pid, id)) {
                    self.end(live, time_ns, time_ns, Some(time_ns), out);
                }
            }
            CodeObjectChange::Unread => {
                // The addresses may mean something else from now on.
                self.end_all(event.origin, time_ns, None, out);
                out(loss(time_ns, LIST_UNREAD, 1));
            }
        }
    }

    /// Ends the code objects of a process that runs another program.
    pub(super) fn exec(&mut self, origin: Origin, out: &mut impl FnMut(Fact)) {
        self.end_all(origin, origin.time_ns, Some(origin.time_ns), out);
    }

    /// Ends the code objects of a process that exited. Threads that had not exited yet may ring doorbells a little longer.
    pub(super) fn exit(&mut self, origin: Origin, out: &mut impl FnMut(Fact)) {
        self.end_all(origin, u64::MAX, Some(origin.time_ns), out);
    }

    /// Forgets the kernels that no dispatch can name any more.
    pub(super) fn settle(&mut self, now: u64) {
        let is_over = |ended: &mut Ended| ended.0.saturating_add(LINGER_NS) <= now;
        while let Some((_, pid, code_object, addresses)) = self.ended.pop_front_if(is_over) {
            self.forget(pid, code_object, &addresses);
        }
    }

    /// Ends the trace: reports the loaded code objects as facts.
    pub(super) fn finish(&mut self, out: &mut impl FnMut(Fact)) {
        let mut all: Vec<CodeObject> = std::mem::take(&mut self.live)
            .into_values()
            .map(|live| live.fact)
            .collect();
        all.sort_unstable_by_key(|fact| fact.code_object);
        all.into_iter().map(Fact::CodeObject).for_each(out);
        self.kernels.clear();
        self.ended.clear();
        self.count = 0;
    }

    /// Returns the code objects that are loaded now.
    pub(super) fn iter(&self) -> impl Iterator<Item = &CodeObject> {
        self.live.values().map(|live| &live.fact)
    }

    fn load(&mut self, pid: u32, time_ns: u64, loaded: &Loaded, out: &mut impl FnMut(Fact)) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        let found = loaded.kernels.as_deref();
        let mut fact = CodeObject {
            code_object: number,
            pid,
            origin: loaded.origin,
            load_base: loaded.base,
            uri: loaded.uri.clone(),
            target: loaded.target.clone(),
            version: loaded.version,
            kernels: found.ok().and_then(|kernels| u32::try_from(kernels.len()).ok()),
            unread: found.err().copied(),
            loaded_ns: time_ns,
            unloaded_ns: None,
        };
        let mut addresses = Vec::new();
        let kernels = found.unwrap_or_default();
        if self.count.saturating_add(kernels.len()) > MAX_KERNELS {
            fact.kernels = None;
            fact.unread = Some(crate::code_object::KernelsUnread::TooLarge);
            out(loss(time_ns, KERNEL_LIMIT, 1));
        } else {
            self.count += kernels.len();
            for kernel in kernels {
                let kernel_object = loaded.base.wrapping_add(kernel.offset);
                addresses.push(kernel_object);
                self.kernels.entry((pid, kernel_object)).or_default().push(Named {
                    code_object: number,
                    from_ns: time_ns,
                    to_ns: u64::MAX,
                    name: Arc::clone(&kernel.name),
                });
                let resources = kernel.resources;
                out(Fact::Kernel(Kernel {
                    code_object: number,
                    pid,
                    loaded_ns: time_ns,
                    kernel_object,
                    name: Arc::clone(&kernel.name),
                    symbol: Arc::clone(&kernel.symbol),
                    kernarg_bytes: resources.kernarg_bytes,
                    group_bytes: resources.group_bytes,
                    private_bytes: resources.private_bytes,
                    vgprs: resources.vgprs,
                    agprs: resources.agprs,
                    sgprs: resources.sgprs,
                    wavefront: resources.wavefront,
                    max_workgroup: resources.max_workgroup,
                }));
            }
        }
        let live = Live { fact, addresses };
        if let Some(old) = self.live.insert((pid, loaded.id), live) {
            // Capture never reuses a number. If a number arrives twice anyway, the two are different code objects.
            self.end(old, time_ns, time_ns, None, out);
        }
    }

    /// Ends the code objects of a process. Their addresses are not valid after `to_ns`.
    fn end_all(&mut self, origin: Origin, to_ns: u64, unloaded_ns: Option<u64>, out: &mut impl FnMut(Fact)) {
        let of_process = (origin.pid, 0)..=(origin.pid, u64::MAX);
        let all: Vec<_> = self.live.extract_if(of_process, |_, _| true).collect();
        for (_, live) in all {
            self.end(live, origin.time_ns, to_ns, unloaded_ns, out);
        }
    }

    /// Ends a code object. Its addresses are not valid after `to_ns`.
    fn end(&mut self, live: Live, time_ns: u64, to_ns: u64, unloaded_ns: Option<u64>, out: &mut impl FnMut(Fact)) {
        let Live { mut fact, addresses } = live;
        fact.unloaded_ns = unloaded_ns;
        for &address in &addresses {
            let named = self.kernels.get_mut(&(fact.pid, address)).into_iter().flatten();
            for kernel in named.filter(|kernel| kernel.code_object == fact.code_object) {
                kernel.to_ns = to_ns;
            }
        }
        self.ended.push_back((time_ns, fact.pid, fact.code_object, addresses));
        out(Fact::CodeObject(fact));
    }

    fn forget(&mut self, pid: u32, code_object: u32, addresses: &[u64]) {
        for &address in addresses {
            let Some(named) = self.kernels.get_mut(&(pid, address)) else {
                continue;
            };
            let before = named.len();
            named.retain(|kernel| kernel.code_object != code_object);
            self.count = self.count.saturating_sub(before - named.len());
            if named.is_empty() {
                self.kernels.remove(&(pid, address));
            }
        }
    }
}
