//! Calls of one thread, each inside another or after it.
//!
//! Rows of calls come in the order of their entries, with their ends. Formats need what is open at each moment, also of calls whose
//! end is unknown: a function that an exception left, or a thread that ended in a call.

/// A call of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice<T> {
    /// Entry, ns.
    pub begin: u64,
    /// Return, ns; `None` if it was not seen.
    pub end: Option<u64>,
    /// Number and parent of an API call; `None` for other calls, which are inside of whatever is open.
    pub call: Option<Call>,
    /// What the format needs of it.
    pub payload: T,
}

/// The place of an API call among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number.
    pub number: u64,
    /// The number of the call around it.
    pub parent: Option<u64>,
}

/// A change of what is open.
#[derive(Debug, PartialEq, Eq)]
pub enum Step<'a, T> {
    /// A call begins. Its end, if it is known: never after the end of a call around it.
    Begin(&'a Slice<T>, Option<u64>),
    /// A call ends at this time. If its own end is unknown, that is the latest time at which it can have been open.
    End(Slice<T>, u64),
}

/// The open calls of a thread.
#[derive(Debug)]
pub struct Nest<T> {
    /// Calls that begin at the same time, whose order is not known yet.
    pending: Vec<Slice<T>>,
    open: Vec<Open<T>>,
}

#[derive(Debug)]
struct Open<T> {
    slice: Slice<T>,
    /// The end of the call or of a call around it, whichever is first; the maximum if none is known.
    end: u64,
}

impl<T> Default for Nest<T> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
            open: Vec::new(),
        }
    }
}

impl<T> Nest<T> {
    /// Takes a call. Calls come in the order of their entries.
    ///
    /// # Errors
    /// Those of `step`.
    pub fn push<E>(&mut self, slice: Slice<T>, step: &mut impl FnMut(Step<'_, T>) -> Result<(), E>) -> Result<(), E> {
        if self.pending.first().is_some_and(|first| first.begin != slice.begin) {
            self.settle(step)?;
        }
        self.pending.push(slice);
        Ok(())
    }

    /// Ends what is open. A call whose end is unknown ends at `at`, or with the call around it.
    ///
    /// # Errors
    /// Those of `step`.
    pub fn finish<E>(&mut self, at: u64, step: &mut impl FnMut(Step<'_, T>) -> Result<(), E>) -> Result<(), E> {
        self.settle(step)?;
        while let Some(open) = self.open.pop() {
            let end = open.end.min(open.slice.end.unwrap_or(at).max(open.slice.begin));
            step(Step::End(open.slice, end))?;
        }
        Ok(())
    }

    /// Opens the calls that begin at the same time: the longest first, because the others are inside of it.
    fn settle<E>(&mut self, step: &mut impl FnMut(Step<'_, T>) -> Result<(), E>) -> Result<(), E> {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_by_key(|slice| {
            (
                std::cmp::Reverse(slice.end.unwrap_or(u64::MAX)),
                slice.call.map_or(u64::MAX, |call| call.number),
            )
        });
        for slice in pending {
            self.enter(slice, step)?;
        }
        Ok(())
    }

    fn enter<E>(&mut self, slice: Slice<T>, step: &mut impl FnMut(Step<'_, T>) -> Result<(), E>) -> Result<(), E> {
        let kept = match slice.call {
            None => 0,
            // What is above the parent has ended, also without a return. Without a parent, no call is open.
            Some(Call { parent, .. }) => {
                let number = |open: &Open<T>| open.slice.call.map(|call| call.number);
                let around = self
                    .open
                    .iter()
                    .rposition(|open| parent.is_some() && number(open) == parent);
                let calls = self.open.iter().position(|open| open.slice.call.is_some());
                match (around, calls) {
                    (Some(at), _) => self.leave(at + 1, slice.begin, step)?,
                    (None, Some(at)) => self.leave(at, slice.begin, step)?,
                    (None, None) => {}
                }
                around.map_or(0, |at| at + 1)
            }
        };
        while self.open.len() > kept && self.open.last().is_some_and(|open| open.end <= slice.begin) {
            self.leave(self.open.len() - 1, slice.begin, step)?;
        }
        let around = self.open.last().map_or(u64::MAX, |open| open.end);
        let end = slice.end.map_or(around, |end| end.min(around));
        step(Step::Begin(&slice, slice.end.map(|_| end.max(slice.begin))))?;
        self.open.push(Open { slice, end });
        Ok(())
    }

    /// Ends what is open from a depth on, at its end or at `now`.
    fn leave<E>(
        &mut self,
        depth: usize,
        now: u64,
        step: &mut impl FnMut(Step<'_, T>) -> Result<(), E>,
    ) -> Result<(), E> {
        while self.open.len() > depth
            && let Some(open) = self.open.pop()
        {
            let end = open.end.min(now).max(open.slice.begin);
            step(Step::End(open.slice, end))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
