//! Parameters of functions, and what is needed to read a member.

use std::collections::HashMap;

use aya_obj::btf::BtfKind;

use super::Btf;

/// A member of a structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Offset in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// The values of its enumeration, with their names; empty if it is no enumeration.
    pub enumerators: Vec<(u32, String)>,
}

/// The way in which an argument is passed.
enum Passed {
    /// In one register; the name of the structure that it points to, if it does.
    Word(Option<String>),
    /// In memory, or in several registers. The place of further arguments is unknown.
    Otherwise,
}

impl Btf {
    /// Returns whether the kernel itself has a function of this name. Compilers change some functions, which then are missing.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.has(BtfKind::Func, name)
    }

    /// Returns whether the kernel itself has a variable of this name, of which each processor has its own.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.has(BtfKind::Var, name)
    }

    /// Returns whether the kernel has a structure of this name.
    #[must_use]
    pub fn has_structure(&self, name: &str) -> bool {
        self.named(name).next().is_some()
    }

    fn has(&self, wanted: BtfKind, name: &str) -> bool {
        let named = self.sections.first().into_iter().flat_map(|section| {
            let types = section.types.iter().map(|&at| (section.info(at), section.word(at)));
            types.filter_map(move |(info, name)| info.filter(|(kind, ..)| *kind == wanted).and(name))
        });
        let mut names = named.filter_map(|offset| self.string(offset));
        names.any(|found| found == name.as_bytes())
    }

    /// Returns the parameters of functions of the module that are passed in registers: for each the name of the structure that it
    /// points to, if it does. A function is absent if it is not in the module, or if several of its functions have that name.
    #[must_use]
    pub fn parameters(&self, functions: &[&str]) -> HashMap<String, Vec<Option<String>>> {
        /// The ABI passes six arguments in registers.
        const REGISTERS: usize = 6;
        let mut found: HashMap<String, Option<Vec<Option<String>>>> = HashMap::new();
        let Some(section) = self.sections.last() else {
            return HashMap::new();
        };
        for &at in &section.types {
            let Some((BtfKind::Func, ..)) = section.info(at) else {
                continue;
            };
            let name = section.word(at).and_then(|name| self.string(name));
            let Some(name) = name.and_then(|name| functions.iter().find(|wanted| wanted.as_bytes() == name)) else {
                continue;
            };
            let prototype = section.word(at + 8).and_then(|id| self.types_of_parameters(id));
            let mut parameters = Vec::new();
            for id in prototype.into_iter().flatten().take(REGISTERS) {
                let Passed::Word(structure) = self.passed(id) else {
                    break;
                };
                parameters.push(structure);
            }
            found
                .entry((*name).to_owned())
                .and_modify(|known| *known = None)
                .or_insert(Some(parameters));
        }
        let known = found.into_iter().filter_map(|(name, known)| Some((name, known?)));
        known.collect()
    }

    /// Returns a member of structure `name`, which `path` leads to through nested structures. Returns `None` if the kernel has no
    /// such member, or if it is no number, enumeration or pointer.
    #[must_use]
    pub fn field(&self, name: &str, path: &[&str]) -> Option<Field> {
        self.named(name).find_map(|id| self.field_in(id, path))
    }

    fn field_in(&self, id: u32, path: &[&str]) -> Option<Field> {
        let (first, rest) = path.split_first()?;
        let (bits, member) = self.member(id, first, 0)?;
        let offset = (bits % 8 == 0).then_some(bits / 8)?;
        let inner = if rest.is_empty() {
            self.scalar(member)?
        } else {
            self.field_in(member, rest)?
        };
        Some(Field {
            offset: offset.checked_add(inner.offset)?,
            ..inner
        })
    }

    /// Returns size and values of a number, an enumeration or a pointer.
    fn scalar(&self, id: u32) -> Option<Field> {
        let (section, at) = self.bare(id)?;
        let (kind, count, _) = section.info(at)?;
        let mut field = Field {
            bytes: section.word(at + 8)?,
            ..Field::default()
        };
        match kind {
            BtfKind::Int => {}
            BtfKind::Ptr => field.bytes = 8,
            BtfKind::Enum => {
                for member in 0..count {
                    let [name, value] = section.words(at + 12 + member * 8)?;
                    let name = String::from_utf8_lossy(self.string(name)?).into_owned();
                    field.enumerators.push((value, name));
                }
            }
            _ => return None,
        }
        Some(field)
    }

    fn passed(&self, id: u32) -> Passed {
        let Some((section, at)) = self.bare(id) else {
            return Passed::Otherwise;
        };
        match section.info(at).map(|(kind, ..)| kind) {
            Some(BtfKind::Ptr) => Passed::Word(section.word(at + 8).and_then(|to| self.structure_name(to))),
            Some(BtfKind::Int | BtfKind::Enum) if section.word(at + 8).is_some_and(|bytes| bytes <= 8) => {
                Passed::Word(None)
            }
            _ => Passed::Otherwise,
        }
    }

    fn structure_name(&self, id: u32) -> Option<String> {
        let (section, at) = self.bare(id)?;
        let (BtfKind::Struct | BtfKind::Union | BtfKind::Fwd, ..) = section.info(at)? else {
            return None;
        };
        let name = self.string(section.word(at)?)?;
        Some(String::from_utf8_lossy(name).into_owned()).filter(|name| !name.is_empty())
    }

    fn types_of_parameters(&self, prototype: u32) -> Option<Vec<u32>> {
        let (section, at) = self.find(prototype)?;
        let (BtfKind::FuncProto, count, _) = section.info(at)? else {
            return None;
        };
        let ids = (0..count).map(|parameter| section.word(at + 12 + parameter * 8 + 4));
        ids.collect()
    }
}
