//! Checks that no two modules of a crate import each other, except a module and those inside it.
//!
//! Modules that import each other can only be read together. The check reads sources as text: paths that begin with `crate`, `super`
//! or `self`, in `use` declarations and elsewhere, outside of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::project::Project;

/// The crates that are checked: every one with sources of its own.
const CRATES: [&str; 16] = [
    "tracer-capture",
    "tracer-claims",
    "tracer-cli",
    "tracer-common",
    "tracer-core",
    "tracer-ebpf",
    "tracer-export",
    "tracer-files",
    "tracer-html",
    "tracer-import",
    "tracer-otlp",
    "tracer-query",
    "tracer-serve",
    "tracer-store",
    "tracer-tui",
    "xtask",
];

/// A module: the names on its path below the crate.
type Module = Vec<String>;

/// Checks every crate.
///
/// # Errors
/// Fails and names the modules that import each other.
pub fn check(project: &Project) -> Result<()> {
    let mut found = Vec::new();
    for name in CRATES {
        let mut sources = BTreeMap::new();
        read(&project.root().join(name).join("src"), &[], &mut sources)?;
        let circles = circles(&sources).into_iter();
        found.extend(circles.map(|(a, b)| format!("{name}: {} and {}", a.join("::"), b.join("::"))));
    }
    if found.is_empty() {
        return Ok(());
    }
    bail!(
        "modules import each other; move what both need to a third one:\n{}",
        found.join("\n")
    )
}

/// Reads the sources in a folder: those of the module `inside`, and of the modules in it.
fn read(folder: &Path, inside: &[String], sources: &mut BTreeMap<Module, String>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()) else {
            continue;
        };
        let mut module = inside.to_vec();
        let is_root = ["lib", "main"].contains(&stem) && inside.is_empty();
        if !is_root && stem != "mod" {
            module.push(stem.to_owned());
        }
        if path.is_dir() {
            read(&path, &module, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") && stem != "tests" {
            sources.insert(module, fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

/// Returns the pairs of modules that import each other, neither of which is inside the other.
fn circles(sources: &BTreeMap<Module, String>) -> Vec<(Module, Module)> {
    let imports: BTreeMap<&Module, BTreeSet<Module>> = sources
        .iter()
        .map(|(module, text)| (module, imported(module, text, sources)))
        .collect();
    let mut circles = Vec::new();
    for (&one, others) in &imports {
        for other in others.iter().filter(|other| *other > one && !other.starts_with(one)) {
            if imports.get(other).is_some_and(|back| back.contains(one)) {
                circles.push((one.clone(), other.clone()));
            }
        }
    }
    circles
}

/// Returns the modules of the crate that a module names.
fn imported(module: &Module, text: &str, sources: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let code: Vec<&str> = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect();
    let code = code.join("\n");
    let mut paths = Vec::new();
    for (at, root) in ["crate::", "super::", "self::"]
        .iter()
        .flat_map(|root| code.match_indices(root))
    {
        let before = code[..at].chars().next_back();
        if !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':' || c == '$') {
            let end = code[at..].find(';').map_or(code.len(), |end| at + end);
            expand(&code[at..end], "", &mut paths);
            debug_assert!(code[at..].starts_with(root));
        }
    }
    paths.iter().filter_map(|path| resolve(module, path, sources)).collect()
}

/// Splits a tree of imports, `a::{b, c::{d, e}}`, into paths. Other text ends a path.
fn expand(tree: &str, prefix: &str, paths: &mut Vec<String>) {
    let length = tree
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'))
        .unwrap_or(tree.len());
    let (path, rest) = tree.split_at(length);
    let path = format!("{prefix}{path}");
    match rest.strip_prefix('{').filter(|_| path.ends_with("::")) {
        Some(list) => parts(list)
            .into_iter()
            .for_each(|part| expand(part.trim(), &path, paths)),
        None => paths.push(path),
    }
}

/// Splits the text behind an opening brace at the commas of this level, up to the closing brace.
fn parts(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut parts) = (0, 0, Vec::new());
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => {
                parts.push(&list[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts
}

/// Returns the innermost module that a path of `module` leads to; `None` for the module itself.
fn resolve(module: &Module, path: &str, sources: &BTreeMap<Module, String>) -> Option<Module> {
    let mut absolute = module.clone();
    for name in path.split("::").filter(|name| !name.is_empty()) {
        match name {
            "crate" => absolute.clear(),
            "super" => drop(absolute.pop()),
            "self" => {}
            name => absolute.push(name.to_owned()),
        }
    }
    while !absolute.is_empty() && !sources.contains_key(&absolute) {
        absolute.pop();
    }
    (absolute != *module).then_some(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sources: &[(&str, &str)]) -> Vec<String> {
        let module = |path: &str| -> Module {
            path.split("::")
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        };
        let sources = sources
            .iter()
            .map(|(path, text)| (module(path), (*text).to_owned()))
            .collect();
        let pairs = circles(&sources).into_iter();
        pairs
            .map(|(a, b)| format!("{} {}", a.join("::"), b.join("::")))
            .collect()
    }

    #[test]
    fn modules_that_import_each_other_are_found() {
        let sources = [
            ("", "mod a; mod b; mod c;"),
            ("a", "use std::fmt;\nuse crate::{\n    b::{self, One},\n    c::Two,\n};"),
            ("b", "fn f() -> crate::a::Three { todo!() }"),
            (
                "c",
                "// crate::a is only a comment\nuse crate::b::Four;\n#[cfg(test)]\nmod tests { use crate::a; }",
            ),
            ("d", "use super::e::x;"),
            ("e", "pub use super::d::y;"),
        ];
        assert_eq!(found(&sources), ["a b", "d e"]);
    }

    #[test]
    fn a_module_and_its_children_may_import_each_other() {
        let sources = [
            ("a", "mod b; use self::b::One; use b::Two;"),
            ("a::b", "use super::Three; use crate::a::Four;"),
            ("a::c", "use super::b::Five;"),
        ];
        assert_eq!(found(&sources), [""; 0]);
    }

    #[test]
    fn this_project_has_no_circles() {
        check(&Project::locate().expect("the project's folder")).expect("no circles");
    }
}
