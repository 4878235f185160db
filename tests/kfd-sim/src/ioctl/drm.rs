//! The DRM ioctls that `libdrm_amdgpu` needs to identify a render node.

use super::abi::{DrmClient, DrmDeviceInfo, DrmInfo, DrmVersion, decode_cmd};
use super::{Errno, IoctlResult, abi::Abi, with};
use crate::asic::Asic;
use crate::vm::AddressSpace;

/// `AMDGPU_INFO` queries.
const INFO_ACCEL_WORKING: u32 = 0x00;
const INFO_VRAM_USAGE: u32 = 0x10;
const INFO_GTT_USAGE: u32 = 0x11;
const INFO_DEV_INFO: u32 = 0x16;
const INFO_VRAM_GTT: u32 = 0x14;

/// Executes a DRM ioctl on GPU memory `space` of the caller.
pub fn dispatch(cmd: u32, bytes: &mut [u8], pid: i32, asic: &Asic, space: &AddressSpace) -> IoctlResult {
    match decode_cmd(cmd) {
        (0x00, b'd', _) => with(bytes, |args| version(args, space)),
        (0x05, b'd', _) => with(bytes, |args: &mut DrmClient| {
            // Authenticated: libdrm queries this when it cannot derive the node type from the device number.
            *args = DrmClient {
                idx: 0,
                auth: 1,
                pid: pid as u64,
                uid: 0,
                magic: 0,
                iocs: 0,
            };
            Ok(())
        }),
        (0x45, b'd', _) => with(bytes, |args| info(args, asic, space)),
        (_, b'd', _) => Err(Errno::EINVAL),
        _ => Err(Errno::ENOTTY),
    }
}

fn version(args: &mut DrmVersion, space: &AddressSpace) -> IoctlResult {
    let put = |at: u64, room: &mut u64, text: &str| -> IoctlResult {
        let copied = text.len().min(*room as usize);
        *room = text.len() as u64;
        if at != 0 && copied > 0 {
            space.write(at, &text.as_bytes()[..copied]).map_err(|_| Errno::EFAULT)?;
        }
        Ok(())
    };
    (args.major, args.minor, args.patch) = (3, 64, 0);
    put(args.name, &mut args.name_len, "amdgpu")?;
    put(args.date, &mut args.date_len, "0")?;
    put(args.desc, &mut args.desc_len, "AMD GPU")
}

fn info(args: &DrmInfo, asic: &Asic, space: &AddressSpace) -> IoctlResult {
    if args.return_size == 0 || args.return_pointer == 0 {
        return Err(Errno::EINVAL);
    }
    let mut answer = vec![0; DrmDeviceInfo::SIZE];
    match args.query {
        INFO_ACCEL_WORKING => answer[0] = 1,
        INFO_DEV_INFO => device_info(asic).store(&mut answer),
        INFO_VRAM_USAGE | INFO_GTT_USAGE => {}
        INFO_VRAM_GTT => {
            for (at, bytes) in [asic.vram_bytes, asic.vram_bytes, 16 << 30].into_iter().enumerate() {
                answer[at * 8..at * 8 + 8].copy_from_slice(&bytes.to_le_bytes());
            }
        }
        // Registers, firmware versions and similar values read as zero.
        _ => {}
    }
    answer.truncate(args.return_size as usize);
    space.write(args.return_pointer, &answer).map_err(|_| Errno::EFAULT)
}

fn device_info(asic: &Asic) -> DrmDeviceInfo {
    const VRAM_TYPE_HBM: u32 = 6;
    const VRAM_TYPE_GDDR6: u32 = 9;
    DrmDeviceInfo {
        device_id: asic.device_id,
        pci_revision: asic.pci_revision,
        family: asic.drm_family,
        num_shader_engines: asic.array_count / asic.simd_arrays_per_engine,
        num_shader_arrays_per_engine: asic.simd_arrays_per_engine,
        gpu_counter_freq: 100_000,
        max_engine_clock: u64::from(asic.engine_clock_mhz) * 1000,
        max_memory_clock: u64::from(asic.vram_clock_mhz) * 1000,
        cu_active_number: asic.compute_units,
        ids_flags: 0,
        virtual_address_offset: 0x20_0000,
        virtual_address_max: 0x8000_0000_0000,
        virtual_address_alignment: 4096,
        pte_fragment_size: 0x20_0000,
        gart_page_size: 4096,
        vram_type: if asic.vram_width >= 1024 {
            VRAM_TYPE_HBM
        } else {
            VRAM_TYPE_GDDR6
        },
        vram_bit_width: asic.vram_width,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::memory::SharedFile;

    fn call(cmd: u32, bytes: &mut [u8]) -> IoctlResult {
        let space = AddressSpace::new(
            std::process::id() as i32,
            Arc::new(SharedFile::new("test", 1 << 20).unwrap()),
        );
        dispatch(cmd, bytes, 7, Asic::ALL[0], &space)
    }

    #[test]
    fn version_fills_the_callers_strings() {
        let mut name = [0u8; 16];
        let mut bytes = vec![0; 64];
        DrmVersion {
            name_len: 16,
            name: name.as_mut_ptr() as u64,
            ..DrmVersion::default()
        }
        .store(&mut bytes);
        assert_eq!(call(0xc040_6400, &mut bytes), Ok(()));
        let answer = DrmVersion::load(&bytes);
        assert_eq!((answer.major, answer.name_len), (3, 6));
        assert_eq!(&name[..7], b"amdgpu\0");
    }

    #[test]
    fn device_info_fits_the_callers_buffer() {
        let mut out = [0xffu8; 64];
        let mut bytes = vec![0; 32];
        let args = DrmInfo {
            return_pointer: out.as_mut_ptr() as u64,
            return_size: 32,
            query: INFO_DEV_INFO,
        };
        args.store(&mut bytes);
        assert_eq!(call(0x4020_6445, &mut bytes), Ok(()));
        assert_eq!(DrmDeviceInfo::load(&out).gpu_counter_freq, 100_000);
        assert_eq!(out[32], 0xff);
    }

    #[test]
    fn errnos() {
        let mut bytes = vec![0; 64];
        assert_eq!(call(0xc040_64ff, &mut bytes), Err(Errno::EINVAL));
        assert_eq!(call(0x5401, &mut bytes), Err(Errno::ENOTTY));
        DrmInfo {
            return_pointer: 64,
            return_size: 32,
            query: 0,
        }
        .store(&mut bytes);
        assert_eq!(call(0x4020_6445, &mut bytes), Err(Errno::EFAULT));
    }
}
