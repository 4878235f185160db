//! Which kernel an address meant at a time: code objects are loaded and unloaded, and their addresses are used again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::LINGER_NS;
use crate::code_object::CodeObject as Loaded;
use crate::event::{CodeObject as Event, CodeObjectChange, Origin};
use crate::fact::{CodeObject, Fact, Kernel, Loss};

/// Kernels kept at the most, of all processes. What is beyond has no name.
const MAX_KERNELS: usize = 1 << 20;
/// Source of the [`Fact::Loss`] for code objects whose kernels are beyond that.
pub(crate) const KERNEL_LIMIT: &str = "model-kernels";
/// Source of the [`Fact::Loss`] for changes of a runtime's list that could not be read.
pub(crate) const LIST_UNREAD: &str = "code-object-list";

/// Code objects that are loaded, or were so lately that dispatches of theirs may still come.
///
/// Ordered maps, because an empty one costs nothing: see where the model takes this out of itself.
#[derive(Debug, Default)]
pub(super) struct CodeObjects {
    /// Those that live, by process and capture's number.
    live: BTreeMap<(u32, u64), Live>,
    /// Kernels by process and address; of one address the youngest last. Never empty.
    kernels: BTreeMap<(u32, u64), Vec<Named>>,
    count: usize,
    /// Ended ones whose kernels are still known: time, process, addresses.
    ended: VecDeque<(u64, u32, u32, Vec<u64>)>,
    next: u32,
}

#[derive(Debug)]
struct Live {
    fact: CodeObject,
    /// Of its kernels.
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
    /// The kernel whose descriptor was at that address at that time, if that is known.
    pub(super) fn name(&self, pid: u32, address: u64, time_ns: u64) -> Option<&Arc<str>> {
        let named = self.kernels.get(&(pid, address))?.iter().rev();
        named
            .into_iter()
            .find(|kernel| (kernel.from_ns..=kernel.to_ns).contains(&time_ns))
            .map(|kernel| &kernel.name)
    }

    /// Names the kernel of a dispatch, or of one that was asked for.
    pub(super) fn named(&self, fact: Fact) -> Fact {
        match fact {
            Fact::Dispatch(mut dispatch) => {
                let name = self.name(dispatch.pid, dispatch.kernel_object, dispatch.time_ns);
                dispatch.kernel = name.cloned();
                Fact::Dispatch(dispatch)
            }
            Fact::Request(mut request) => {
                let name = self.name(request.pid, request.kernel_object, request.time_ns);
                request.kernel = name.cloned();
                Fact::Request(request)
            }
            other => other,
        }
    }

    /// A change of a runtime's list.
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
                // Whatever is at an address from now on, it may not be what was there.
                self.end_all(pid, time_ns, None, out);
                out(loss(time_ns, LIST_UNREAD));
            }
        }
    }

    /// A process runs another program: nothing of the former one is there any more.
    pub(super) fn exec(&mut self, origin: Origin, out: &mut impl FnMut(Fact)) {
        self.end_all(origin.pid, origin.time_ns, Some(origin.time_ns), out);
    }

    /// A process ended. Threads of it that had not ended yet may ring doorbells a little longer.
    pub(super) fn exit(&mut self, origin: Origin, out: &mut impl FnMut(Fact)) {
        let lasting = u64::MAX;
        let keys = self.of_process(origin.pid);
        for key in keys {
            if let Some(live) = self.live.remove(&key) {
                self.end(live, origin.time_ns, lasting, Some(origin.time_ns), out);
            }
        }
    }

    /// Forgets what no dispatch can name any more.
    pub(super) fn settle(&mut self, now: u64) {
        while let Some((end, ..)) = self.ended.front() {
            if end.saturating_add(LINGER_NS) > now {
                return;
            }
            if let Some((_, pid, code_object, addresses)) = self.ended.pop_front() {
                self.forget(pid, code_object, &addresses);
            }
        }
    }

    /// The trace ends: those that live become facts.
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

    /// Those that live now.
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
            out(loss(time_ns, KERNEL_LIMIT));
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
            // Capture never gives a number again; one that came twice is two all the same.
            self.end(old, time_ns, time_ns, None, out);
        }
    }

    fn end_all(&mut self, pid: u32, time_ns: u64, unloaded_ns: Option<u64>, out: &mut impl FnMut(Fact)) {
        for key in self.of_process(pid) {
            if let Some(live) = self.live.remove(&key) {
                self.end(live, time_ns, time_ns, unloaded_ns, out);
            }
        }
    }

    fn of_process(&self, pid: u32) -> Vec<(u32, u64)> {
        self.live
            .range((pid, 0)..=(pid, u64::MAX))
            .map(|(&key, _)| key)
            .collect()
    }

    /// After `to_ns` its addresses mean nothing.
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

fn loss(time_ns: u64, source: &str) -> Fact {
    Fact::Loss(Loss {
        time_ns,
        source: source.to_owned(),
        count: 1,
    })
}
