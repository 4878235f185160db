//! What the script of `tracer record --script` writes, and `tracer import` reads.
//!
//! The script lets ftrace write a line for each event. The names of the events are these, so that every tool that prints events of
//! the kernel keeps them; their groups are not in the text.

/// The version of the names and fields. The import refuses others.
pub const FORMAT: u32 = 1;

/// The start of the first line. [`FORMAT`], a colon and the capabilities follow.
pub const HEADER: &str = "# tracer record --script ";

/// The text of the last event. Without it, the end of the output is missing.
pub const END: &str = "tracer_script_end";

/// The start of the names of doorbells: `value`, `queue`, `base`, `size`, `write`, `read`.
pub const DOORBELL: &str = "tracer_doorbell_";

/// The slots that end with the one of the doorbell's value: `queue`, `value`, and `pN_W`, word `W` of the slot `N` before the last.
pub const PACKETS: &str = "tracer_packets";

/// The same, one ring further: slots from the ring's start on are before its last one.
pub const WRAPPED: &str = "tracer_wrapped";

/// The entry of an ioctl: `fd`, `cmd`, `arg`, and `wN`, word `N` of its argument.
pub const IOCTL_ENTER: &str = "tracer_ioctl_enter";

/// Its exit: `cmd`, `arg`, `ret`, and the words.
pub const IOCTL_EXIT: &str = "tracer_ioctl_exit";

/// Packets that are read at a doorbell.
pub const PACKETS_PER_DOORBELL: usize = 8;
