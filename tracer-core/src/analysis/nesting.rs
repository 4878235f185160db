//! Calls inside calls: API functions, the ioctls that they make, and the driver's functions in these.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::tables::{DriverCall, Ioctl};
use crate::tally::more;

/// Number of rows. The functions of an API can call each other in more ways than a reader wants to see.
const MAX_NODES: usize = 4096;
/// Driver functions that a thread can be in at a time.
const MAX_DEPTH: usize = 32;

/// The calls of one function from the same place: directly inside the row above it that is one level higher.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Nested {
    /// Level: 0 if no recorded call is around these calls.
    pub depth: usize,
    /// `hip`, `hsa`, `opencl`, `ioctl`, or `driver` for a function of the kernel driver.
    pub layer: String,
    /// Name of the function or ioctl.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Time in those that returned, ns.
    pub total_ns: u64,
    /// The part of it outside of the calls inside, ns.
    pub own_ns: u64,
    /// The longest of them, ns.
    pub max_ns: u64,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Callee {
    /// An API function, by the number of the counter of calls.
    Api(usize),
    /// An ioctl, by its place in `names`.
    Ioctl(usize),
    /// A driver function, by its place in `names`.
    Driver(usize),
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    callee: Callee,
    calls: u64,
    total_ns: u64,
    inside_ns: u64,
    max_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counter {
    nodes: Vec<Node>,
    places: HashMap<(Option<usize>, Callee), usize>,
    names: Vec<String>,
    numbers: HashMap<String, usize>,
    /// The ioctl of each thread, and the driver functions in it: end and row.
    kernel: HashMap<(u32, u32), Vec<(u64, usize)>>,
}

impl Counter {
    /// Returns the row of an API function that is called inside a row.
    pub(super) fn api(&mut self, parent: Option<usize>, function: Option<usize>) -> Option<usize> {
        self.node(parent, Callee::Api(function?))
    }

    /// Counts a call that ended; without a time, one that did not return.
    pub(super) fn end(&mut self, node: Option<usize>, ns: Option<u64>) {
        let Some(at) = node else { return };
        let ns = ns.unwrap_or(0);
        let node = &mut self.nodes[at];
        node.calls += 1;
        more(&mut node.total_ns, ns);
        node.max_ns = node.max_ns.max(ns);
        if let Some(parent) = node.parent {
            more(&mut self.nodes[parent].inside_ns, ns);
        }
    }

    /// Counts an ioctl inside a row.
    pub(super) fn ioctl(&mut self, parent: Option<usize>, ioctl: &Ioctl) {
        let callee = Callee::Ioctl(self.name(&ioctl.name));
        let node = self.node(parent, callee);
        self.end(node, ioctl.duration_ns());
        let inside = self.kernel.entry((ioctl.pid, ioctl.tid)).or_default();
        inside.clear();
        inside.extend(node.map(|node| (ioctl.exit_ns, node)));
    }

    /// Counts a call of a driver function, if its thread is in an ioctl.
    pub(super) fn driver(&mut self, call: &DriverCall) {
        let callee = Callee::Driver(self.name(&call.function));
        let Some(around) = self.kernel.get_mut(&(call.pid, call.tid)) else {
            return;
        };
        while around.last().is_some_and(|&(end, _)| end <= call.enter_ns) {
            around.pop();
        }
        let Some(&(_, parent)) = around.last().filter(|_| around.len() < MAX_DEPTH) else {
            return;
        };
        let node = self.node(Some(parent), callee);
        self.end(node, Some(call.exit_ns.saturating_sub(call.enter_ns)));
        if let (Some(node), Some(around)) = (node, self.kernel.get_mut(&(call.pid, call.tid))) {
            around.push((call.exit_ns, node));
        }
    }

    /// Returns the rows: each above those inside it, the most time first. `api` names a function: layer and name.
    pub(super) fn finish<'a>(&'a self, api: impl Fn(usize) -> (&'a str, &'a str)) -> Vec<Nested> {
        let mut inside: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.calls > 0) {
            inside.entry(node.parent).or_default().push(at);
        }
        for nodes in inside.values_mut() {
            // The last one is popped first.
            nodes.sort_by_key(|&at| (self.nodes[at].total_ns, std::cmp::Reverse(at)));
        }
        let mut rows = Vec::with_capacity(self.nodes.len());
        let mut left: Vec<(usize, usize)> = Vec::new();
        let push = |left: &mut Vec<(usize, usize)>, of, depth| {
            let nodes = inside.get(&of).into_iter().flatten();
            left.extend(nodes.map(|&at| (at, depth)));
        };
        push(&mut left, None, 0);
        while let Some((at, depth)) = left.pop() {
            let node = &self.nodes[at];
            let name = |number: usize| self.names.get(number).map_or("", String::as_str);
            let (layer, name) = match node.callee {
                Callee::Api(number) => api(number),
                Callee::Ioctl(number) => ("ioctl", name(number)),
                Callee::Driver(number) => ("driver", name(number)),
            };
            rows.push(Nested {
                depth,
                layer: layer.to_owned(),
                name: name.to_owned(),
                calls: node.calls,
                total_ns: node.total_ns,
                own_ns: node.total_ns.saturating_sub(node.inside_ns),
                max_ns: node.max_ns,
            });
            push(&mut left, Some(at), depth + 1);
        }
        rows
    }

    /// Returns the row of a callee inside another; `None` beyond the limit.
    fn node(&mut self, parent: Option<usize>, callee: Callee) -> Option<usize> {
        let at = *self.places.entry((parent, callee)).or_insert(self.nodes.len());
        if at >= MAX_NODES {
            self.places.remove(&(parent, callee));
            return None;
        }
        if at == self.nodes.len() {
            self.nodes.push(Node {
                parent,
                callee,
                calls: 0,
                total_ns: 0,
                inside_ns: 0,
                max_ns: 0,
            });
        }
        Some(at)
    }

    /// Returns the number of a name. Names that nothing can be called by any more share one.
    fn name(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len();
        if number < MAX_NODES {
            self.names.push(name.to_owned());
            self.numbers.insert(name.to_owned(), number);
        }
        number
    }
}
