//! Where a process runs: its systemd unit, container and pod, by the names in the path of its cgroup.
//!
//! Engines and kubelets name cgroups in a few ways, and none of them is specified: systemd's scopes
//! (`docker-ID.scope`, `libpod-ID.scope`, `cri-containerd-ID.scope`, `crio-ID.scope`), plain folders (`/docker/ID`,
//! `/kubepods/burstable/podUID/ID`), and runc's form with colons (`SLICE:cri-containerd:ID`). An ID has 64 hexadecimal digits in all.

/// Digits of a container's id.
const CONTAINER: usize = 64;
/// Endings of systemd's units that have processes of their own.
const UNITS: [&str; 5] = [".service", ".scope", ".socket", ".mount", ".swap"];
/// Maximum length of a unit's name: that of a file's name.
const LONGEST_UNIT: usize = 255;

/// The names in the path of a process's cgroup. A user to whom a part of the tree is delegated chooses the names there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// The systemd unit, such as `train.service`: the system's, or a user's.
    pub unit: Option<String>,
    /// The container's id, 64 hexadecimal digits. In containers within containers it is that of the innermost.
    pub container: Option<String>,
    /// The UID of the Kubernetes pod.
    pub pod: Option<String>,
}

impl Placement {
    /// Returns the names in the contents of `/proc/PID/cgroup`. Each line is `NUMBER:CONTROLLERS:PATH` (cgroups(7)); the first
    /// line that has a name of a kind counts.
    #[must_use]
    pub fn in_cgroups(text: &str) -> Self {
        let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
        paths.map(Self::in_path).fold(Self::default(), |found, other| Self {
            unit: found.unit.or(other.unit),
            container: found.container.or(other.container),
            pod: found.pod.or(other.pod),
        })
    }

    fn in_path(path: &str) -> Self {
        let mut found = Self::default();
        // The path begins at the reader's own cgroup namespace. In a pod, that is below the kubelet's.
        let mut is_of_kubelet = path.starts_with("/../");
        for name in path.split('/') {
            let before = found.container.is_none();
            for part in name.split(':') {
                is_of_kubelet |= part.starts_with("kubepods");
                if let Some(id) = container(part) {
                    found.container = Some(id.to_owned());
                } else if is_of_kubelet && let Some(uid) = pod(part) {
                    found.pod = Some(uid);
                }
            }
            // What follows in a container are units of its own systemd.
            if before && found.container.is_none() && is_unit(name) {
                found.unit = Some(name.to_owned());
            }
        }
        found
    }
}

/// Returns the id in the name of a container's cgroup. The cgroup of the process that watches a container has the same id.
fn container(name: &str) -> Option<&str> {
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let (engine, id) = name.rsplit_once('-').unwrap_or(("", name));
    let is_id = id.len() == CONTAINER && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_id && !engine.ends_with("conmon")).then_some(id)
}

/// Returns the UID in the name of a pod's cgroup. systemd allows no `-` within the name of a slice, so that it has `_` there. The pods
/// of a kubelet's own files have 32 digits.
fn pod(name: &str) -> Option<String> {
    let name = name.strip_suffix(".slice").unwrap_or(name);
    let (kind, uid) = name.rsplit_once("pod")?;
    let uid = uid.replace('_', "-");
    let is_uid = match uid.len() {
        32 => uid.bytes().all(|digit| digit.is_ascii_hexdigit()),
        36 => {
            let is_right = |(at, digit): (usize, u8)| match at {
                8 | 13 | 18 | 23 => digit == b'-',
                _ => digit.is_ascii_hexdigit(),
            };
            uid.bytes().enumerate().all(is_right)
        }
        _ => false,
    };
    (is_uid && (kind.is_empty() || kind.ends_with('-'))).then_some(uid)
}

/// Returns whether this is the name of a unit, with no other characters than systemd allows.
fn is_unit(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    name.len() <= LONGEST_UNIT && UNITS.iter().any(|end| name.ends_with(end)) && name.bytes().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const UID: &str = "2fb3c7a4-1d8e-4c43-9c57-0a3c1a2b9d10";

    fn of(text: &str) -> [Option<String>; 3] {
        let Placement { unit, container, pod } = Placement::in_cgroups(text);
        [unit, container, pod]
    }

    fn expected(unit: &str, container: &str, pod: &str) -> [Option<String>; 3] {
        [unit, container, pod].map(|name| (!name.is_empty()).then(|| name.to_owned()))
    }

    #[test]
    fn engines_and_units_are_known_by_their_names() {
        let slice = UID.replace('-', "_");
        for (path, unit, container, pod) in [
            ("/", "", "", ""),
            ("/user.slice/user-0.slice/session-3.scope", "session-3.scope", "", ""),
            ("/system.slice/train@a\\x2db.service", "train@a\\x2db.service", "", ""),
            (
                "/user.slice/user-7.slice/user@7.service/app.slice/app-x.scope",
                "app-x.scope",
                "",
                "",
            ),
            (&format!("/system.slice/docker-{ID}.scope"), "", ID, ""),
            (&format!("/docker/{ID}"), "", ID, ""),
            (&format!("/docker/{ID}/system.slice/app.service"), "", ID, ""),
            (&format!("/machine.slice/libpod-{ID}.scope/container"), "", ID, ""),
            (
                &format!("/user.slice/user@7.service/user.slice/libpod-{ID}.scope"),
                "user@7.service",
                ID,
                "",
            ),
            (
                &format!(
                    "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{slice}.slice/cri-containerd-{ID}.scope"
                ),
                "",
                ID,
                UID,
            ),
            (&format!("/kubepods/besteffort/pod{UID}/{ID}"), "", ID, UID),
            (&format!("/../../kubepods/pod{UID}/{ID}"), "", ID, UID),
            // As a pod sees another one beside it.
            (&format!("/../../podd{UID}/{ID}"), "", ID, ""),
            (&format!("/../../pod{UID}/{ID}"), "", ID, UID),
            (&format!("/../../../pod{UID}/{ID}"), "", ID, UID),
            (&format!("/system.slice/crio-{ID}.scope"), "", ID, ""),
            (
                &format!("/system.slice/containerd.service/kubepods-pod{slice}.slice:cri-containerd:{ID}"),
                "containerd.service",
                ID,
                UID,
            ),
        ] {
            assert_eq!(of(&format!("0::{path}\n")), expected(unit, container, pod), "{path}");
        }
    }

    #[test]
    fn other_names_are_neither_containers_nor_pods_nor_units() {
        for path in [
            &format!("/machine.slice/libpod-conmon-{ID}.scope/x")[..],
            &format!("/system.slice/crio-conmon-{ID}.scope"),
            &format!("/docker/{ID}0"),
            &format!("/docker/{}", &ID[1..]),
            &format!("/user.slice/pod{UID}/x"),
            &format!("/kubepods/pod{UID}0"),
            "/kubepods/pod2fb3c7a4x1d8e-4c43-9c57-0a3c1a2b9d10",
            "/system.slice/a b.service",
            "/system.slice/\u{1b}[2J.service",
            "/system.slice/é.service",
        ] {
            let [unit, container, pod] = of(&format!("0::{path}"));
            let is_watcher = unit.as_deref().is_some_and(|unit| unit.contains("-conmon-"));
            assert!(
                (unit.is_none() || is_watcher) && container.is_none() && pod.is_none(),
                "{path}"
            );
        }
        assert_eq!(of(&format!("0::/{}.service", "x".repeat(248))), expected("", "", ""));
        assert_eq!(of("no lines of this kind\n0:\n::"), expected("", "", ""));
    }

    #[test]
    fn controllers_of_the_first_version_have_paths_of_their_own() {
        let text = format!("12:devices:/docker/{ID}\n1:name=systemd:/system.slice/docker.service\n0::/\n");
        assert_eq!(of(&text), expected("docker.service", ID, ""));
        // A name with a colon is one path.
        assert_eq!(of("0::/system.slice/a:b.service\n"), expected("a:b.service", "", ""));
    }
}
