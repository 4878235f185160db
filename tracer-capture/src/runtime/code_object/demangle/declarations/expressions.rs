//! Literals and expressions of the grammar.

use super::walk::Walk;

impl Walk<'_> {
    pub(super) fn literal(&mut self) -> Option<()> {
        self.expect(b"L")?;
        if self.take(b"_Z") || self.take(b"Z") {
            self.encoding()?;
            return self.expect(b"E");
        }
        self.ty()?;
        self.skip_while(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase() || byte == b'_');
        self.expect(b"E")
    }

    pub(super) fn expression(&mut self) -> Option<()> {
        self.deeper(Self::expression_inside)
    }

    pub(super) fn expression_inside(&mut self) -> Option<()> {
        match self.peek(0) {
            b'L' => return self.literal(),
            b'T' => return self.parameter(),
            b'0'..=b'9' => {
                self.source_name()?;
                return self.arguments_if_any();
            }
            b'f' => return self.of_function(),
            _ => {}
        }
        let operator = [self.peek(0), self.peek(1)];
        operator.iter().all(u8::is_ascii_alphabetic).then_some(())?;
        self.at += 2;
        match &operator {
            b"sr" => self.unresolved(),
            b"on" => {
                self.operator()?;
                self.arguments_if_any()
            }
            b"gs" | b"sp" | b"sz" | b"az" | b"te" | b"nx" | b"nt" | b"ng" | b"co" | b"de" | b"ad" | b"ps" | b"tw"
            | b"aw" | b"dl" | b"da" => self.expression(),
            b"pp" | b"mm" => {
                self.take(b"_");
                self.expression()
            }
            b"st" | b"at" | b"ti" => self.ty(),
            b"sZ" if self.peek(0) == b'T' => self.parameter(),
            b"sZ" => self.expression(),
            b"sP" => self.until_end(Self::argument),
            b"cl" | b"cp" | b"il" => self.until_end(Self::expression),
            b"tl" => {
                self.ty()?;
                self.until_end(Self::expression)
            }
            b"cv" => {
                self.ty()?;
                if self.take(b"_") {
                    self.until_end(Self::expression)
                } else {
                    self.expression()
                }
            }
            b"sc" | b"cc" | b"dc" | b"rc" => {
                self.ty()?;
                self.expression()
            }
            b"qu" => {
                self.expression()?;
                self.expression()?;
                self.expression()
            }
            b"dt" | b"pt" | b"ds" | b"pm" | b"ix" | b"cm" | b"pl" | b"mi" | b"ml" | b"dv" | b"rm" | b"an" | b"or"
            | b"eo" | b"aS" | b"pL" | b"mI" | b"mL" | b"dV" | b"rM" | b"aN" | b"oR" | b"eO" | b"ls" | b"rs" | b"lS"
            | b"rS" | b"eq" | b"ne" | b"lt" | b"gt" | b"le" | b"ge" | b"ss" | b"aa" | b"oo" => {
                self.expression()?;
                self.expression()
            }
            _ => None,
        }
    }

    /// A parameter of the function (`fp_`, `fL0p_`), or a fold expression.
    pub(super) fn of_function(&mut self) -> Option<()> {
        self.expect(b"f")?;
        let kind = self.peek(0);
        self.at += 1;
        let is_parameter = kind == b'p' || kind == b'L' && self.peek(0).is_ascii_digit();
        if is_parameter {
            if kind == b'L' {
                self.digits();
                self.expect(b"p")?;
            }
            self.skip_while(|byte| matches!(byte, b'r' | b'V' | b'K'));
            self.digits();
            return self.expect(b"_");
        }
        matches!(kind, b'l' | b'r' | b'L' | b'R').then_some(())?;
        self.at += 2;
        self.expression()?;
        if kind.is_ascii_uppercase() {
            self.expression()
        } else {
            Some(())
        }
    }

    /// A name in a scope that depends on template parameters, after `sr`.
    pub(super) fn unresolved(&mut self) -> Option<()> {
        if self.take(b"N") {
            self.ty()?;
            self.until_end(Self::simple_id)?;
        } else if self.peek(0).is_ascii_digit() {
            self.until_end(Self::simple_id)?;
        } else {
            self.ty()?;
        }
        if self.take(b"on") {
            self.operator()?;
            return self.arguments_if_any();
        }
        self.simple_id()
    }

    pub(super) fn simple_id(&mut self) -> Option<()> {
        self.source_name()?;
        self.arguments_if_any()
    }
}
