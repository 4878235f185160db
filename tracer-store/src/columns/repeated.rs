//! Values of which long runs are equal.

/// A sequence that is kept as one value as long as all of its values are equal. In a burst of one kernel, most columns are such.
#[derive(Clone, Debug, Default)]
pub(super) struct Repeated<T> {
    /// The value, while `all` is empty.
    only: T,
    len: usize,
    /// All values, once they differ.
    all: Vec<T>,
}

impl<T: Copy + Default + PartialEq> Repeated<T> {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory that the values take.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.all)
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) {
        if self.all.is_empty() {
            if self.len == 0 {
                self.only = value;
            }
            if value == self.only {
                self.len += 1;
                return;
            }
            self.all.resize(self.len, self.only);
        }
        self.all.push(value);
        self.len += 1;
    }

    /// Pushes the last value again, or the default if there is none: for a cell without a value of its own.
    pub(super) fn push_last(&mut self) {
        let last = self.len.checked_sub(1).and_then(|row| self.get(row));
        self.push(last.unwrap_or_default());
    }

    pub(super) fn extend(&mut self, mut values: impl Iterator<Item = T>) {
        while self.all.is_empty() {
            let Some(value) = values.next() else { return };
            self.push(value);
        }
        self.all.extend(values);
        self.len = self.all.len();
    }

    /// Pushes a value this many times.
    pub(super) fn extend_by(&mut self, value: T, times: usize) {
        self.extend(std::iter::repeat_n(value, times));
    }

    pub(super) fn get(&self, row: usize) -> Option<T> {
        if self.all.is_empty() {
            (row < self.len).then_some(self.only)
        } else {
            self.all.get(row).copied()
        }
    }

    /// Returns the value that all have; `None` if there are several, or none.
    pub(super) fn only(&self) -> Option<T> {
        (self.all.is_empty() && self.len > 0).then_some(self.only)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = T> {
        (0..self.len).map(|row| self.all.get(row).copied().unwrap_or(self.only))
    }

    /// Moves the values into the order of these rows.
    pub(super) fn reorder(&mut self, rows: &[usize]) {
        if !self.all.is_empty() {
            self.all = rows.iter().filter_map(|&row| self.all.get(row).copied()).collect();
        }
    }

    /// Removes the values, and keeps the memory.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u8]) -> Repeated<u8> {
        let mut repeated = Repeated::default();
        values.iter().for_each(|&value| repeated.push(value));
        repeated
    }

    #[test]
    fn equal_values_take_no_memory() {
        let mut values = of(&[7; 100]);
        assert_eq!((values.len(), values.bytes(), values.only()), (100, 0, Some(7)));
        values.push(8);
        assert_eq!((values.len(), values.bytes(), values.only()), (101, 101, None));
        values.clear();
        assert_eq!((values.len(), values.only()), (0, None));
        values.push_last();
        values.push_last();
        assert_eq!(values.only(), Some(0));
    }

    proptest! {
        #[test]
        fn a_sequence_has_the_values_that_it_got(
            first in prop::collection::vec(0..3u8, 0..8),
            more in prop::collection::vec(0..3u8, 0..8),
            times in 0..4usize,
        ) {
            let mut values = of(&first);
            values.extend(more.iter().copied());
            values.extend_by(2, times);
            let expected: Vec<u8> = first.into_iter().chain(more).chain(std::iter::repeat_n(2, times)).collect();
            prop_assert_eq!(values.iter().collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(values.len(), expected.len());
            prop_assert_eq!((0..=expected.len()).map(|row| values.get(row)).collect::<Vec<_>>(),
                expected.iter().copied().map(Some).chain([None]).collect::<Vec<_>>());
            let backwards: Vec<usize> = (0..expected.len()).rev().collect();
            values.reorder(&backwards);
            prop_assert!(values.iter().eq(expected.into_iter().rev()));
        }
    }
}
