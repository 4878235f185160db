//! Fields of an event's text, as the kernel's `print fmt` writes them.

/// Returns the text of a field: what follows `key` up to a comma or a space. `key` ends with the sign that the format has there:
/// `ring=`, `job count:`. A field begins the text, or follows a comma and a space.
pub fn text<'a>(body: &'a str, key: &str) -> Option<&'a str> {
    let starts = body.match_indices(key).map(|(at, _)| at);
    let mut starts = starts.filter(|&at| at == 0 || body[..at].ends_with(", "));
    let value = &body[starts.next()? + key.len()..];
    Some(value.split([',', ' ']).next().unwrap_or_default())
}

/// Returns a decimal field.
pub fn number<T: std::str::FromStr>(body: &str, key: &str) -> Option<T> {
    text(body, key)?.parse().ok()
}

/// Returns a number in hexadecimal, with or without `0x`.
pub fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    // `from_str_radix` would accept a sign.
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, 16).ok())?
}

/// Returns a fence that the kernel prints as context and sequence number: `13:1`.
pub fn fence(text: &str) -> Option<(u64, u64)> {
    let (context, seqno) = text.split_once(':')?;
    Some((context.parse().ok()?, seqno.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let body = "entity=00ff, id=7, fence=0000000066091038, ring=comp_1.0.0, job count:2, hw job count:-1";
        assert_eq!(text(body, "entity="), Some("00ff"));
        assert_eq!(number::<u64>(body, "id="), Some(7));
        assert_eq!(text(body, "ring="), Some("comp_1.0.0"));
        assert_eq!(number::<u32>(body, "job count:"), Some(2));
        assert_eq!(number::<u32>(body, "hw job count:"), None);
        assert_eq!(text(body, "d="), None);
        assert_eq!(text("fence=13:1 signaled", "fence="), Some("13:1"));
    }

    #[test]
    fn numbers_have_no_signs() {
        assert_eq!(hexadecimal("0xffff8881"), Some(0xffff_8881));
        assert_eq!(hexadecimal("0000000066091038"), Some(0x6609_1038));
        for wrong in ["", "0x", "+1", "-1", "(____ptrval____)", "10000000000000000"] {
            assert_eq!(hexadecimal(wrong), None, "{wrong}");
        }
        assert_eq!(fence("13:1"), Some((13, 1)));
        assert_eq!(fence("0000000066091038"), None);
    }
}
