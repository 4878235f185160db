//! Functions behind exported stubs, found by the API table of a process whose library is initialised.

use crate::{
    confined::{Examine, File, NotRead, ReadError, Remote},
    runtime::resolver::{Argument, ExportSite, InstructionKind, ProbePoint},
    target::proc_maps::{FileId, Mapping},
};

/// A process that has a runtime mapped.
pub struct Process<'a> {
    examine: Examine<'a>,
    memory: Remote<'a>,
    file: &'a File,
    /// The mappings of that file.
    own: Vec<&'a Mapping>,
}

impl<'a> Process<'a> {
    /// Prepares the search. `file` is the runtime's file, which is `id` in `mappings`.
    pub fn new(examine: Examine<'a>, file: &'a File, id: &FileId, mappings: &'a [Mapping]) -> Self {
        Self {
            examine,
            memory: examine.memory(),
            file,
            own: mappings.iter().filter(|mapping| mapping.file == *id).collect(),
        }
    }

    /// Returns whether the table is filled, as it is by the entry of `hsa_init`.
    ///
    /// # Errors
    /// Fails with [`NotRead`] if the memory can't be read now.
    pub fn is_filled<'b>(&self, exports: impl Iterator<Item = &'b ExportSite>) -> Result<bool, NotRead> {
        for export in exports {
            if self.target_of(export)?.is_some_and(|(_, function)| function != 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the probe sites in the functions that stubs jump to; `None` for a function that is in another file (a tool has put
    /// itself in between) or offers no site.
    ///
    /// # Errors
    /// Fails with [`NotRead`] if memory or file can't be read now.
    pub fn behind<'b>(
        &self,
        exports: impl IntoIterator<Item = &'b ExportSite>,
        keep: &[Argument],
    ) -> Result<Vec<Option<ProbePoint>>, NotRead> {
        let mut functions = Vec::new();
        for export in exports {
            let target = self.target_of(export)?;
            functions.push(target.and_then(|(bias, function)| {
                let holder = self.own.iter().find(|m| (m.start..m.end).contains(&function))?;
                Some((function - holder.start + holder.offset, function.wrapping_sub(bias)))
            }));
        }
        let there: Vec<(u64, u64)> = functions.iter().flatten().copied().collect();
        let mut points = points_in(self.examine, self.file, &there, keep)?.into_iter();
        let point = |function: Option<(u64, u64)>| {
            let point = function.and_then(|_| points.next()?)?;
            (point.instruction != InstructionKind::Other).then_some(point)
        };
        Ok(functions.into_iter().map(point).collect())
    }

    /// Returns the load address of the library relative to its linked addresses, and the function that the stub jumps to.
    fn target_of(&self, export: &ExportSite) -> Result<Option<(u64, u64)>, NotRead> {
        let stub = export.probe;
        let inside =
            |m: &&&Mapping| stub.file_offset >= m.offset && stub.file_offset - m.offset < m.end.saturating_sub(m.start);
        let (Some(table), Some(mapping)) = (export.table, self.own.iter().find(inside)) else {
            return Ok(None);
        };
        let bias = mapping
            .start
            .wrapping_add(stub.file_offset - mapping.offset)
            .wrapping_sub(stub.vaddr);
        let Some(pointer) = word(&self.memory, bias.wrapping_add(table.pointer_vaddr))? else {
            return Ok(None);
        };
        let function = word(&self.memory, pointer.wrapping_add(u64::from(table.slot_offset)))?;
        Ok(function.map(|function| (bias, function)))
    }
}

/// Reads a word of memory; `None` if it is not there.
///
/// # Errors
/// Fails with [`NotRead`] if the word can't be read now.
pub fn word(memory: &Remote<'_>, address: u64) -> Result<Option<u64>, NotRead> {
    match memory.word(address) {
        Ok(word) => Ok(Some(word)),
        Err(error) if error.raw_os_error().is_some() => Ok(None),
        Err(_) => Err(ReadError::Blocked.into()),
    }
}

/// Returns the probe sites in functions of a library. Each function is given by its offset in the file and its linked address; the
/// result is `None` for functions that have no site.
///
/// # Errors
/// Fails with [`NotRead`] if the file can't be read now.
pub fn points_in(
    examine: Examine<'_>,
    file: &File,
    functions: &[(u64, u64)],
    keep: &[Argument],
) -> Result<Vec<Option<ProbePoint>>, NotRead> {
    let sites = examine.sites(file, functions, keep)?.into_iter();
    let points = sites.zip(functions).map(|(site, &(file_offset, vaddr))| {
        site.map(|site| ProbePoint {
            function: vaddr,
            vaddr: vaddr.wrapping_add(site.offset),
            file_offset: file_offset + site.offset,
            instruction: site.instruction,
        })
    });
    Ok(points.collect())
}
