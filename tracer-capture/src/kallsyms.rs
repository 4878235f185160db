//! The kernel's symbol table, `/proc/kallsyms`: functions by the names that the sources give them.

use std::{collections::HashMap, fs, io};

/// A function of the kernel or of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Exact name, suffixes of the compiler included: what a probe must name.
    pub name: String,
    /// Address; 0 where the kernel hides it from this process (kptr_restrict).
    pub address: u64,
    /// Module that it belongs to; `None` for the kernel itself.
    pub module: Option<String>,
}

/// Functions by base name.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms {
    functions: HashMap<String, Vec<Symbol>>,
}

impl Kallsyms {
    /// Reads the functions whose base names `wanted` accepts; the whole table has some 200 000 symbols.
    ///
    /// # Errors
    /// What reading /proc/kallsyms says.
    pub fn read(wanted: impl Fn(&str) -> bool) -> io::Result<Self> {
        Ok(Self::parse(&fs::read_to_string("/proc/kallsyms")?, wanted))
    }

    /// As [`Self::read`], from a text of that form.
    #[must_use]
    pub fn parse(text: &str, wanted: impl Fn(&str) -> bool) -> Self {
        let mut functions: HashMap<String, Vec<Symbol>> = HashMap::new();
        for line in text.lines() {
            let Some((base, symbol)) = parse_line(line).filter(|(base, _)| wanted(base)) else {
                continue;
            };
            functions.entry(base.to_owned()).or_default().push(symbol);
        }
        Self { functions }
    }

    /// Every function of this base name: none, one, or several that can't be told apart by name.
    #[must_use]
    pub fn find(&self, base: &str) -> &[Symbol] {
        self.functions.get(base).map_or(&[], Vec::as_slice)
    }
}

/// `ADDRESS TYPE NAME[\t[MODULE]]`, with the base name.
fn parse_line(line: &str) -> Option<(&str, Symbol)> {
    let mut words = line.split_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    if !matches!(words.next()?, "t" | "T" | "w" | "W") {
        return None;
    }
    let name = words.next()?;
    let module = words.next().map(|module| module.trim_matches(['[', ']']).to_owned());
    let base = match name.split_once('.') {
        None => name,
        // A part that was cut out of a function is not the function.
        Some((_, suffix)) if suffix.starts_with("cold") || suffix.starts_with("part") => return None,
        Some((base, _)) => base,
    };
    Some((
        base,
        Symbol {
            name: name.to_owned(),
            address,
            module,
        },
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
ffffffff81000000 T _text
ffffffffc0a01230 t kfd_ioctl\t[amdgpu]
ffffffffc0a01990 t remove_queue_mes.isra.0\t[amdgpu]
ffffffffc0a02000 t remove_queue_mes.cold\t[amdgpu]
ffffffffc0a03000 t kgd_hqd_load\t[amdgpu]
ffffffffc0a04000 t kgd_hqd_load\t[amdgpu]
ffffffffc0a05000 d add_queue_mes\t[amdgpu]
garbage
";

    #[test]
    fn functions_are_found_by_base_name() {
        let symbols = Kallsyms::parse(TEXT, |_| true);
        let [kfd_ioctl] = symbols.find("kfd_ioctl") else {
            panic!("not one")
        };
        assert_eq!(
            (kfd_ioctl.address, kfd_ioctl.module.as_deref()),
            (0xffff_ffff_c0a0_1230, Some("amdgpu"))
        );
        assert_eq!(symbols.find("_text")[0].module, None);
        let [clone] = symbols.find("remove_queue_mes") else {
            panic!("not one")
        };
        assert_eq!(clone.name, "remove_queue_mes.isra.0");
    }

    #[test]
    fn what_is_no_function_or_no_single_one_is_told() {
        let symbols = Kallsyms::parse(TEXT, |name| name != "_text");
        assert_eq!(symbols.find("kgd_hqd_load").len(), 2);
        assert!(symbols.find("add_queue_mes").is_empty(), "data");
        assert!(symbols.find("_text").is_empty(), "not wanted");
    }
}
