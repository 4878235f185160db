//! Numbers of the fields that an export uses, from the `.proto` files below protos/perfetto of Perfetto (github.com/google/perfetto).
//! A module has the name of its message.

/// trace/trace.proto
pub mod trace {
    /// `TracePacket packet`
    pub const PACKET: u32 = 1;
}

/// trace/trace_packet.proto
pub mod trace_packet {
    /// `ClockSnapshot`
    pub const CLOCK_SNAPSHOT: u32 = 6;
    /// In the clock of the sequence.
    pub const TIMESTAMP: u32 = 8;
    /// Not 0.
    pub const TRUSTED_PACKET_SEQUENCE_ID: u32 = 10;
    /// `TrackEvent`
    pub const TRACK_EVENT: u32 = 11;
    /// `InternedData`
    pub const INTERNED_DATA: u32 = 12;
    /// `SequenceFlags`
    pub const SEQUENCE_FLAGS: u32 = 13;
    /// `GpuRenderStageEvent`
    pub const GPU_RENDER_STAGE_EVENT: u32 = 53;
    /// `TracePacketDefaults`
    pub const TRACE_PACKET_DEFAULTS: u32 = 59;
    /// `TrackDescriptor`
    pub const TRACK_DESCRIPTOR: u32 = 60;
    /// Nothing of the sequence came before, and nothing is missing.
    pub const FIRST_PACKET_ON_SEQUENCE: u32 = 87;
    /// `TraceAttributes`, common/trace_attributes.proto
    pub const TRACE_ATTRIBUTES: u32 = 126;
    /// `SEQ_INCREMENTAL_STATE_CLEARED`
    pub const CLEARED: u64 = 1;
    /// `SEQ_NEEDS_INCREMENTAL_STATE`
    pub const NEEDED: u64 = 2;
}

/// trace/trace_packet_defaults.proto
pub mod defaults {
    /// The clock of timestamps.
    pub const TIMESTAMP_CLOCK_ID: u32 = 58;
}

/// trace/clock_snapshot.proto, common/builtin_clock.proto
pub mod clock_snapshot {
    /// `Clock`
    pub const CLOCKS: u32 = 1;
    /// `BuiltinClock`
    pub const PRIMARY_TRACE_CLOCK: u32 = 2;
    /// Of `Clock`: its number.
    pub const CLOCK_ID: u32 = 1;
    /// Of `Clock`: its time, ns.
    pub const CLOCK_TIMESTAMP: u32 = 2;
    /// CLOCK_REALTIME
    pub const REALTIME: u64 = 1;
    /// CLOCK_MONOTONIC
    pub const MONOTONIC: u64 = 3;
    /// CLOCK_BOOTTIME
    pub const BOOTTIME: u64 = 6;
}

/// common/trace_attributes.proto
pub mod trace_attributes {
    /// `Attribute`
    pub const ATTRIBUTE: u32 = 1;
    /// Its name.
    pub const KEY: u32 = 1;
    /// Its value.
    pub const STRING_VALUE: u32 = 3;
}

/// trace/track_event/track_descriptor.proto
pub mod track_descriptor {
    /// Unique in the trace.
    pub const UUID: u32 = 1;
    /// The name that people see.
    pub const NAME: u32 = 2;
    /// `ProcessDescriptor`
    pub const PROCESS: u32 = 3;
    /// `ThreadDescriptor`
    pub const THREAD: u32 = 4;
    /// The track around it.
    pub const PARENT_UUID: u32 = 5;
    /// `CounterDescriptor`
    pub const COUNTER: u32 = 8;
}

/// trace/track_event/process_descriptor.proto
pub mod process_descriptor {
    /// `int32`
    pub const PID: u32 = 1;
    /// Its name.
    pub const PROCESS_NAME: u32 = 6;
}

/// trace/track_event/thread_descriptor.proto
pub mod thread_descriptor {
    /// `int32`
    pub const PID: u32 = 1;
    /// `int32`
    pub const TID: u32 = 2;
    /// Its name.
    pub const THREAD_NAME: u32 = 5;
}

/// trace/track_event/counter_descriptor.proto
pub mod counter_descriptor {
    /// `Unit`
    pub const UNIT: u32 = 3;
    /// `UNIT_COUNT`
    pub const UNIT_COUNT: u64 = 2;
}

/// trace/track_event/track_event.proto
pub mod track_event {
    /// Interned categories.
    pub const CATEGORY_IIDS: u32 = 3;
    /// `DebugAnnotation`
    pub const DEBUG_ANNOTATIONS: u32 = 4;
    /// `Type`
    pub const TYPE: u32 = 9;
    /// Interned name.
    pub const NAME_IID: u32 = 10;
    /// The track.
    pub const TRACK_UUID: u32 = 11;
    /// `int64`
    pub const COUNTER_VALUE: u32 = 30;
    /// `fixed64`
    pub const FLOW_IDS: u32 = 47;
    /// `GpuCorrelation` of trace/gpu/gpu_track_event.proto, an extension of `TrackEvent`
    pub const GPU_CORRELATION: u32 = 3000;
    /// Of a `GpuCorrelation`: the `EVENT_ID` of what the event submitted to a GPU
    pub const RENDER_STAGE_SUBMISSION_EVENT_IDS: u32 = 1;
    /// `TYPE_SLICE_BEGIN`
    pub const SLICE_BEGIN: u64 = 1;
    /// `TYPE_SLICE_END`
    pub const SLICE_END: u64 = 2;
    /// `TYPE_INSTANT`
    pub const INSTANT: u64 = 3;
    /// `TYPE_COUNTER`
    pub const COUNTER: u64 = 4;
}

/// trace/track_event/debug_annotation.proto
pub mod debug_annotation {
    /// Interned name.
    pub const NAME_IID: u32 = 1;
    /// `bool`
    pub const BOOL_VALUE: u32 = 2;
    /// `uint64`
    pub const UINT_VALUE: u32 = 3;
    /// `int64`
    pub const INT_VALUE: u32 = 4;
    /// `string`
    pub const STRING_VALUE: u32 = 6;
    /// `uint64`, which viewers write as an address.
    pub const POINTER_VALUE: u32 = 7;
}

/// trace/interned_data/interned_data.proto
pub mod interned_data {
    /// `EventCategory`
    pub const EVENT_CATEGORIES: u32 = 1;
    /// `EventName`
    pub const EVENT_NAMES: u32 = 2;
    /// `DebugAnnotationName`
    pub const DEBUG_ANNOTATION_NAMES: u32 = 3;
    /// `InternedGraphicsContext`
    pub const GRAPHICS_CONTEXTS: u32 = 23;
    /// `InternedGpuRenderStageSpecification`
    pub const GPU_SPECIFICATIONS: u32 = 24;
    /// Of every entry: its number, from 1.
    pub const IID: u32 = 1;
    /// Of an entry with a name: the name.
    pub const NAME: u32 = 2;
}

/// trace/gpu/gpu_render_stage_event.proto
pub mod gpu {
    /// Unique in the trace.
    pub const EVENT_ID: u32 = 1;
    /// ns
    pub const DURATION: u32 = 2;
    /// An `InternedGraphicsContext`
    pub const CONTEXT: u32 = 5;
    /// `ExtraData`
    pub const EXTRA_DATA: u32 = 6;
    /// Position of the GPU in the machine.
    pub const GPU_ID: u32 = 11;
    /// An `InternedGpuRenderStageSpecification`
    pub const HW_QUEUE_IID: u32 = 13;
    /// An `InternedGpuRenderStageSpecification`
    pub const STAGE_IID: u32 = 14;
    /// `ComputeKernelLaunch`
    pub const LAUNCH: u32 = 21;
    /// Of `ExtraData`: its name.
    pub const EXTRA_NAME: u32 = 1;
    /// Of `ExtraData`: its value.
    pub const EXTRA_VALUE: u32 = 2;
    /// Of `ComputeKernelLaunch`: workgroups in each dimension.
    pub const GRID_SIZE: u32 = 1;
    /// Of `ComputeKernelLaunch`: work items of a workgroup in each dimension.
    pub const WORKGROUP_SIZE: u32 = 2;
    /// Of `InternedGraphicsContext`: the process, `int32`.
    pub const CONTEXT_PID: u32 = 2;
    /// Of `InternedGpuRenderStageSpecification`: `RenderStageCategory`.
    pub const CATEGORY: u32 = 4;
    /// `COMPUTE`
    pub const COMPUTE: u64 = 2;
}
