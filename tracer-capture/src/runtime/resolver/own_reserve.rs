//! `AqlQueue::AddWriteIndexAcqRel`. `BlitKernel` and others call it, without an exported function, to reserve packets on the
//! runtime's own queues.

use super::OwnReserveSite;
use super::aql_queue::AqlQueue;
use super::code::Body;
use super::code::MAX_LENGTH;
use super::elf::Image;
use super::flow::effects;
use super::functions::Functions;
use super::pattern::add_write_index;
use super::site::{Argument, choose, locate};
use super::step::{Confidence, ResolverStep};

/// Returns the site in this function; `None` if the function is not of the known form.
pub(super) fn site(
    image: &Image<'_>,
    functions: &Functions,
    queue: &AqlQueue,
    step: ResolverStep,
    confidence: Confidence,
) -> Option<OwnReserveSite> {
    let code = functions.code(image, queue.add_write_index?)?;
    if code.bytes.len() > MAX_LENGTH {
        return None;
    }
    let body = Body::decode(code.vaddr, code.bytes);
    let effects = effects(&body);
    let queue_offset = add_write_index(&effects).filter(|_| body.is_complete())?;
    let adds: Vec<u64> = effects.locked_adds.iter().map(|add| add.vaddr).collect();
    let site = choose(&body, &[Argument::Rdi, Argument::Rsi], &adds)?;
    Some(OwnReserveSite {
        probe: locate(image, code.vaddr, site)?,
        queue_offset: i16::try_from(queue_offset).ok()?,
        step,
        confidence,
    })
}
