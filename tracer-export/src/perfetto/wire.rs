//! Messages in the wire format of protocol buffers: fields of a number and a type, one after the other.
//!
//! The format: <https://protobuf.dev/programming-guides/encoding/>.

/// A message, as the bytes of its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message(Vec<u8>);

/// Types of fields on the wire.
const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const BYTES: u64 = 2;

impl Message {
    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds a number; also a truth value, or a value of an enumeration.
    pub fn uint(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, VARINT);
        self.varint(value);
        self
    }

    /// Adds a number that can be negative, of type `int32` or `int64`: both are 64 bits on the wire.
    pub fn int(&mut self, field: u32, value: i64) -> &mut Self {
        self.uint(field, value.cast_unsigned())
    }

    /// Adds a number of type `fixed64`.
    pub fn fixed64(&mut self, field: u32, value: u64) -> &mut Self {
        self.tag(field, FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Adds text.
    pub fn text(&mut self, field: u32, text: &str) -> &mut Self {
        self.raw(field, text.as_bytes())
    }

    /// Adds a message.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::default();
        fill(&mut inner);
        self.raw(field, &inner.0)
    }

    /// Adds a message that is written already.
    pub fn raw(&mut self, field: u32, bytes: &[u8]) -> &mut Self {
        self.tag(field, BYTES);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds the fields of another message.
    pub fn append(&mut self, fields: &Self) {
        self.0.extend_from_slice(&fields.0);
    }

    fn tag(&mut self, field: u32, kind: u64) {
        self.varint(u64::from(field) << 3 | kind);
    }

    /// Seven bits a byte, the lowest first; the highest bit says that more follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        assert_eq!(Message::default().uint(1, 150).bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(
            Message::default().text(2, "testing").bytes(),
            [0x12, 0x07, b't', b'e', b's', b't', b'i', b'n', b'g']
        );
        let mut outer = Message::default();
        outer.message(3, |inner| {
            inner.uint(1, 150);
        });
        assert_eq!(outer.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = vec![0x08];
        negative.extend([0xff; 9]);
        negative.push(0x01);
        assert_eq!(Message::default().int(1, -1).bytes(), negative);
    }

    #[test]
    fn the_limits_of_numbers_and_fields() {
        assert_eq!(Message::default().uint(15, 0).bytes(), [0x78, 0]);
        assert_eq!(Message::default().uint(16, 127).bytes(), [0x80, 0x01, 0x7f]);
        let max = Message::default().uint(1, u64::MAX).bytes().to_vec();
        assert_eq!((max.len(), max[10]), (11, 1));
        assert_eq!(
            Message::default().fixed64(47, 1).bytes(),
            [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}
