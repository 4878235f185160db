//! The walk from a function to its callers, over a copy of the stack.

use crate::runtime::unwind::{Cfa, Row};

/// The maximum number of frames.
const MAX_FRAMES: usize = 256;

/// The registers that a walk needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer.
    pub ip: u64,
    /// The stack pointer.
    pub sp: u64,
    /// The frame pointer.
    pub bp: u64,
}

/// A copy of a stack, from the stack pointer of the innermost function on.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The address of the first byte.
    pub start: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    }
}

/// What is known about the code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The file that is mapped there says this.
    File(Row),
    /// No file is mapped there: the next instructions, eight bytes of them.
    Generated([u8; 8]),
    /// Nothing.
    None,
}

/// Walks a stack. `rule` returns what is known about an address, given the address of a byte of the innermost function's next
/// instruction, or of the last byte of a call. Returns these addresses, innermost first, and whether the last one has no caller.
pub fn walk(mut at: Registers, stack: Stack<'_>, mut rule: impl FnMut(u64, u64) -> Rule) -> (Vec<u64>, bool) {
    let mut frames = Vec::new();
    while frames.len() < MAX_FRAMES {
        // A call is the last instruction of some functions: the return address is in the next one.
        let place = if frames.is_empty() { at.ip } else { at.ip - 1 };
        frames.push(place);
        let row = match rule(place, at.ip) {
            Rule::File(row) => row,
            Rule::Generated(code) => generated(place, code),
            Rule::None => return (frames, false),
        };
        let cfa = match row.cfa {
            Cfa::Outermost => return (frames, true),
            Cfa::Sp(offset) => Some(at.sp.wrapping_add_signed(offset.into())),
            Cfa::Bp(offset) => Some(at.bp.wrapping_add_signed(offset.into())),
            Cfa::AtBp(offset) => stack.word(at.bp.wrapping_add_signed(offset.into())),
            Cfa::Unknown => None,
        };
        let caller = cfa.filter(|&cfa| cfa > at.sp).and_then(|cfa| {
            let ip = stack.word(cfa.wrapping_sub(8))?;
            let bp = match (row.cfa, row.bp) {
                (Cfa::AtBp(_), None) => stack.word(at.bp)?,
                (_, None) => at.bp,
                (_, Some(offset)) => stack.word(cfa.wrapping_add_signed(offset.into()))?,
            };
            Some(Registers { ip, sp: cfa, bp })
        });
        match caller {
            // What has no caller returns to 0.
            Some(Registers { ip: 0, .. }) => return (frames, true),
            Some(caller) => at = caller,
            None => return (frames, false),
        }
    }
    (frames, false)
}

/// Returns the rule for code that a program generated, by what it does after the call: Python's trampolines have no frame pointer up
/// to version 3.13. Other code is taken to have one.
fn generated(start: u64, code: [u8; 8]) -> Row {
    let (cfa, bp) = match code {
        // add rsp, N; ret
        [0x48, 0x83, 0xc4, bytes, 0xc3, ..] if bytes < 0x80 => (Cfa::Sp(i32::from(bytes) + 8), None),
        // pop rbp; ret
        [0x5d, 0xc3, ..] => (Cfa::Sp(16), Some(-16)),
        // ret
        [0xc3, ..] => (Cfa::Sp(8), None),
        _ => (Cfa::Bp(16), Some(-16)),
    };
    Row { start, cfa, bp }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn row(cfa: Cfa, bp: Option<i16>) -> Rule {
        Rule::File(Row { start: 0, cfa, bp })
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn functions_without_frame_pointers_are_walked_by_their_rules() {
        // Of the function at 100: a local; the saved rbp, the return address. Then a trampoline, then a function with a frame pointer.
        let words = [7, 0x1068, 201, 0, 301, 0x2000, 8, 9, 10, 11, 12, 13, 14, 0, 401];
        let copy = bytes(&words);
        let stack = Stack {
            start: 0x1000,
            bytes: &copy,
        };
        let at = Registers {
            ip: 100,
            sp: 0x1000,
            bp: 5,
        };
        let rule = |place: u64, ip: u64| match place {
            100 => row(Cfa::Sp(24), Some(-16)),
            200 if ip == 201 => Rule::Generated([0x48, 0x83, 0xc4, 8, 0xc3, 0, 0, 0]),
            300 => row(Cfa::Bp(16), Some(-16)),
            400 => row(Cfa::Outermost, None),
            _ => Rule::None,
        };
        assert_eq!(walk(at, stack, rule), (vec![100, 200, 300, 400], true));
        // A copy that ends early leaves out callers, and says so.
        let short = Stack {
            bytes: &copy[..40],
            ..stack
        };
        assert_eq!(walk(at, short, rule), (vec![100, 200, 300], false));
        assert_eq!(walk(at, stack, |_, _| Rule::None), (vec![100], false));
    }

    #[test]
    fn a_walk_that_does_not_go_up_ends() {
        let copy = bytes(&[1, 2, 3, 4]);
        let stack = Stack {
            start: 0x1000,
            bytes: &copy,
        };
        let at = Registers {
            ip: 100,
            sp: 0x1000,
            bp: 0x0ff0,
        };
        let rule = |_, _| row(Cfa::Bp(16), None);
        assert_eq!(walk(at, stack, rule), (vec![100], false));
    }
}
