//! Product names of GPUs, by libdrm's list, from which AMD's runtimes take them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::target::file_tree::Tree;

/// Where distributions and AMD's installer put the list: `data/amdgpu.ids` of libdrm. A line is `DEVICE, REVISION, NAME`, with the
/// PCI ids in hexadecimal.
const LISTS: [&str; 2] = ["usr/share/libdrm/amdgpu.ids", "opt/amdgpu/share/libdrm/amdgpu.ids"];
/// The maximum length of a name in bytes.
const MAX_NAME: usize = 128;

/// Names of products, by device and revision.
#[derive(Debug, Default)]
pub(super) struct Products(BTreeMap<(u32, u32), String>);

impl Products {
    /// Reads the names of these devices: from the lists that a process finds below its root, and then from those of this machine.
    /// The first list that names a device counts for it.
    pub(super) fn read<T: Tree + ?Sized>(root: &T, devices: &[u32]) -> Self {
        let mut wanted: BTreeSet<u32> = devices.iter().copied().collect();
        let mut all = Self::default();
        let below = LISTS.iter().map(|path| root.text(path));
        let own = LISTS.iter().map(|path| Path::new("/").text(path));
        for list in below.chain(own) {
            if wanted.is_empty() {
                break;
            }
            all.add(&list.unwrap_or_default(), &wanted);
            wanted.retain(|device| all.0.range((*device, 0)..=(*device, u32::MAX)).next().is_none());
        }
        all
    }

    /// Adds the names that a list has of the wanted devices. A last line without an end may be cut.
    fn add(&mut self, list: &str, wanted: &BTreeSet<u32>) {
        let whole = list.rfind('\n').map_or("", |end| &list[..end]);
        for line in whole.lines() {
            let mut fields = line.splitn(3, ',').map(str::trim);
            let mut id = || u32::from_str_radix(fields.next()?, 16).ok();
            let Some((device, revision)) = id().zip(id()) else {
                continue;
            };
            let name = fields
                .next()
                .filter(|name| !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control));
            if let Some(name) = name.filter(|_| wanted.contains(&device)) {
                self.0.entry((device, revision)).or_insert_with(|| name.to_owned());
            }
        }
    }

    /// Returns the name of a device. Without a revision, there is one only if all revisions have the same.
    pub(super) fn of(&self, device: u32, revision: Option<u32>) -> Option<String> {
        let (first, last) = revision.map_or((0, u32::MAX), |revision| (revision, revision));
        let mut names = self.0.range((device, first)..=(device, last)).map(|(_, name)| name);
        let name = names.next()?;
        names.all(|other| other == name).then(|| name.clone())
    }
}

/// Returns the PCI revision of the GPU with a render node; `None` if sysfs does not show it.
pub(super) fn revision<T: Tree + ?Sized>(root: &T, render_minor: u32) -> Option<u32> {
    let text = root.text(&format!("sys/class/drm/renderD{render_minor}/device/revision"))?;
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Lines in the form of libdrm's list.
    const LIST: &str = "# a comment, with commas, in it\n\n1.0.0\n\
                        744C,\tC8,\tAMD Radeon RX 7900 XTX\n\
                        744C,\tCC,\tAMD Radeon RX 7900 XT\n\
                        740C,\t01,\tAMD Instinct MI250X / MI250\n\
                        74A1,\t00,\tAMD Instinct MI300X\n\
                        74A2,\t00,\t\n\
                        7FFF,\t00,\ttwice\n7FFF,\t01,\ttwice\n\
                        7FFE,\t00,\ta\u{1b}[2J\n7FFD,\t00,\tcu";

    #[test]
    fn a_name_needs_a_revision_only_where_revisions_have_different_names() {
        let mut products = Products::default();
        let all = [0x744c, 0x740c, 0x74a1, 0x74a2, 0x7fff, 0x7ffe, 0x7ffd];
        products.add(LIST, &all.into());
        let known = |device, revision| products.of(device, revision);
        assert_eq!(known(0x744c, Some(0xc8)).as_deref(), Some("AMD Radeon RX 7900 XTX"));
        assert_eq!(known(0x744c, Some(0xcc)).as_deref(), Some("AMD Radeon RX 7900 XT"));
        assert_eq!(known(0x744c, None), None, "two products");
        assert_eq!(known(0x744c, Some(0xff)), None, "an unknown revision");
        assert_eq!(known(0x74a1, None).as_deref(), Some("AMD Instinct MI300X"));
        assert_eq!(known(0x740c, Some(1)).as_deref(), Some("AMD Instinct MI250X / MI250"));
        assert_eq!(known(0x7fff, None).as_deref(), Some("twice"));
        assert_eq!(known(0x74a2, Some(0)), None, "an empty name");
        assert_eq!(known(0x1234, None), None);
        assert_eq!(known(0x7ffe, None), None, "a control character");
        assert_eq!(known(0x7ffd, None), None, "a line that is cut");
    }

    #[test]
    fn files_below_the_root_come_first() {
        let root = tempfile::tempdir().expect("a folder");
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            fs::write(path, text).expect("a file");
        };
        let of = |device| Products::read(root.path(), &[device]).of(device, None);
        assert_eq!(revision(root.path(), 128), None);
        put(
            "opt/amdgpu/share/libdrm/amdgpu.ids",
            "7FF0,00,from opt\n7FF1,00,from opt\n",
        );
        assert_eq!(of(0x7ff0).as_deref(), Some("from opt"));
        put("usr/share/libdrm/amdgpu.ids", "7FF0,00,from usr\n");
        assert_eq!(of(0x7ff0).as_deref(), Some("from usr"));
        assert_eq!(of(0x7ff1).as_deref(), Some("from opt"), "the first list lacks it");
        put("sys/class/drm/renderD128/device/revision", "0xc8\n");
        assert_eq!(revision(root.path(), 128), Some(0xc8));
    }
}
