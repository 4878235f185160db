//! The conditions that packets of copy engines and PM4 packets wait for.

/// Returns whether a polled value satisfies its function. A function that does not exist is never satisfied.
pub fn poll_passes(function: u32, value: u32, reference: u32) -> bool {
    match function {
        0 => true,
        1 => value < reference,
        2 => value <= reference,
        3 => value == reference,
        4 => value != reference,
        5 => value >= reference,
        6 => value > reference,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_functions() {
        let of = |function| [1, 2, 3].map(|value| poll_passes(function, value, 2));
        assert_eq!(of(0), [true; 3]);
        assert_eq!(of(1), [true, false, false]);
        assert_eq!(of(3), [false, true, false]);
        assert_eq!(of(5), [false, true, true]);
        assert_eq!(of(7), [false; 3]);
    }
}
