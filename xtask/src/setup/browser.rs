//! Chromium without windows, to test the page of `tracer serve`: a folder of Debian's packages.
//!
//! Like Prometheus, it is run by the folder's own loader: no chroot, no mounts, no rights of root.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::folder::{Folder, LIBRARIES, Programs, write_script};
use crate::apt::Suite;
use crate::cmd;
use crate::project::Project;

/// Debian's stable suite: Chromium 150 (when this was written).
const SUITE: &str = "trixie";
/// The browser and fonts. Their dependencies are installed with them.
const PACKAGES: [&str; 2] = ["chromium-headless-shell", "fonts-dejavu-core"];
/// Prefixes of the names of packages to leave out: drivers of GPUs and their compiler, which are never loaded.
const UNUSED: [&str; 3] = ["libllvm", "libz3", "mesa-"];
/// The name of the launcher.
const LAUNCHER: &str = "chromium";
/// The folder of the browser and its resources.
const BROWSER: &str = "usr/lib/chromium";
/// The program of the browser.
const PROGRAM: &str = "chromium-headless-shell";
/// A copy of the loader beside the browser, which searches for its resources in the folder of the running program.
const LOADER: &str = "ld.so";
/// The configuration file that names the fonts.
const FONTS: &str = "fonts.conf";

/// The folder of the browser.
pub struct Browser {
    dir: PathBuf,
}

impl Browser {
    pub fn new(project: &Project) -> Self {
        Self {
            dir: project.browser_dir(),
        }
    }
}

/// Returns the script that runs the browser in a folder.
///
/// The browser starts parts of itself as separate processes. By default it would run `/proc/self/exe` for that, which is the
/// loader.
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

/// Returns whether a package file is needed.
fn is_used(package: &Path) -> bool {
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    !UNUSED.iter().any(|unused| name.starts_with(unused))
}

impl Programs for Browser {
    const NAME: &str = "Chromium";

    fn folder(&self) -> Folder<'_> {
        Folder {
            dir: &self.dir,
            suite: SUITE,
            packages: &PACKAGES,
            launchers: &[LAUNCHER],
        }
    }

    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>> {
        let mut packages = suite.download_closure(&PACKAGES)?;
        packages.retain(|package| is_used(package));
        Ok(packages)
    }

    /// Writes the files that run the browser in the folder's final place.
    fn prepare(&self, unpacked: &Path) -> Result<()> {
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
