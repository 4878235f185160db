use super::*;

const NARROW: Layout = Layout {
    width: Some(60),
    rows: 2,
    style: Style::Plain,
};

fn sample() -> Table {
    let columns = [
        name("KERNELS"),
        number("COUNT"),
        text("PATH").spare(1),
        number("VGPR").spare(2),
        number("BYTES OF ARGUMENTS").spare(3),
    ];
    let mut table = Table::new(&columns);
    let long = "void mul_mat_vec_f<float, float, 1, 256, false>(float const*, float const*)";
    for (name, count) in [(long, 146), ("copyBuffer", 7), ("third", 1)] {
        let cells = [name, &count.to_string(), "doorbell", "24", "48"];
        table.row(cells.map(str::to_owned).to_vec());
    }
    table
}

fn written(layout: Layout) -> String {
    let mut text = Vec::new();
    sample().write(&mut text, layout).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn a_narrow_table_drops_spare_columns_and_shortens_names() {
    let expected = "
KERNELS                                COUNT  PATH      VGPR
void mul_mat_vec_f..t*, float const*)    146  doorbell    24
copyBuffer                                 7  doorbell    24
... 1 more; --all shows them
";
    assert_eq!(written(NARROW), expected);
    assert_eq!(expected.lines().map(UnicodeWidthStr::width).max(), Some(60));
}

/// Without names, columns alone make room: those with the highest numbers go first.
#[test]
fn a_table_of_numbers_leaves_out_columns() {
    let heading = |spare| number("EIGHT..8").spare(spare);
    let mut table = Table::new(&[heading(0), heading(3), heading(1), heading(2)]);
    table.row(["1", "2", "3", "4"].map(str::to_owned).to_vec());
    // Three columns and the gaps between them.
    assert_eq!(table.fit(Some(28)), [true, false, true, true]);
    assert_eq!(table.fit(Some(27)), [true, false, true, false]);
    assert_eq!(table.fit(Some(1)), [true, false, false, false]);
    assert_eq!(table.fit(None), [true; 4]);
}

#[test]
fn a_wide_table_has_everything() {
    let text = written(NARROW.wide().with_rows(usize::MAX));
    assert!(text.contains("256, false>(float const*, float const*)"), "{text}");
    assert!(text.contains("ARGUMENTS") && text.contains("third"), "{text}");
    assert!(!text.contains("more;"), "{text}");
}

#[test]
fn in_markdown_no_name_breaks_its_cell() {
    let mut table = Table::new(&[name("KERNELS"), number("COUNT")]);
    table.row(["a|b<c>", "7"].map(str::to_owned).to_vec());
    let mut text = Vec::new();
    table.write(&mut text, NARROW.markdown()).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(
        lines[1].starts_with("| KERNELS") && lines[2].starts_with("|--"),
        "{text}"
    );
    assert!(lines[2].ends_with("-:|") || lines[2].ends_with("--|"), "{text}");
    assert!(lines[3].contains("a\\|b") && !lines[3].contains("<c>"), "{text}");
}

#[test]
fn lines_wrap_at_spaces_under_their_text() {
    let layout = Layout {
        width: Some(20),
        ..NARROW
    };
    assert_eq!(
        layout.wrap("label  one two three four\nshort\n", 7),
        "label  one two three\n       four\nshort\n"
    );
    // A word that is too long stays whole.
    let path = "label  /a/path/that/is/longer/than/a/line end\n";
    assert_eq!(
        layout.wrap(path, 7),
        "label  /a/path/that/is/longer/than/a/line\n       end\n"
    );
    // Without a width nothing wraps, and lines stay lines.
    assert_eq!(NARROW.wide().wrap("label  one\nshort", 7), "label  one\nshort\n");
}
