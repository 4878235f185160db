//! The metadata note of a code object: `NT_AMDGPU_METADATA`, versions 3 and later.
//!
//! Source: LLVM's AMDGPUUsage, "Code Object V3 Metadata" to "Code Object V5 Metadata".

use std::collections::HashMap;

use tracer_core::code_object::KernelResources;

use super::msgpack::Reader;

/// The fields of a note that tracer uses.
#[derive(Debug, Default)]
pub struct Metadata<'a> {
    /// `amdhsa.target`, from version 4 on.
    pub target: Option<&'a str>,
    /// Kernels, by the name of the descriptor, `NAME.kd`.
    pub kernels: HashMap<&'a str, KernelResources>,
}

impl<'a> Metadata<'a> {
    /// Reads a note, up to the first malformed part.
    pub fn read(note: &'a [u8]) -> Self {
        let mut metadata = Self::default();
        // A malformed part ends the read. Everything before it is kept.
        let _ = metadata.fill(&mut Reader::new(note));
        metadata
    }

    fn fill(&mut self, reader: &mut Reader<'a>) -> Option<()> {
        for _ in 0..reader.map()? {
            match reader.text()? {
                "amdhsa.target" => self.target = Some(reader.text()?),
                "amdhsa.kernels" => {
                    for _ in 0..reader.array()? {
                        if let (Some(symbol), resources) = kernel(reader)? {
                            self.kernels.insert(symbol, resources);
                        }
                    }
                }
                _ => {
                    reader.skip()?;
                }
            }
        }
        Some(())
    }
}

/// Reads the name of a kernel's descriptor, and the resources that the kernel uses.
fn kernel<'a>(reader: &mut Reader<'a>) -> Option<(Option<&'a str>, KernelResources)> {
    let mut symbol = None;
    let mut resources = KernelResources::default();
    for _ in 0..reader.map()? {
        let field = match reader.text()? {
            ".symbol" => {
                symbol = Some(reader.text()?);
                continue;
            }
            ".kernarg_segment_size" => &mut resources.kernarg_bytes,
            ".group_segment_fixed_size" => &mut resources.group_bytes,
            ".private_segment_fixed_size" => &mut resources.private_bytes,
            ".vgpr_count" => &mut resources.vgprs,
            ".agpr_count" => &mut resources.agprs,
            ".sgpr_count" => &mut resources.sgprs,
            ".wavefront_size" => &mut resources.wavefront,
            ".max_flat_workgroup_size" => &mut resources.max_workgroup,
            _ => {
                reader.skip()?;
                continue;
            }
        };
        *field = reader.skip()?.and_then(|number| u32::try_from(number).ok());
    }
    Some((symbol, resources))
}
