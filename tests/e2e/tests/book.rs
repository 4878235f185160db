//! The book: its commands work, its pages are listed, and its links lead somewhere.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;
use tracer_e2e::{place, running::Program, scenario::Scenario};

const SUITE: &str = "trixie";
const GPU: &str = "gfx1100";

/// A line that a reader would type, the exit codes that it may have here, and lines that it prints.
#[derive(Debug, PartialEq)]
struct Line {
    command: String,
    exits: Vec<i32>,
    prints: Vec<String>,
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Returns the pages below a folder, by their paths from `docs`.
fn pages(below: &str) -> Vec<String> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(docs().join(below)).expect("the folder") {
        let name = entry.expect("its entries").file_name().into_string().expect("a name");
        if name.ends_with(".md") {
            pages.push(format!("{below}{name}"));
        }
    }
    pages.sort();
    pages
}

fn read(page: &str) -> String {
    fs::read_to_string(docs().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Returns the lines of the `console` blocks that begin with a prompt. The comment `exits: CODE...` before a block names its exit codes,
/// if they are not 0. A `text` block that follows a block has lines that its last command prints; `...` stands for others.
fn lines(text: &str) -> Vec<Line> {
    let (mut lines, mut exits): (Vec<Line>, _) = (Vec::new(), vec![0]);
    let mut block = None;
    let mut follows = false;
    for line in text.lines() {
        match (block, line) {
            (None, "```console") => block = Some("console"),
            (None, "```text") if follows => block = Some("text"),
            (None, "") => {}
            (None, _) => {
                follows = false;
                if let Some(codes) = line.strip_prefix("<!-- exits: ") {
                    let codes = codes.strip_suffix(" -->").expect("the comment's end").split(' ');
                    exits = codes.map(|code| code.parse().expect("an exit code")).collect();
                }
            }
            (Some(_), "```") => (block, exits, follows) = (None, vec![0], true),
            (Some("console"), _) => {
                let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("no command: {line}"));
                lines.push(Line {
                    command: command.to_owned(),
                    exits: exits.clone(),
                    prints: Vec::new(),
                });
            }
            (Some(_), _) => lines.last_mut().expect("a command").prints.push(line.to_owned()),
        }
    }
    assert_eq!(block, None, "a block without an end");
    lines
}

/// Returns the length of the number at the start of a text, such as `1,400`, `0.5` or `0x7f00`.
fn number_len(text: &str) -> usize {
    let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    if let Some(hexadecimal) = text.strip_prefix("0x") {
        return text.len() - hexadecimal.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
    }
    let mut len = digits(text);
    while len > 0 && text[len..].starts_with(['.', ',']) && digits(&text[len + 1..]) > 0 {
        len += 1 + digits(&text[len + 1..]);
    }
    len
}

/// Returns a line without what differs from run to run: each number but 0, with its unit of time, is `N`, and each run of spaces one
/// space. `not watched` is 0: some machines have no DRM driver.
fn shape(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.replace("not watched", "0").split_whitespace() {
        let (mut shaped, mut rest) = (String::new(), word);
        while let Some(c) = rest.chars().next() {
            let (number, after) = rest.split_at(number_len(rest));
            match number {
                "" => {
                    shaped.push(c);
                    rest = &rest[c.len_utf8()..];
                    continue;
                }
                "0" => shaped.push('0'),
                _ => shaped.push('N'),
            }
            rest = after;
        }
        // A unit follows its number.
        let is_unit = ["ns", "us", "ms", "s"].contains(&word) && words.last().is_some_and(|last| last.ends_with('N'));
        if !is_unit {
            words.push(shaped);
        }
    }
    words.join(" ")
}

/// Checks that the output has these lines, in this order.
fn prints(page: &str, line: &Line, output: &str) {
    let mut rest = output.lines().map(shape);
    for wanted in line.prints.iter().filter(|line| line.trim() != "...") {
        let wanted_shape = shape(wanted);
        assert!(
            rest.any(|printed| printed == wanted_shape),
            "{page}: `{}` does not print, or not there: {wanted}\n{output}",
            line.command
        );
    }
}

#[test]
fn lines_have_their_exit_codes_and_output() {
    let text = "```console\n$ a\n```\n<!-- exits: 1 3 -->\n```console\n$ b | c\n$ d\n```\n\n```text\nx 1\n...\ny\n```\n```sh\n$ e\n```\n\
                ```text\nz\n```\n```console\n$ f\n```\n";
    let line = |command: &str, exits: &[i32], prints: &[&str]| Line {
        command: command.to_owned(),
        exits: exits.to_vec(),
        prints: prints.iter().map(|&line| line.to_owned()).collect(),
    };
    assert_eq!(
        lines(text),
        [
            line("a", &[0], &[]),
            line("b | c", &[1, 3], &[]),
            line("d", &[1, 3], &["x 1", "...", "y"]),
            line("f", &[0], &[])
        ]
    );
}

#[test]
fn a_line_differs_only_by_its_numbers() {
    assert_eq!(
        shape("dispatches 1,400:  doorbell 100.0 %"),
        "dispatches N: doorbell N %"
    );
    assert_eq!(shape("P50  1.2 us  gfx1100"), shape("P50 714 ns gfx942"));
    assert_eq!(shape("ring 0, [lib.so.1+0x4e5c4]"), "ring 0, [lib.so.N+N]");
    assert_eq!(shape("ring 0"), shape("ring not watched"));
    assert_ne!(shape("losses 0"), shape("losses 57"));
}

#[test]
#[should_panic(expected = "does not print")]
fn lines_in_another_order_are_others() {
    let line = Line {
        command: "x".to_owned(),
        exits: vec![0],
        prints: vec!["b 1".to_owned(), "a 2".to_owned()],
    };
    prints("page", &line, "a 3\nb 4\n");
}

/// The computer of a reader: a folder with the program `./app` on a simulated GPU, and another program that runs already.
struct Reader {
    dir: TempDir,
    runs_already: Program,
}

impl Reader {
    fn new() -> Self {
        let runs_already = Program::steady(SUITE, GPU, &[]);
        runs_already.goes_on(10);
        let dir = TempDir::new().expect("a folder");
        let this = Self { dir, runs_already };
        let app = Scenario::new(SUITE, GPU, &["mixed"]).simulated(this.dir.path());
        let words = app.iter().map(|word| format!("'{}'", word.display()));
        let app = format!("exec {}", words.collect::<Vec<_>>().join(" "));
        this.program("app", &app);
        this.program("app-new", &app);
        this.program("bin/sudo", "exec \"$@\"");
        let library = place::rootfs(SUITE).join("usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1");
        fs::copy(library, this.at("libhsa-runtime64.so.1")).expect("a copy of the runtime");
        this
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a program");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    }

    fn types(&self, line: &str) -> Output {
        let mut path = OsString::from(self.at("bin"));
        for folder in [
            place::programs().into_os_string(),
            std::env::var_os("PATH").unwrap_or_default(),
        ] {
            path.push(":");
            path.push(folder);
        }
        Command::new("sh")
            .args(["-c", line])
            .current_dir(self.dir.path())
            .env("PATH", path)
            .env("PID", self.runs_already.pid().to_string())
            .output()
            .expect("sh runs")
    }

    /// Compares the trace of `./app` with the program's own report.
    fn compares(&self, page: &str) {
        let output = self.types("tracer report app.trace --format json");
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let did = fs::read(self.at("did.json")).expect("the report of the program");
        let did: serde_json::Value = serde_json::from_slice(&did).expect("JSON");
        let own = did["dispatches"].as_u64().expect("a number");
        let total = report["dispatches"]["total"].as_u64().expect("a number");
        // The runtime submits some of its own.
        assert!(own > 0 && (own..own + 3).contains(&total), "{page}: {own} of {total}");
        assert_eq!(report["dispatches"]["by_path"]["doorbell"], total, "{page}");
        assert!(!report["simulated"].is_null(), "{page}");
    }
}

#[test]
fn each_command_works() {
    for page in [vec!["quick-start.md".to_owned()], pages("how-to/")].concat() {
        let lines = lines(&read(&page));
        let reader = Reader::new();
        for line @ Line { command, exits, .. } in &lines {
            let output = reader.types(command);
            let said =
                || String::from_utf8_lossy(&[output.stdout.clone(), output.stderr.clone()].concat()).into_owned();
            let code = output.status.code();
            println!("{page}: {command}: {code:?}");
            assert!(
                code.is_some_and(|code| exits.contains(&code)),
                "{page}: `{command}` exits with {:?}, not with one of {exits:?}:\n{}",
                output.status,
                said()
            );
            prints(&page, line, &said());
        }
        if lines.iter().any(|line| line.command.contains("app.trace")) {
            reader.compares(&page);
        }
    }
}

/// Returns the targets of a page's links, without those to other servers and to places in the page.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = targets.map(|target| target.split('#').next().unwrap_or_default());
    files.filter(|file| !file.is_empty() && !file.contains("://") && !file.contains(' '))
}

#[test]
fn each_page_is_listed_and_each_link_leads_somewhere() {
    let all: BTreeSet<String> = [pages(""), pages("how-to/")].concat().into_iter().collect();
    let book = docs().canonicalize().expect("a folder");
    let summary = read("SUMMARY.md");
    let mut listed: BTreeSet<String> = links(&summary).map(str::to_owned).collect();
    listed.insert("SUMMARY.md".to_owned());
    assert_eq!(listed, all);
    for page in &all {
        let folder = docs().join(page).parent().expect("a folder").to_owned();
        for link in links(&read(page)) {
            // Of the repository, the book has these pages only.
            let target = folder.join(link).canonicalize();
            assert!(
                target.is_ok_and(|target| target.starts_with(&book)),
                "{page} links to {link}"
            );
        }
    }
}
