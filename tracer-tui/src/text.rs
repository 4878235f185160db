//! Text that fits a number of cells.

/// Shortens a text to this many cells in its middle: both ends of a name tell it apart.
pub fn shortened(text: &str, width: u16) -> String {
    let (width, length) = (usize::from(width), text.chars().count());
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let tail = kept / 2;
    let mut short: String = text.chars().take(kept - tail).collect();
    short.extend((width > 0).then_some('…'));
    short.extend(text.chars().skip(length - tail));
    short
}

/// Joins as many parts as fit, and shows that others are left out. A part is never cut, unless it is the first.
pub fn joined<'a>(parts: impl IntoIterator<Item = &'a str>, separator: &str, width: u16) -> String {
    let parts: Vec<&str> = parts.into_iter().collect();
    let mut text = String::new();
    for (at, part) in parts.iter().enumerate() {
        let last = at + 1 == parts.len();
        let length = |text: &str| text.chars().count();
        // The mark of what is left out needs room, too.
        let mark = if last { 0 } else { length(separator) + 1 };
        let between = if at == 0 { "" } else { separator };
        if length(&text) + length(between) + length(part) + mark > usize::from(width) {
            return if at == 0 {
                shortened(part, width)
            } else {
                text + separator + "…"
            };
        }
        text.push_str(between);
        text.push_str(part);
    }
    text
}

/// Wraps text into lines of this width.
pub fn wrapped(text: &str, width: u16) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > usize::from(width) {
            lines.push(word.to_owned());
        } else if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_both_ends() {
        assert_eq!(shortened("vector_add", 10), "vector_add");
        assert_eq!(shortened("block_reduce_kernel<float>", 12), "block_…loat>");
        assert_eq!(shortened("vector_add", 1), "…");
        assert_eq!(shortened("vector_add", 0), "");
    }

    #[test]
    fn parts_are_left_out_and_not_cut() {
        assert_eq!(joined(["12 us", "34 us"], ", ", 12), "12 us, 34 us");
        assert_eq!(joined(["12 us", "34 us"], ", ", 11), "12 us, …");
        assert_eq!(joined(["12 us", "34 us", "5 s"], ", ", 14), "12 us, …");
        assert_eq!(joined(["a long first part"], ", ", 6), "a l…rt");
        assert_eq!(joined([], ", ", 6), "");
    }

    #[test]
    fn words_stay_whole() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    }
}
