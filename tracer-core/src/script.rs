//! What scripts write that capture without tracer, and `tracer import` reads: that of `tracer record --script`, and the recipe for
//! bpftrace (docs/recipes/doorbells.bt).
//!
//! They write a line for each event, as ftrace does. The events have these names, without their group.

/// The version of the names and fields. The import refuses others.
pub const FORMAT: u32 = 1;

/// The start of the first line. [`FORMAT`], a colon and the capabilities follow.
pub const HEADER: &str = "# tracer capture ";

/// The text of the last event. Without it, the end of the output is missing.
pub const END: &str = "tracer_script_end";

/// The start of the name of the group of a script's events, and of the synthetic events between them.
pub const GROUP: &str = "tracer_script_";

/// The start of the names of doorbells: `value`, `queue`, `base`, `size`, `write`, `read`.
pub const DOORBELL: &str = "tracer_doorbell_";

/// Slots up to the one of the doorbell's value: `queue`, `value`, `pN_W`, word `W` of the slot `N` before the last,
/// and the queue's `write` and `read` after that.
pub const PACKETS: &str = "tracer_packets";

/// The same, one ring further: slots from the ring's start on are before its last one.
pub const WRAPPED: &str = "tracer_wrapped";

/// The entry of an ioctl: `fd`, `cmd`, `arg`, and `wN`, word `N` of its argument.
pub const IOCTL_ENTER: &str = "tracer_ioctl_enter";

/// Its exit: `cmd`, `arg`, `ret`, and the words.
pub const IOCTL_EXIT: &str = "tracer_ioctl_exit";

/// Packets that are read at a doorbell.
pub const PACKETS_PER_DOORBELL: usize = 8;
