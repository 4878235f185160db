//! The Debian mirror that this machine uses, read from apt's own lists of sources.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The variable that overrides the mirror.
const VARIABLE: &str = "TRACER_DEBIAN_MIRROR";
/// Debian's keys, as the package debian-archive-keyring installs them.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

/// A mirror of Debian's archive, which serves every suite.
#[derive(Debug, PartialEq)]
pub struct Mirror {
    /// The base address.
    pub uri: String,
    /// The keys that its lists are signed with. If not set, apt's trusted keys apply.
    keyring: Option<String>,
}

impl Mirror {
    /// Returns the mirror that the environment names, otherwise the one that apt is configured with.
    pub fn find() -> Result<Self> {
        if let Some(uri) = env::var(VARIABLE).ok().filter(|uri| !uri.is_empty()) {
            return Ok(Self {
                uri,
                keyring: installed_keyring(),
            });
        }
        let sources = read_sources(Path::new("/etc/apt"));
        let source = sources.into_iter().find(Source::is_debian_archive).with_context(|| {
            format!(
                "apt's lists in /etc/apt name no Debian mirror: set {VARIABLE} to the address of one \
                 (outside Debian also run `apt-get install debian-archive-keyring`)"
            )
        })?;
        Ok(Self {
            uri: source.uri,
            keyring: source.signed_by.or_else(installed_keyring),
        })
    }

    /// Returns the entry for one or more suites, separated by spaces, in the form of a `.sources` file.
    pub fn stanza(&self, suites: &str) -> String {
        let signed_by = self
            .keyring
            .as_ref()
            .map(|path| format!("Signed-By: {path}\n"))
            .unwrap_or_default();
        format!(
            "Types: deb\nURIs: {}\nSuites: {suites}\nComponents: main\n{signed_by}",
            self.uri
        )
    }
}

fn installed_keyring() -> Option<String> {
    KEYRINGS
        .iter()
        .find(|path| Path::new(path).exists())
        .map(|path| (*path).to_owned())
}

/// One address of apt's lists, with the fields needed to recognise Debian.
#[derive(Debug, Default, PartialEq)]
struct Source {
    uri: String,
    components: Vec<String>,
    signed_by: Option<String>,
}

impl Source {
    /// Returns whether this is a mirror of Debian itself, not of its security updates and not of a third party.
    fn is_debian_archive(&self) -> bool {
        // By convention, the paths of mirrors (and of `mirror+file:` lists of mirrors) contain the name of the archive.
        let named = self
            .uri
            .split('/')
            .any(|segment| segment == "debian" || segment == "debian.list");
        let own_keys = self
            .signed_by
            .as_deref()
            .is_none_or(|path| path.contains("/debian-archive-"));
        named && own_keys && self.components.iter().any(|component| component == "main")
    }
}

/// Reads `sources.list` and `sources.list.d`. Files that cannot be read count as empty.
fn read_sources(etc: &Path) -> Vec<Source> {
    let parts = fs::read_dir(etc.join("sources.list.d"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = parts.collect();
    files.sort();
    files.insert(0, etc.join("sources.list"));
    let mut sources = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(text.lines().filter_map(parse_line)),
            Some("sources") => sources.extend(parse_stanzas(&text)),
            _ => {}
        }
    }
    sources
}

/// Parses a line of a `.list` file: `deb [options] uri suite components`.
fn parse_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim().strip_prefix("deb")?;
    let line = line.strip_prefix([' ', '\t'])?.trim_start();
    let (options, rest) = match line.strip_prefix('[') {
        Some(bracketed) => bracketed.split_once(']')?,
        None => ("", line),
    };
    let mut words = rest.split_whitespace();
    let uri = words.next()?.to_owned();
    words.next()?;
    let signed_by = options
        .split_whitespace()
        .find_map(|option| option.strip_prefix("signed-by="));
    Some(Source {
        uri,
        components: words.map(str::to_owned).collect(),
        signed_by: signed_by.map(str::to_owned).filter(|keys| keys.starts_with('/')),
    })
}

/// Parses a `.sources` file: stanzas of `Field: value` lines, with values continued on indented lines.
fn parse_stanzas(text: &str) -> Vec<Source> {
    let uncommented: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    uncommented
        .split(|line| line.trim().is_empty())
        .flat_map(parse_stanza)
        .collect()
}

fn parse_stanza(lines: &[&str]) -> Vec<Source> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((name, value)) = line.split_once(':') {
            fields.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
    let field = |wanted: &str| {
        fields
            .iter()
            .find(|(name, _)| name == wanted)
            .map_or("", |(_, value)| value.as_str())
    };
    let disabled = ["no", "false"].contains(&field("enabled"));
    if disabled || !field("types").split_whitespace().any(|kind| kind == "deb") {
        return Vec::new();
    }
    let components: Vec<String> = field("components").split_whitespace().map(str::to_owned).collect();
    let signed_by = Some(field("signed-by").to_owned()).filter(|keys| keys.starts_with('/'));
    let uris = field("uris").split_whitespace();
    uris.map(|uri| Source {
        uri: uri.to_owned(),
        components: components.clone(),
        signed_by: signed_by.clone(),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

    fn archives(sources: impl IntoIterator<Item = Source>) -> Vec<String> {
        sources
            .into_iter()
            .filter(Source::is_debian_archive)
            .map(|source| source.uri)
            .collect()
    }

    #[test]
    fn stanzas_are_parsed() {
        let text = format!(
            "Types: deb deb-src\n# a comment\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\n\
             Components: main\n non-free-firmware\nSigned-By: {KEYRING}\n\n\
             Types: deb\nURIs: http://mirror.test/debian-security\nSuites: bookworm-security\nComponents: main\n"
        );
        let sources = parse_stanzas(&text);
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[0].components, ["main", "non-free-firmware"]);
        assert_eq!(sources[0].signed_by.as_deref(), Some(KEYRING));
        assert_eq!(archives(sources), ["http://mirror.test/debian"]);
    }

    #[test]
    fn sources_only_and_disabled_stanzas_are_skipped() {
        assert!(
            parse_stanzas("Types: deb-src\nURIs: http://m.test/debian\nSuites: sid\nComponents: main\n").is_empty()
        );
        let disabled = "Enabled: no\nTypes: deb\nURIs: http://m.test/debian\nSuites: sid\nComponents: main\n";
        assert!(parse_stanzas(disabled).is_empty());
    }

    #[test]
    fn lines_are_parsed() {
        let text = "# deb http://off.test/debian sid main\n\
                    deb-src http://mirror.test/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/etc/apt/keyrings/vendor.asc] http://vendor.test/linux/debian bookworm main\n\
                    deb http://mirror.test/debian-security bookworm-security main\n\
                    deb\thttp://mirror.test/debian/ bookworm main contrib # home\n";
        assert_eq!(
            archives(text.lines().filter_map(parse_line)),
            ["http://mirror.test/debian/"]
        );
    }

    #[test]
    fn lists_of_mirrors_and_snapshots_are_mirrors() {
        for uri in [
            "mirror+file:///etc/apt/mirrors/debian.list",
            "http://s.test/archive/debian/20260101T000000Z",
        ] {
            assert_eq!(archives(parse_line(&format!("deb {uri} bookworm main"))), [uri]);
        }
    }

    #[test]
    fn the_suite_is_all_that_changes() {
        let mirror = Mirror {
            uri: "http://mirror.test/debian".to_owned(),
            keyring: Some(KEYRING.to_owned()),
        };
        let expected = format!(
            "Types: deb\nURIs: http://mirror.test/debian\nSuites: sid\nComponents: main\nSigned-By: {KEYRING}\n"
        );
        assert_eq!(mirror.stanza("sid"), expected);
    }
}
