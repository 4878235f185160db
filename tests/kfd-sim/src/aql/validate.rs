//! Checks for kernel dispatch packets that cannot be launched.

use super::packet::KernelDispatch;
use crate::queue::error::{Exception, QueueError};

/// Bytes of LDS in a compute unit.
const GROUP_SEGMENT_MAX: u32 = 64 * 1024;

/// The most work-items in a work-group.
const WORKGROUP_MAX: u32 = 1024;

/// Checks a dispatch as the processor does before it launches anything.
pub fn validate(dispatch: &KernelDispatch) -> Result<(), QueueError> {
    let dimensions = usize::from(dispatch.dimensions);
    let error = |exception, reason: &str| Err(QueueError::new(exception, format!("{reason}: {dispatch:?}")));
    if dimensions == 0 || dispatch.grid.contains(&0) {
        return error(Exception::DispatchDimInvalid, "dispatch without dimensions or grid");
    }
    let items = dispatch
        .workgroup
        .into_iter()
        .map(u32::from)
        .try_fold(1, u32::checked_mul);
    if items.is_none_or(|items| items == 0 || items > WORKGROUP_MAX) {
        return error(
            Exception::WorkGroupSizeInvalid,
            "dispatch with a work-group of that size",
        );
    }
    if dispatch.group_segment_size > GROUP_SEGMENT_MAX {
        return error(
            Exception::GroupSegmentSizeInvalid,
            "dispatch with that much group memory",
        );
    }
    if dispatch.kernel_object == 0 {
        return error(Exception::DispatchCodeInvalid, "dispatch without a kernel");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch() -> KernelDispatch {
        KernelDispatch {
            dimensions: 1,
            workgroup: [64, 1, 1],
            grid: [128, 1, 1],
            private_segment_size: 0,
            group_segment_size: 0,
            kernel_object: 1,
            kernarg_address: 0,
            completion_signal: 0,
        }
    }

    #[test]
    fn what_cannot_be_launched() {
        let code = |dispatch: KernelDispatch| validate(&dispatch).err().map(|error| error.exception);
        assert_eq!(code(dispatch()), None);
        assert_eq!(
            code(KernelDispatch {
                dimensions: 0,
                ..dispatch()
            }),
            Some(Exception::DispatchDimInvalid)
        );
        assert_eq!(
            code(KernelDispatch {
                grid: [1, 0, 1],
                ..dispatch()
            }),
            Some(Exception::DispatchDimInvalid)
        );
        assert_eq!(
            code(KernelDispatch {
                workgroup: [0, 1, 1],
                ..dispatch()
            }),
            Some(Exception::WorkGroupSizeInvalid)
        );
        let huge = KernelDispatch {
            workgroup: [u16::MAX; 3],
            ..dispatch()
        };
        assert_eq!(code(huge), Some(Exception::WorkGroupSizeInvalid));
        let lds = KernelDispatch {
            group_segment_size: 65537,
            ..dispatch()
        };
        assert_eq!(code(lds), Some(Exception::GroupSegmentSizeInvalid));
        assert_eq!(
            code(KernelDispatch {
                kernel_object: 0,
                ..dispatch()
            }),
            Some(Exception::DispatchCodeInvalid)
        );
    }
}
