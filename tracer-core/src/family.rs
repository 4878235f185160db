//! Probe families. A family has one name in all crates, in traces and in documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The programs for one purpose.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    strum::IntoStaticStr,
    strum::Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Family {
    /// Calls of HIP, HSA and OpenCL functions.
    Api,
    /// Changes of a runtime's list of code objects.
    CodeObject,
    /// Stores to the doorbells of AQL queues.
    Doorbell,
    /// Calls of functions of the kernel driver.
    Driver,
    /// Trace events of the kernel driver itself.
    DriverEvent,
    /// Queues that programs create.
    HsaQueue,
    /// Ioctls on KFD and DRM devices.
    Ioctl,
    /// Files that processes map.
    Mapping,
    /// Forks, execs and exits.
    Process,
    /// Last samples of queues.
    Progress,
    /// Queues in memory that tools put in front of queues.
    Proxy,
    /// Advances of write indexes.
    Reserve,
    /// Jobs on rings of the kernel driver.
    Ring,
    /// Stores to the doorbells of SDMA queues.
    Sdma,
    /// Stops that others send.
    Stops,
    /// A family that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}
