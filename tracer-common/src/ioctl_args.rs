//! Fields of ioctl arguments that tracer shows by name: their offsets and their formats.
//!
//! Sources: `include/uapi/drm/amdgpu_drm.h` and `include/uapi/linux/kfd_ioctl.h`. The offsets were measured by `offsetof`:
//! AMDGPU_CS, USERQ and GEM_VA against Linux 7.2, the other amdgpu ioctls against 6.1 and 6.12. For the KFD offsets see `kfd`.
//! Structures only ever grew at their ends, so an offset is valid for a caller of any age, and a field beyond the size in the
//! command does not exist. The drivers dispatch on the number alone.

use crate::kfd::{self, IOC_TYPE_DRM as DRM, IOC_TYPE_KFD as KFD, QueueType, ioc_nr, ioc_type};

/// A field of an argument.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Name in the header.
    pub name: &'static str,
    /// Offset, in bytes.
    pub offset: usize,
    /// Size and format.
    pub form: Form,
}

/// The size and format of a field.
#[derive(Clone, Copy, Debug)]
pub enum Form {
    /// 4 bytes: a number.
    U32,
    /// 4 bytes: a signed number.
    I32,
    /// 8 bytes: a number.
    U64,
    /// 4 bytes: bits.
    Bits32,
    /// 8 bytes: an address, or bits.
    Bits64,
    /// 4 bytes: the name of a number, or the number itself if it has no name.
    Word(fn(u32) -> Option<&'static str>),
}

/// The fields of an ioctl's argument. In a union, input and output have the same offsets.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The caller's fields, valid at entry.
    pub input: &'static [Field],
    /// The driver's fields, valid at the exit of a call that succeeded.
    pub output: &'static [Field],
}

macro_rules! fields {
    ($($name:ident @ $offset:literal $form:expr),* $(,)?) => {
        &[$(Field { name: stringify!($name), offset: $offset, form: $form }),*]
    };
}

use Form::{Bits32, Bits64, I32, U32, U64, Word};

/// Returns the layout of a command's argument; `None` if tracer shows none of its fields by name.
#[must_use]
pub const fn layout(cmd: u32) -> Option<Layout> {
    let (input, output): (&[Field], &[Field]) = match (ioc_type(cmd), ioc_nr(cmd)) {
        // union drm_amdgpu_gem_create
        (DRM, 0x40) => (
            fields![bo_size @ 0 U64, alignment @ 8 U64, domains @ 16 Bits64, domain_flags @ 24 Bits64],
            fields![handle @ 0 U32],
        ),
        // union drm_amdgpu_gem_mmap
        (DRM, 0x41) => (fields![handle @ 0 U32], fields![addr_ptr @ 0 Bits64]),
        // union drm_amdgpu_ctx
        (DRM, 0x42) => (
            fields![op @ 0 Word(ctx_op), flags @ 4 Bits32, ctx_id @ 8 U32, priority @ 12 I32],
            // An allocation returns the new context; a query returns other fields.
            fields![],
        ),
        // union drm_amdgpu_bo_list
        (DRM, 0x43) => (
            fields![operation @ 0 Word(bo_list_op), list_handle @ 4 U32, bo_number @ 8 U32],
            fields![list_handle @ 0 U32],
        ),
        // union drm_amdgpu_cs: the chunks themselves are behind pointers, which tracer does not follow.
        (DRM, 0x44) => (
            fields![
                ctx_id @ 0 U32, bo_list_handle @ 4 U32, num_chunks @ 8 U32, flags @ 12 Bits32, chunks @ 16 Bits64,
            ],
            fields![handle @ 0 U64],
        ),
        // struct drm_amdgpu_info
        (DRM, 0x45) => (fields![query @ 12 Bits32, return_size @ 8 U32], &[]),
        // struct drm_amdgpu_gem_va
        (DRM, 0x48) => (
            fields![
                handle @ 0 U32, operation @ 8 U32, flags @ 12 Bits32, va_address @ 16 Bits64, offset_in_bo @ 24 U64,
                map_size @ 32 U64,
            ],
            &[],
        ),
        // union drm_amdgpu_wait_cs
        (DRM, 0x49) => (
            fields![handle @ 0 U64, timeout @ 8 U64, ip_type @ 16 Word(ip_type), ring @ 24 U32, ctx_id @ 28 U32],
            fields![status @ 0 U64],
        ),
        // union drm_amdgpu_userq
        (DRM, 0x56) => (
            fields![
                op @ 0 Word(userq_op), queue_id @ 4 U32, ip_type @ 8 Word(ip_type), doorbell_handle @ 12 U32,
                doorbell_offset @ 16 U32, flags @ 20 Bits32, queue_va @ 24 Bits64, queue_size @ 32 U64,
                rptr_va @ 40 Bits64, wptr_va @ 48 Bits64, mqd @ 56 Bits64, mqd_size @ 64 U64,
            ],
            fields![queue_id @ 0 U32],
        ),
        // struct drm_amdgpu_userq_signal
        (DRM, 0x57) => (fields![queue_id @ 0 U32], &[]),
        // struct drm_amdgpu_userq_wait
        (DRM, 0x58) => (fields![waitq_id @ 0 U32], &[]),
        (KFD, 0x01) => (&[], fields![major_version @ 0 U32, minor_version @ 4 U32]),
        (KFD, kfd::NR_CREATE_QUEUE) => (
            fields![
                ring_base_address @ 0 Bits64, write_pointer_address @ 8 Bits64, read_pointer_address @ 16 Bits64,
                ring_size @ 32 U32, gpu_id @ 36 U32, queue_type @ 40 Word(queue_type), queue_percentage @ 44 U32,
                queue_priority @ 48 U32,
            ],
            fields![queue_id @ 52 U32, doorbell_offset @ 24 Bits64],
        ),
        (KFD, kfd::NR_DESTROY_QUEUE) => (fields![queue_id @ 0 U32], &[]),
        (KFD, kfd::NR_UPDATE_QUEUE) => (
            fields![
                queue_id @ 8 U32, ring_base_address @ 0 Bits64, ring_size @ 12 U32, queue_percentage @ 16 U32,
                queue_priority @ 20 U32,
            ],
            &[],
        ),
        // ACQUIRE_VM
        (KFD, 0x15) => (fields![drm_fd @ 0 U32, gpu_id @ 4 U32], &[]),
        // ALLOC_MEMORY_OF_GPU
        (KFD, 0x16) => (
            fields![va_addr @ 0 Bits64, size @ 8 U64, gpu_id @ 32 U32, flags @ 36 Bits32],
            fields![handle @ 16 Bits64, mmap_offset @ 24 Bits64],
        ),
        // FREE_MEMORY_OF_GPU
        (KFD, 0x17) => (fields![handle @ 0 Bits64], &[]),
        // MAP_MEMORY_TO_GPU, UNMAP_MEMORY_FROM_GPU
        (KFD, 0x18 | 0x19) => (
            fields![handle @ 0 Bits64, n_devices @ 16 U32],
            fields![n_success @ 20 U32],
        ),
        _ => return None,
    };
    Some(Layout { input, output })
}

fn queue_type(number: u32) -> Option<&'static str> {
    match QueueType::from_raw(number) {
        QueueType::Other => None,
        kind => Some(kind.name()),
    }
}

/// `AMDGPU_CTX_OP_*`.
fn ctx_op(number: u32) -> Option<&'static str> {
    let words = [
        "alloc",
        "free",
        "query-state",
        "query-state2",
        "get-stable-pstate",
        "set-stable-pstate",
    ];
    words.get(number.checked_sub(1)? as usize).copied()
}

/// `AMDGPU_BO_LIST_OP_*`.
fn bo_list_op(number: u32) -> Option<&'static str> {
    ["create", "destroy", "update"].get(number as usize).copied()
}

/// `AMDGPU_USERQ_OP_*`.
fn userq_op(number: u32) -> Option<&'static str> {
    ["create", "free"].get(number.checked_sub(1)? as usize).copied()
}

/// `AMDGPU_HW_IP_*`.
fn ip_type(number: u32) -> Option<&'static str> {
    let words = [
        "gfx", "compute", "dma", "uvd", "vce", "uvd-enc", "vcn-dec", "vcn-enc", "vcn-jpeg", "vpe",
    ];
    words.get(number as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares each layout with the size that the headers' own command carries.
    #[test]
    fn every_field_lies_in_its_argument() {
        let commands = [
            // DRM_IOCTL_AMDGPU_*
            0xc020_6440_u32,
            0xc008_6441,
            0xc010_6442,
            0xc018_6443,
            0xc018_6444,
            0x4020_6445,
            0x4028_6448,
            0xc020_6449,
            0xc048_6456,
            0xc030_6457,
            0xc048_6458,
            // AMDKFD_IOC_*, in 6.1
            0x8008_4b01,
            0xc058_4b02,
            0xc008_4b03,
            0x4018_4b07,
            0x4008_4b15,
            0xc028_4b16,
            0x4008_4b17,
            0xc018_4b18,
            0xc018_4b19,
        ];
        for cmd in commands {
            let layout = layout(cmd).unwrap();
            for field in layout.input.iter().chain(layout.output) {
                let bytes = match field.form {
                    Form::U64 | Form::Bits64 => 8,
                    _ => 4,
                };
                assert!(field.offset + bytes <= kfd::ioc_size(cmd), "{cmd:#x} {field:?}");
                assert_eq!(field.offset % bytes, 0, "{cmd:#x} {field:?}");
            }
        }
        let known = |ty: u32| (0..=0xff_u32).filter(|nr| layout(ty << 8 | nr).is_some()).count();
        let all = known(u32::from(kfd::IOC_TYPE_DRM)) + known(u32::from(kfd::IOC_TYPE_KFD));
        assert_eq!(all, commands.len(), "a layout that is not checked here");
    }

    #[test]
    fn words_of_the_headers() {
        assert_eq!([userq_op(1), userq_op(2)], [Some("create"), Some("free")]);
        assert_eq!([userq_op(0), userq_op(3)], [None, None]);
        assert_eq!(
            [ip_type(1), ip_type(2), ip_type(9)],
            [Some("compute"), Some("dma"), Some("vpe")]
        );
        assert_eq!(
            [ctx_op(1), ctx_op(6), ctx_op(7)],
            [Some("alloc"), Some("set-stable-pstate"), None]
        );
        assert_eq!([bo_list_op(0), bo_list_op(3)], [Some("create"), None]);
        assert_eq!([queue_type(2), queue_type(9)], [Some("compute-aql"), None]);
    }
}
