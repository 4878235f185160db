//! Folders of Debian's packages, so that the system needs no change; and their markers, which name their contents.
//!
//! Programs in them are run in place, by scripts that name the folder's own loader: no chroot, no mounts, no rights of root.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::Install;
use crate::apt::{self, Mirror, Suite};
use crate::cmd;
use crate::project::Project;

/// The path of libraries in a folder of packages.
pub const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// The marker. It is written last, and names what was requested and what was unpacked.
const MARKER: &str = ".complete";

/// A folder with programs.
pub struct Folder<'a> {
    /// The final path of the folder.
    pub dir: &'a Path,
    /// The suite.
    pub suite: &'a str,
    /// The packages to request from the suite.
    pub packages: &'a [&'a str],
    /// The names of the scripts that run the programs.
    pub launchers: &'a [&'a str],
}

/// Programs that are installed in their own [`Folder`].
pub trait Programs {
    /// The name of the programs, for messages.
    const NAME: &str;

    /// Returns the folder's path and its contents.
    fn folder(&self) -> Folder<'_>;

    /// Downloads the packages and returns their files.
    fn download(&self, suite: &Suite) -> Result<Vec<PathBuf>>;

    /// Writes the scripts that run the programs from the folder's final place, into the unpacked folder.
    fn prepare(&self, unpacked: &Path) -> Result<()>;
}

impl<T: Programs> Install for T {
    fn name(&self) -> String {
        format!("{} of Debian {}", T::NAME, self.folder().suite)
    }

    fn is_ready(&self) -> bool {
        self.folder().is_ready()
    }

    fn install(&self, project: &Project) -> Result<()> {
        let prepare = |unpacked: &Path| self.prepare(unpacked);
        self.folder().install(project, |suite| self.download(suite), prepare)
    }
}

impl Folder<'_> {
    /// Returns whether the folder exists and was created for this request.
    fn is_ready(&self) -> bool {
        is_marked(self.dir, &request(self.packages))
    }

    /// Unpacks the files that `download` returns, lets `prepare` write the scripts into the unpacked folder, moves it to its place,
    /// and tries each program there.
    fn install(
        &self,
        project: &Project,
        download: impl FnOnce(&Suite) -> Result<Vec<PathBuf>>,
        prepare: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<()> {
        let mirror = Mirror::find()?;
        let suite = Suite::open(project.cache(), &mirror, self.suite)?;
        let packages = download(&suite)?;
        let partial = self.dir.with_extension("partial");
        cmd::remove_all(&partial)?;
        fs::create_dir_all(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
        unpack(&packages, &partial)?;
        prepare(&partial)?;
        complete(&partial, self.dir, &request(self.packages), &packages)?;
        // The scripts name the final place, so they can only be tried there.
        for launcher in self.launchers {
            if let Err(error) = cmd::read(Command::new(self.dir.join(launcher)).arg("--version")) {
                cmd::remove_all(&self.dir.join(MARKER))?;
                bail!("the unpacked {launcher} does not start: {error:#}");
            }
        }
        suite.close()
    }
}

/// Unpacks packages one after the other.
pub fn unpack(packages: &[PathBuf], into: &Path) -> Result<()> {
    eprintln!("==> unpacking {} packages", packages.len());
    packages.iter().try_for_each(|package| apt::unpack(package, into))
}

/// Creates a folder with what packages of all releases expect in a root.
pub fn create_root(dir: &Path) -> Result<()> {
    for folder in ["dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp"] {
        fs::create_dir_all(dir.join(folder)).with_context(|| format!("cannot create {}", dir.display()))?;
    }
    // Old packages still ship files in these; all of them are folders of /usr now.
    for folder in ["bin", "sbin", "lib", "lib64"] {
        fs::create_dir_all(dir.join("usr").join(folder))?;
        symlink(Path::new("usr").join(folder), dir.join(folder))?;
    }
    Ok(())
}

/// Returns the marker's first line for packages. A different request needs a new folder.
pub fn request(packages: &[&str]) -> String {
    format!("packages: {}", packages.join(" "))
}

/// Returns whether a folder is complete and was created for this request.
pub fn is_marked(dir: &Path, request: &str) -> bool {
    let marker = fs::read_to_string(dir.join(MARKER)).unwrap_or_default();
    marker.lines().next() == Some(request)
}

/// Returns the packages in a complete folder, as `name_version_architecture`.
pub fn packages(dir: &Path) -> Result<Vec<String>> {
    let marker = dir.join(MARKER);
    let text = fs::read_to_string(&marker).with_context(|| format!("cannot read {}", marker.display()))?;
    Ok(text.lines().skip(1).map(str::to_owned).collect())
}

/// Marks an unpacked folder, and moves it to its place.
pub fn complete(partial: &Path, dir: &Path, request: &str, packages: &[PathBuf]) -> Result<()> {
    fs::write(partial.join(MARKER), marker(request, packages))?;
    cmd::remove_all(dir)?;
    fs::rename(partial, dir).with_context(|| format!("cannot rename {}", partial.display()))
}

/// Formats the request, then the packages that met it, one per line as `name_version_architecture`.
fn marker(request: &str, packages: &[PathBuf]) -> String {
    let stems = packages
        .iter()
        .filter_map(|package| package.file_stem())
        .map(|stem| stem.to_string_lossy());
    stems.fold(request.to_owned() + "\n", |text, stem| {
        text + &stem.replace("%3a", ":") + "\n"
    })
}

/// Writes scripts that run programs in `usr/bin` of a folder of packages by the folder's own loader, from the folder's final place. The
/// commands that the programs start see no path of the folder.
pub fn write_launchers(unpacked: &Path, dir: &Path, programs: &[&str]) -> Result<()> {
    let dir = cmd::shell_quote(&dir.to_string_lossy());
    programs.iter().try_for_each(|program| {
        let script = format!(
            "#!/bin/sh\n\
             # Runs {program} with the C library of its own release. Written by cargo xtask setup.\n\
             exec {dir}/{LIBRARIES}/ld-linux-x86-64.so.2 --library-path {dir}/{LIBRARIES} {dir}/usr/bin/{program} \"$@\"\n"
        );
        write_script(&unpacked.join(program), &script)
    })
}

/// Writes an executable script.
pub fn write_script(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot make {} executable", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marker_tells_request_and_versions() {
        let packages = ["/a/libc6_2.41-12_amd64.deb", "/a/pciutils_1%3a3.13.0-2_amd64.deb"].map(PathBuf::from);
        let expected = "packages: libhsa-runtime64-1 rocminfo\nlibc6_2.41-12_amd64\npciutils_1:3.13.0-2_amd64\n";
        assert_eq!(marker("packages: libhsa-runtime64-1 rocminfo", &packages), expected);
    }
}
