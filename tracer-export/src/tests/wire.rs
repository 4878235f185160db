//! A small reader of protocol buffers, for tests.

/// The fields of a message: numbers and contents.
#[derive(Clone, Debug, PartialEq)]
pub struct Fields(Vec<(u64, Content)>);

#[derive(Clone, Debug, PartialEq)]
enum Content {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Fields {
    pub fn read(mut bytes: &[u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            let content = match tag % 8 {
                0 => Content::Number(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_at(8);
                    bytes = rest;
                    Content::Number(u64::from_le_bytes(number.try_into().expect("8 bytes")))
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    let (content, rest) = bytes.split_at(length);
                    bytes = rest;
                    Content::Bytes(content.to_vec())
                }
                kind => panic!("a field of type {kind}"),
            };
            fields.push((tag / 8, content));
        }
        Self(fields)
    }

    pub fn all(&self, field: u64) -> Vec<Self> {
        let those = self.0.iter().filter(|(number, _)| *number == field);
        those
            .map(|(_, content)| match content {
                Content::Bytes(bytes) => Self::read(bytes),
                Content::Number(n) => panic!("{n} is no message"),
            })
            .collect()
    }

    pub fn one(&self, field: u64) -> Option<Self> {
        let mut all = self.all(field);
        assert!(all.len() <= 1, "field {field} is there {} times", all.len());
        all.pop()
    }

    pub fn numbers(&self, field: u64) -> Vec<u64> {
        let those = self.0.iter().filter(|(number, _)| *number == field);
        those
            .map(|(_, content)| match content {
                Content::Number(n) => *n,
                Content::Bytes(bytes) => panic!("{bytes:?} is no number"),
            })
            .collect()
    }

    pub fn number(&self, field: u64) -> Option<u64> {
        self.numbers(field).pop()
    }

    pub fn text(&self, field: u64) -> Option<String> {
        self.0.iter().rev().find_map(|(number, content)| match content {
            Content::Bytes(bytes) if *number == field => Some(String::from_utf8(bytes.clone()).expect("UTF-8")),
            _ => None,
        })
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("another byte");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            break;
        }
    }
    value
}
