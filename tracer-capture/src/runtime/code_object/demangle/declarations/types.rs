//! Types of the grammar.

use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn ty(&mut self) -> Option<()> {
        self.deeper(Self::ty_inside)
    }

    pub(super) fn ty_inside(&mut self) -> Option<()> {
        match (self.peek(0), self.peek(1)) {
            (b'r' | b'V' | b'K' | b'P' | b'R' | b'O' | b'C' | b'G', _) => {
                self.at += 1;
                self.ty()
            }
            (b'U', b'l' | b't') => self.name(),
            (b'U', _) => {
                self.at += 1;
                self.source_name()?;
                self.arguments_if_any()?;
                self.ty()
            }
            (b'D', kind) => {
                self.at += 2;
                self.ty_of_two(kind)
            }
            (b'F', _) => {
                self.at += 1;
                self.take(b"Y");
                self.until_end(|walk| {
                    if matches!(walk.peek(0), b'R' | b'O') && walk.peek(1) == b'E' {
                        walk.at += 1;
                        return Some(());
                    }
                    walk.ty()
                })
            }
            (b'A', _) => {
                self.at += 1;
                self.bound()?;
                self.ty()
            }
            (b'M', _) => {
                self.at += 1;
                self.ty()?;
                self.ty()
            }
            (b'T', b's' | b'u' | b'e') => {
                self.at += 2;
                self.name()
            }
            (b'T', _) => {
                self.parameter()?;
                self.arguments_if_any()
            }
            (b'u', _) => {
                self.at += 1;
                self.source_name()?;
                self.arguments_if_any()
            }
            (b'a'..=b'z', _) => {
                self.at += 1;
                Some(())
            }
            _ => self.name(),
        }
    }

    /// The rest of a type that begins with `D` and `kind`.
    pub(super) fn ty_of_two(&mut self, kind: u8) -> Option<()> {
        match kind {
            b'p' | b'o' | b'x' => self.ty(),
            b't' | b'T' => {
                self.expression()?;
                self.expect(b"E")
            }
            b'O' => {
                self.expression()?;
                self.expect(b"E")?;
                self.ty()
            }
            b'w' => {
                self.until_end(Self::ty)?;
                self.ty()
            }
            b'v' => {
                self.bound()?;
                self.ty()
            }
            b'B' | b'U' => self.bound(),
            b'F' => {
                self.digits();
                self.take(b"_");
                Some(())
            }
            b'a'..=b'z' => Some(()),
            _ => None,
        }
    }

    /// A number or an expression, and `_`.
    pub(super) fn bound(&mut self) -> Option<()> {
        if self.peek(0).is_ascii_digit() {
            self.digits();
        } else if self.peek(0) != b'_' {
            self.expression()?;
        }
        self.expect(b"_")
    }
}
