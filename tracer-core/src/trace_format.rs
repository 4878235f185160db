//! Format files of trace events: where the fields of a record are, and how the kernel prints them.

/// The maximum length of a record: longer records do not fit into a page of the kernel's ring buffer.
const MAX_RECORD: u32 = 4096;

/// The format of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceFormat {
    /// The name of the event; empty if the text has none.
    pub name: String,
    /// The number by which records name it.
    pub id: Option<u16>,
    /// What follows `print fmt:`: a format in quotes, and its arguments.
    pub print: String,
    fields: Vec<Field>,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Type and name, as in C.
    pub declaration: String,
    /// The name.
    pub name: String,
    /// Where it begins in the record, bytes.
    pub offset: u32,
    /// Its length, bytes.
    pub size: u32,
}

impl TraceFormat {
    /// Parses the text of a format file.
    ///
    /// # Errors
    /// Says what is wrong with a text that is cut short, or that declares a field in an unknown form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut format = Self::default();
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix("name:") {
                name.trim().clone_into(&mut format.name);
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().ok();
            } else if line.starts_with("field:") {
                let field = Field::parse(line).ok_or_else(|| format!("the line `{line}` is not understood"))?;
                format.fields.push(field);
            }
        }
        // This is the last item in every format file.
        let (_, print) = text.split_once("print fmt:").ok_or("it is cut short")?;
        print.trim().clone_into(&mut format.print);
        Ok(format)
    }

    /// Returns a field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Returns the offset of a field, if it exists with this size.
    #[must_use]
    pub fn offset(&self, name: &str, size: u32) -> Option<u32> {
        let is_it = |field: &&Field| field.name == name && field.size == size;
        self.fields.iter().find(is_it).map(|field| field.offset)
    }

    /// Returns the offset of a field that gives the place of a string of variable length (`__data_loc char[]`), if it exists.
    #[must_use]
    pub fn string(&self, name: &str) -> Option<u32> {
        let is_it = |field: &&Field| field.name == name && field.is_string();
        self.fields.iter().find(is_it).map(|field| field.offset)
    }
}

impl Field {
    /// Parses `\tfield:TYPE NAME[N];\toffset:O;\tsize:S;\tsigned:B;`.
    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.split(';').map(str::trim);
        let declaration = parts.next()?.strip_prefix("field:")?;
        let offset: u32 = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        let size: u32 = parts.next()?.strip_prefix("size:")?.parse().ok()?;
        let name = declaration.rsplit([' ', '*']).next()?.split('[').next()?.to_owned();
        let fits = offset.checked_add(size)? <= MAX_RECORD;
        (fits && !name.is_empty()).then(|| Self {
            declaration: declaration.to_owned(),
            name,
            offset,
            size,
        })
    }

    /// Returns whether the field gives the place of a string of variable length.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.size == 4 && self.declaration.starts_with("__data_loc char[]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name_and_size() {
        let text = "name: task_newtask\nID: 205\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\
            \tfield:u64 clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n\nprint fmt: \"pid=%d\", REC->pid\n";
        let format = TraceFormat::parse(text).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("task_newtask", Some(205)));
        assert_eq!(format.print, "\"pid=%d\", REC->pid");
        assert_eq!(
            (format.offset("pid", 4), format.offset("clone_flags", 4)),
            (Some(8), None)
        );
        assert_eq!((format.string("name"), format.string("pid")), (Some(12), None));
        for cut in ["", &text[..120]] {
            assert!(TraceFormat::parse(cut).is_err(), "{cut}");
        }
    }
}
