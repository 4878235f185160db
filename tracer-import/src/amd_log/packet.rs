//! A packet, as the log describes it.

use std::str::FromStr;

use tracer_common::aql::packet_type;
use tracer_core::tables::PacketKind;

use crate::fields::hexadecimal;

/// A packet, as the log describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// `HWq=`.
    pub hardware_queue: u64,
    /// `SWq=`: the `hsa_queue_t`; `None` if the line does not have it.
    pub handle: Option<u64>,
    /// `wptr=`: the packet's index; `None` if the line does not have it.
    pub index: Option<u64>,
    /// `rptr=`: the read index then; `None` if the line does not have it.
    pub read_index: Option<u64>,
    /// The header, 16 bits.
    pub header: u16,
    /// Handle of the completion signal, or 0.
    pub completion_signal: u64,
    /// What the packet is.
    pub kind: Kind,
}

/// What a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel dispatch.
    Dispatch(Dispatch),
    /// A barrier, and the handles of the signals that it waits for; `None` if the line does not have them.
    Barrier(PacketKind, Option<[u64; 5]>),
}

/// A kernel dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dispatch {
    /// Dimensions of the grid.
    pub dimensions: u16,
    /// Work items.
    pub grid: [u32; 3],
    /// Work items of a workgroup.
    pub workgroup: [u16; 3],
    /// Bytes of private memory of a work item.
    pub private_segment: u32,
    /// Bytes of group memory of a workgroup.
    pub group_segment: u32,
    /// The kernel descriptor.
    pub kernel_object: u64,
    /// The arguments.
    pub kernarg: u64,
    /// Correlation id, or 0.
    pub correlation: u64,
}

impl Packet {
    /// Parses a message; `None` if it is not about a packet.
    pub fn parse(message: &str) -> Option<Result<Self, String>> {
        if !message.starts_with("HWq=") && !message.starts_with("SWq=") {
            return None;
        }
        let parts = message.split_once(" Header = ");
        let parts = parts.and_then(|(before, rest)| Some((before.rsplit_once(", ")?, rest)));
        Some(match parts {
            Some(((queue, kind), rest)) => Self::read(queue, kind, rest),
            None => Err("a packet without header".to_owned()),
        })
    }

    fn read(queue: &str, kind: &str, rest: &str) -> Result<Self, String> {
        let lacks = |what: &'static str| move || format!("a packet without {what}");
        let header = rest.split([' ', ',']).next().and_then(hexadecimal);
        let header = header.and_then(|header| u16::try_from(header).ok());
        let header = header.ok_or_else(lacks("header"))?;
        let kind = match (kind, header as u8) {
            ("Dispatch", _) => Kind::Dispatch(Dispatch::read(rest)?),
            // 5.x breaks the line before the signals.
            ("BarrierValue", _) => {
                let signal = address(rest, ", signal=");
                Kind::Barrier(
                    PacketKind::VendorBarrierValue,
                    signal.map(|signal| [signal, 0, 0, 0, 0]),
                )
            }
            ("BarrierAND" | "Barrier", packet_type::BARRIER_AND) => {
                Kind::Barrier(PacketKind::BarrierAnd, Some(signals(rest)?))
            }
            ("BarrierOR" | "Barrier", packet_type::BARRIER_OR) => {
                Kind::Barrier(PacketKind::BarrierOr, Some(signals(rest)?))
            }
            (kind, _) => return Err(format!("a packet of an unknown kind, {kind}")),
        };
        Ok(Self {
            hardware_queue: address(queue, "HWq=").ok_or_else(lacks("HWq"))?,
            handle: address(queue, "SWq="),
            index: number(rest, "wptr="),
            read_index: number(rest, "rptr="),
            header,
            completion_signal: match address(rest, "completion_signal=") {
                None if matches!(kind, Kind::Barrier(_, None)) => 0,
                signal => signal.ok_or_else(lacks("completion_signal"))?,
            },
            kind,
        })
    }

    /// Returns whether it runs a kernel.
    pub fn is_dispatch(&self) -> bool {
        matches!(self.kind, Kind::Dispatch(_))
    }
}

impl Dispatch {
    fn read(text: &str) -> Result<Self, String> {
        let read = || {
            Some(Self {
                dimensions: number::<u16>(text, "setup=")? & 3,
                grid: three(text, "grid=[")?,
                workgroup: three(text, "workgroup=[")?,
                private_segment: number(text, "private_seg_size=")?,
                group_segment: number(text, "group_seg_size=")?,
                kernel_object: address(text, "kernel_obj=")?,
                kernarg: address(text, "kernarg_address=")?,
                correlation: number(text, "correlation_id=").unwrap_or_default(),
            })
        };
        read().ok_or_else(|| "a dispatch that lacks fields".to_owned())
    }
}

/// Returns what follows a key, up to the end of its value.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, value) = text.split_once(key)?;
    value.split([',', ' ', ']']).next()
}

fn number<T: FromStr>(text: &str, key: &str) -> Option<T> {
    value(text, key)?.parse().ok()
}

fn address(text: &str, key: &str) -> Option<u64> {
    hexadecimal(value(text, key)?)
}

/// Returns the three numbers of `grid=[256, 1, 1]`.
fn three<T: FromStr + Copy>(text: &str, key: &str) -> Option<[T; 3]> {
    let (_, list) = text.split_once(key)?;
    let (list, _) = list.split_once(']')?;
    let numbers: Vec<T> = list.split(", ").map(str::parse).collect::<Result<_, _>>().ok()?;
    numbers.try_into().ok()
}

/// Returns the signals of `dep_signal=[0x0, 0x0, 0x0, 0x0, 0x0]`. The HSA runtime writes no commas.
fn signals(text: &str) -> Result<[u64; 5], String> {
    let read = || {
        let (_, list) = text.split_once("dep_signal=[")?;
        let (list, _) = list.split_once(']')?;
        let words = list.split([',', ' ']).filter(|word| !word.is_empty());
        words.map(hexadecimal).collect::<Option<Vec<_>>>()?.try_into().ok()
    };
    read().ok_or_else(|| "a barrier without its signals".to_owned())
}

/// Returns the value of a key that is followed by a pointer, in the lines about queues.
pub fn pointer(text: &str, key: &str) -> Option<u64> {
    address(text, key)
}

/// Returns the value of a key that is followed by a decimal number.
pub fn decimal(text: &str, key: &str) -> Option<u64> {
    number(text, key)
}
