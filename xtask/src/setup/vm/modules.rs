//! The modules of a kernel: their dependencies, in loading order, decompressed and made quick to load.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cmd;

/// All modules of a kernel's package.
pub struct Modules {
    /// Files by module name, with underscores instead of dashes.
    files: HashMap<String, PathBuf>,
    builtin: HashSet<String>,
    /// The folder for decompressed files.
    into: PathBuf,
}

impl Modules {
    /// Lists the modules in `lib/modules/RELEASE`. The requested ones will be written into the folder `into`.
    pub fn open(package: &Path, into: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        let mut folders = vec![package.join("kernel")];
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Some(name) = module_name(&path) {
                    files.insert(name, path);
                }
            }
        }
        let builtin =
            fs::read_to_string(package.join("modules.builtin")).context("the kernel lists no built-in modules")?;
        let builtin = builtin
            .lines()
            .filter_map(|line| module_name(Path::new(line)))
            .collect();
        fs::create_dir_all(into).with_context(|| format!("cannot create {}", into.display()))?;
        Ok(Self {
            files,
            builtin,
            into: into.to_owned(),
        })
    }

    /// Decompresses the modules and all their dependencies. Returns the file names in loading order.
    pub fn closure(&self, wanted: &[&str]) -> Result<Vec<String>> {
        let mut order = Vec::new();
        for name in wanted {
            self.visit(&normal(name), &mut order)?;
        }
        Ok(order)
    }

    fn visit(&self, name: &str, order: &mut Vec<String>) -> Result<()> {
        let file_name = format!("{name}.ko");
        if self.builtin.contains(name) || order.contains(&file_name) {
            return Ok(());
        }
        let Some(source) = self.files.get(name) else {
            bail!("the kernel has no module {name}");
        };
        let content = decompress(source)?;
        for needed in depends(&content) {
            self.visit(&needed, order)?;
        }
        let file = self.into.join(&file_name);
        if !file.exists() {
            fs::write(&file, content).with_context(|| format!("cannot write {}", file.display()))?;
        }
        order.push(file_name);
        Ok(())
    }
}

/// Removes the symbols of a module that nothing refers to, except functions.
///
/// Loading takes time for each symbol: amdgpu with all of its 50,000 takes two to three times as long. Probes on its functions by
/// name still work. The signature is lost, so that the kernel gets the taint of an unsigned module.
pub fn strip(module: &Path) -> Result<()> {
    let table = cmd::read(Command::new("nm").arg(module)).context("binutils are needed: `apt-get install binutils`")?;
    let kept = module.with_extension("symbols");
    fs::write(&kept, functions(&table).join("\n")).with_context(|| format!("cannot write {}", kept.display()))?;
    // Global symbols count as needed, including those of padding; a pattern among the 15,000 kept names would take minutes.
    cmd::read(
        Command::new("objcopy")
            .args(["--wildcard", "--strip-symbol", "__pfx_*"])
            .arg(module),
    )?;
    let mut objcopy = Command::new("objcopy");
    objcopy
        .arg("--strip-unneeded")
        .arg("--keep-symbols")
        .arg(&kept)
        .arg(module);
    cmd::read(&mut objcopy)?;
    cmd::remove_all(&kept)
}

/// Returns the functions in a symbol table of `nm`, without the entries for the padding in front of each.
fn functions(table: &str) -> Vec<&str> {
    table
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().rev();
            let (name, kind) = (words.next()?, words.next()?);
            (["t", "T"].contains(&kind) && !name.starts_with("__pfx_")).then_some(name)
        })
        .collect()
}

/// Returns the name of the module in a file, compressed or not.
fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (stem, _) = name.rsplit_once(".ko")?;
    Some(normal(stem))
}

/// Normalizes a name: file names and lists of dependencies differ in dashes and underscores.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

fn decompress(file: &Path) -> Result<Vec<u8>> {
    let program = match file.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => "xz",
        Some("zst") => "zstd",
        _ => return fs::read(file).with_context(|| format!("cannot read {}", file.display())),
    };
    cmd::require(program, &format!("run `apt-get install {program}`"))?;
    cmd::read_bytes(Command::new(program).arg("-dc").arg(file))
}

/// Returns the modules that a module's `.modinfo` section names as dependencies.
fn depends(module: &[u8]) -> Vec<String> {
    const FIELD: &[u8] = b"\0depends=";
    let Some(start) = module.windows(FIELD.len()).position(|window| window == FIELD) else {
        return Vec::new();
    };
    let value = &module[start + FIELD.len()..];
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    let names = String::from_utf8_lossy(&value[..end]);
    names.split(',').filter(|name| !name.is_empty()).map(normal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_equal_the_names_of_the_kernel() {
        assert_eq!(
            module_name(Path::new("kernel/net/9p/9pnet.ko.xz")).as_deref(),
            Some("9pnet")
        );
        assert_eq!(module_name(Path::new("/a/gpu-sched.ko")).as_deref(), Some("gpu_sched"));
        assert_eq!(module_name(Path::new("/a/modules.dep")), None);
    }

    #[test]
    fn dependencies_are_read_from_modinfo() {
        let module = b"\x7fELF..\0alias=x\0depends=drm,gpu-sched\0name=amdgpu\0";
        assert_eq!(depends(module), ["drm", "gpu_sched"]);
        assert!(depends(b"license=GPL\0depends=\0retpoline=Y\0").is_empty());
    }

    #[test]
    fn only_functions_are_kept() {
        let table = "0000 T amdgpu_init\n0010 t __pfx_kfd_ioctl\n0020 t kfd_ioctl\n     U printk\n0000 d kfd_fops\n";
        assert_eq!(functions(table), ["amdgpu_init", "kfd_ioctl"]);
    }
}
