//! Chromium without windows, to look at the page of `tracer serve`: a folder of Debian's packages.
//!
//! Like Prometheus it is run by the folder's own loader: no chroot, no mounts, no rights of root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Install;
use super::rootfs::marker;
use super::vm::write_script;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;

/// Debian's stable suite: Chromium 150 (when this was written).
const SUITE: &str = "trixie";
/// The browser and fonts. What they depend on comes with them.
const PACKAGES: [&str; 2] = ["chromium-headless-shell", "fonts-dejavu-core"];
/// Beginnings of packages' names that stay away: drivers of GPUs and their compiler, of which nothing is loaded.
const UNUSED: [&str; 3] = ["libllvm", "libz3", "mesa-"];
/// The launcher's name.
const LAUNCHER: &str = "chromium";
/// Where the browser and its resources are.
const BROWSER: &str = "usr/lib/chromium";
/// Its program.
const PROGRAM: &str = "chromium-headless-shell";
/// A copy of the loader beside the browser, which looks for its resources where the running program lies.
const LOADER: &str = "ld.so";
/// Where libraries are in a folder of packages.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// Which fonts there are.
const FONTS: &str = "fonts.conf";
/// Written last; names what was asked for and what was unpacked.
const MARKER: &str = ".complete";

/// The folder.
pub struct Browser {
    dir: PathBuf,
}

impl Browser {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.browser_dir(),
        }
    }

    /// The marker's first line: another request means another folder.
    fn request() -> String {
        format!("packages: {}", PACKAGES.join(" "))
    }

    /// Writes what runs the browser in the place where the folder will lie.
    fn write_launcher(&self, unpacked: &Path) -> Result<()> {
        fs::copy(
            unpacked.join(LIBRARIES).join("ld-linux-x86-64.so.2"),
            unpacked.join(BROWSER).join(LOADER),
        )
        .context("the unpacked browser has no loader")?;
        let fonts = format!(
            "<?xml version=\"1.0\"?>\n<fontconfig>\n  <dir>{}</dir>\n  <cachedir prefix=\"xdg\">fontconfig</cachedir>\n{}</fontconfig>\n",
            self.dir.join("usr/share/fonts").display(),
            [
                ("system-ui", "DejaVu Sans"),
                ("sans-serif", "DejaVu Sans"),
                ("monospace", "DejaVu Sans Mono")
            ]
            .map(|(family, font)| format!(
                "  <alias binding=\"same\"><family>{family}</family><prefer><family>{font}</family></prefer></alias>\n"
            ))
            .concat()
        );
        fs::write(unpacked.join(FONTS), fonts)?;
        write_script(&unpacked.join(LAUNCHER), &launcher(&self.dir))
    }
}

/// The script that runs the browser in a folder.
///
/// The browser starts parts of itself as processes of their own. By itself it would run `/proc/self/exe` for that, which
/// is the loader.
fn launcher(dir: &Path) -> String {
    let dir = cmd::shell_quote(&dir.to_string_lossy());
    format!(
        "#!/bin/sh\n\
         # Runs Chromium with the C library of its own release. Written by cargo xtask setup.\n\
         dir={dir}\n\
         export FONTCONFIG_FILE=\"$dir/{FONTS}\"\n\
         case \" $* \" in\n\
         *\" --type=\"*) ;;\n\
         *) set -- --no-zygote --browser-subprocess-path=\"$dir/{LAUNCHER}\" \"$@\" ;;\n\
         esac\n\
         exec \"$dir/{BROWSER}/{LOADER}\" --library-path \"$dir/{LIBRARIES}:$dir/{LIBRARIES}/pulseaudio\" \\\n  \
           \"$dir/{BROWSER}/{PROGRAM}\" \"$@\"\n"
    )
}

/// Whether a package file is of use.
fn is_used(package: &Path) -> bool {
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    !UNUSED.iter().any(|unused| name.starts_with(unused))
}

impl Install for Browser {
    fn name(&self) -> String {
        format!("Chromium of Debian {SUITE}")
    }

    fn is_ready(&self) -> bool {
        let marker = fs::read_to_string(self.dir.join(MARKER)).unwrap_or_default();
        marker.lines().next() == Some(Self::request().as_str())
    }

    fn install(&self, project: &Project) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, SUITE)?;
        let mut packages = suite.download_closure(&PACKAGES)?;
        packages.retain(|package| is_used(package));
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        eprintln!("==> unpacking {} packages", packages.len());
        for package in &packages {
            apt::unpack(package, &partial)?;
        }
        self.write_launcher(&partial)?;
        fs::write(partial.join(MARKER), marker(&Self::request(), &packages))?;
        cmd::remove_all(&self.dir)?;
        fs::rename(&partial, &self.dir).with_context(|| format!("cannot rename {}", partial.display()))?;
        // The launcher names the final place, so only there can it be tried.
        if let Err(error) = cmd::read(Command::new(self.dir.join(LAUNCHER)).arg("--version")) {
            cmd::remove_all(&self.dir.join(MARKER))?;
            bail!("the unpacked browser does not start: {error:#}");
        }
        suite.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drivers_stay_away() {
        let used = |name: &str| is_used(&Path::new("/a").join(name));
        assert!(!used("libllvm19_1%3a19.1.7-3+b1_amd64.deb") && !used("mesa-libgallium_25.0.7-2_amd64.deb"));
        assert!(used("libgbm1_25.0.7-2_amd64.deb") && used("libzstd1_1.5.7+dfsg-1_amd64.deb"));
    }

    #[test]
    fn the_launcher_takes_folders_with_spaces() {
        let script = launcher(Path::new("/a cache/browser"));
        assert!(script.contains("\ndir='/a cache/browser'\n"), "{script}");
    }
}
