//! Functions behind exported stubs, by the API table of a process whose library is initialised.

use std::os::unix::fs::FileExt;

use super::Target;
use crate::{
    proc_maps::Mapping,
    resolver::{Argument, ExportSite, InstructionKind, ProbePoint, site_in_function},
    sys,
};

/// Enough of a function to find a probe site in.
const CODE_LEN: usize = 128;

/// Whether the table of process `pid` is filled, as by the entry of `hsa_init`.
pub fn is_filled<'a>(mut exports: impl Iterator<Item = &'a ExportSite>, pid: u32, own: &[&Mapping]) -> bool {
    exports.any(|export| target_of(export, pid, own).is_some_and(|(_, function)| function != 0))
}

/// Where the library lies, less its own addresses, and the function that the stub jumps to.
fn target_of(export: &ExportSite, pid: u32, own: &[&Mapping]) -> Option<(u64, u64)> {
    let table = export.table?;
    let stub = export.probe;
    let mapping = own
        .iter()
        .find(|m| stub.file_offset >= m.offset && stub.file_offset - m.offset < m.end.saturating_sub(m.start))?;
    let bias = mapping
        .start
        .wrapping_add(stub.file_offset - mapping.offset)
        .wrapping_sub(stub.vaddr);
    let pointer = sys::read_u64(pid, bias.wrapping_add(table.pointer_vaddr)).ok()?;
    let function = sys::read_u64(pid, pointer.wrapping_add(u64::from(table.slot_offset))).ok()?;
    Some((bias, function))
}

/// The probe site in the function that the stub jumps to; `None` if that lies in another file (a tool has put itself
/// in between) or offers no site.
pub fn behind(
    target: &Target<'_>,
    export: &ExportSite,
    pid: u32,
    own: &[&Mapping],
    keep: &[Argument],
) -> Option<ProbePoint> {
    let (bias, function) = target_of(export, pid, own)?;
    let holder = own.iter().find(|m| (m.start..m.end).contains(&function))?;
    let file_offset = function - holder.start + holder.offset;
    let point = point_in(target, function.wrapping_sub(bias), file_offset, keep)?;
    (point.instruction != InstructionKind::Other).then_some(point)
}

/// The probe site in a function of a library, by where it lies in the file and its address, as linked; `None` if it has none.
pub fn point_in(target: &Target<'_>, vaddr: u64, file_offset: u64, keep: &[Argument]) -> Option<ProbePoint> {
    let mut code = [0; CODE_LEN];
    // From the file: memory may show the breakpoints of other probes.
    target.file.read_exact_at(&mut code, file_offset).ok()?;
    let found = site_in_function(&code, vaddr, keep)?;
    Some(ProbePoint {
        function: vaddr,
        vaddr: vaddr.wrapping_add(found.offset),
        file_offset: file_offset + found.offset,
        instruction: found.instruction,
    })
}
