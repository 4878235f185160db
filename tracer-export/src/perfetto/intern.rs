//! Names that a trace contains once, and refers to by number.

use std::collections::HashMap;

use super::proto::{gpu, interned_data as interned};
use super::wire::Message;

/// The names that were written, and those that the next packet must add.
#[derive(Debug, Default)]
pub struct Interned {
    numbers: HashMap<(Kind, String), u64>,
    last: HashMap<Kind, u64>,
    new: Message,
}

/// What a name is of. Each kind has numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An event.
    Event,
    /// A category.
    Category,
    /// An argument.
    Argument,
    /// A queue of a GPU, or what it runs.
    Gpu,
    /// A process that uses a GPU.
    Context,
}

impl Interned {
    /// Returns the number of a name. A new one goes into the next packet.
    pub fn number(&mut self, kind: Kind, name: &str) -> u64 {
        let key = (kind, name.to_owned());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let last = self.last.entry(kind).or_default();
        *last += 1;
        let number = *last;
        self.numbers.insert(key, number);
        let field = match kind {
            Kind::Event => interned::EVENT_NAMES,
            Kind::Category => interned::EVENT_CATEGORIES,
            Kind::Argument => interned::DEBUG_ANNOTATION_NAMES,
            Kind::Gpu => interned::GPU_SPECIFICATIONS,
            Kind::Context => interned::GRAPHICS_CONTEXTS,
        };
        self.new.message(field, |entry| {
            entry.uint(interned::IID, number);
            match kind {
                Kind::Context => {
                    entry.int(gpu::CONTEXT_PID, name.parse().unwrap_or(0));
                }
                Kind::Gpu => {
                    entry.text(interned::NAME, name).uint(gpu::CATEGORY, gpu::COMPUTE);
                }
                _ => {
                    entry.text(interned::NAME, name);
                }
            }
        });
        number
    }

    /// Returns the names that the next packet must add, and forgets that they are new.
    pub fn take_new(&mut self) -> Option<Message> {
        let new = std::mem::take(&mut self.new);
        (!new.bytes().is_empty()).then_some(new)
    }
}
