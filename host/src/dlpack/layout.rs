//! Shapes and strides: offsets of elements, and the parts that one copy can transfer.

use crate::error::dlpack::DlpackError;

/// The number of elements of a shape, if it is one that memory can have.
pub(super) fn product(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let length = shape.iter().try_fold(1_usize, |product, &length| product.checked_mul(length))?;
    i64::try_from(length).is_ok().then_some(length)
}

/// The strides of a shape whose elements lie row after row.
pub(super) fn row_major(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1_i64; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] =
            strides[axis].saturating_mul(i64::try_from(shape[axis]).unwrap_or(i64::MAX).max(1));
    }
    strides
}

/// Whether elements lie row after row. The stride of a dimension of one element is never taken.
pub(super) fn is_row_major(shape: &[usize], strides: &[i64]) -> bool {
    let expected = row_major(shape);
    let mut dimensions = shape.iter().zip(strides.iter().zip(&expected));
    shape.contains(&0) || dimensions.all(|(&length, (found, expected))| length == 1 || found == expected)
}

/// Whether a layout stays within `length` elements.
pub(super) fn check_span(
    shape: &[usize],
    strides: &[i64],
    offset: usize,
    length: usize,
) -> Result<(), DlpackError> {
    if shape.len() != strides.len() {
        return Err(DlpackError::Rank { rank: shape.len(), strides: strides.len() });
    }
    if product(shape).is_none() || shape.iter().any(|&length| i64::try_from(length).is_err()) {
        return Err(DlpackError::Shape { shape: shape.to_vec(), length });
    }
    if shape.contains(&0) {
        return Ok(());
    }
    let steps = shape.iter().zip(strides).map(|(&length, &stride)| (length as i128 - 1) * i128::from(stride));
    // Neither sum overflows for any rank that fits into memory: each step is less than 2^126, and a shape whose product
    // fits into 63 bits has at most 63 lengths over 1.
    let (mut first, mut last) = (offset as i128, offset as i128);
    for step in steps {
        first = first.saturating_add(step.min(0));
        last = last.saturating_add(step.max(0));
    }
    if first >= 0 && last < length as i128 {
        return Ok(());
    }
    let [first, last] = [first, last].map(|place| place.clamp(i64::MIN.into(), i64::MAX.into()) as i64);
    let (shape, strides) = (shape.to_vec(), strides.to_vec());
    Err(DlpackError::Layout { shape, strides, offset, first, last, length })
}

/// Elements that are copied at once: `height` rows of `width`, all in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) source_pitch: usize,
    pub(super) target_pitch: usize,
}

/// A dimension: its length, and its strides in the source and in the target.
type Dimension = (usize, i64, i64);

/// How to copy elements of any layout row after row.
#[derive(Debug)]
pub(super) struct Gather {
    pub(super) block: Block,
    /// The dimensions over which the block is repeated.
    outer: Vec<Dimension>,
}

impl Gather {
    /// Of a shape without 0. Pitches are at most `most`, in elements.
    pub(super) fn new(shape: &[usize], strides: &[i64], most: i64) -> Self {
        let mut outer = merged(shape, strides);
        let width = match outer.last() {
            Some(&(length, 1, 1)) => {
                outer.pop();
                length
            }
            _ => 1,
        };
        let mut block = Block { width, height: 1, source_pitch: width, target_pitch: width };
        let fits = |&(_, source, target): &Dimension| {
            let pitches = width as i64..=most;
            pitches.contains(&source) && pitches.contains(&target)
        };
        let rows = outer.iter().enumerate().filter(|(_, dimension)| fits(dimension));
        if let Some((axis, _)) = rows.max_by_key(|(_, (length, ..))| *length) {
            let (height, source, target) = outer.remove(axis);
            block = Block { height, source_pitch: source as usize, target_pitch: target as usize, ..block };
        }
        Gather { block, outer }
    }

    /// Calls `copy` with where each block starts in the source and in the target, in elements.
    pub(super) fn for_each<E>(&self, mut copy: impl FnMut(i64, i64) -> Result<(), E>) -> Result<(), E> {
        let mut index = vec![0; self.outer.len()];
        let (mut source, mut target) = (0_i64, 0_i64);
        loop {
            copy(source, target)?;
            let mut axis = self.outer.len();
            loop {
                let Some(next) = axis.checked_sub(1) else { return Ok(()) };
                axis = next;
                let (length, source_stride, target_stride) = self.outer[axis];
                index[axis] += 1;
                source += source_stride;
                target += target_stride;
                if index[axis] < length {
                    break;
                }
                source -= source_stride * length as i64;
                target -= target_stride * length as i64;
                index[axis] = 0;
            }
        }
    }
}

/// The dimensions of more than one element, those together that follow each other without a gap.
fn merged(shape: &[usize], strides: &[i64]) -> Vec<Dimension> {
    let mut merged: Vec<Dimension> = Vec::new();
    for ((&length, &source), target) in shape.iter().zip(strides).zip(row_major(shape)) {
        match merged.last_mut() {
            _ if length == 1 => {}
            Some((before, stride, outer)) if *stride == source.wrapping_mul(length as i64) => {
                (*before, *stride, *outer) = (*before * length, source, target);
            }
            _ => merged.push((length, source, target)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the elements of `source` are in the order of a shape.
    fn gathered(shape: &[usize], strides: &[i64], start: i64, most: i64) -> (Vec<i64>, usize) {
        let gather = Gather::new(shape, strides, most);
        let (mut target, mut calls) = (vec![-1; product(shape).unwrap()], 0);
        let copied: Result<(), ()> = gather.for_each(|from, to| {
            calls += 1;
            let Block { width, height, source_pitch, target_pitch } = gather.block;
            for row in 0..height {
                for column in 0..width {
                    let place = to as usize + row * target_pitch + column;
                    assert_eq!(target[place], -1, "written once");
                    target[place] = start + from + (row * source_pitch + column) as i64;
                }
            }
            Ok(())
        });
        copied.unwrap();
        (target, calls)
    }

    /// The same, element by element.
    fn expected(shape: &[usize], strides: &[i64], start: i64) -> Vec<i64> {
        let mut places = vec![start];
        for (&length, &stride) in shape.iter().zip(strides) {
            places = places
                .iter()
                .flat_map(|place| (0..length as i64).map(move |index| place + index * stride))
                .collect();
        }
        places
    }

    #[test]
    fn elements_of_any_layout_are_gathered_in_as_few_copies_as_there_are_planes() {
        let most = i64::MAX;
        for (shape, strides, start, most, calls) in [
            (&[2, 3, 4][..], &[12, 4, 1][..], 0, most, 1), // row after row
            (&[3, 4], &[1, 3], 0, most, 3), // transposed: a row for each of the shorter dimension
            (&[4, 3], &[1, 4], 0, most, 3),
            (&[3, 2], &[8, 1], 0, most, 1),         // rows with gaps
            (&[2, 3, 4], &[24, 8, 1], 0, most, 1),  // the same in two dimensions, which follow each other
            (&[2, 3, 4], &[100, 8, 1], 0, most, 2), // which do not
            (&[5], &[3], 0, most, 1),               // every third element
            (&[5], &[-1], 4, most, 5),              // backwards
            (&[3, 4], &[0, 1], 0, most, 3),         // repeated
            (&[1, 5, 1], &[77, 1, -9], 0, most, 1), // strides that are never taken
            (&[], &[], 3, most, 1),                 // a scalar
            (&[3, 2], &[8, 1], 0, 7, 3),            // a pitch that is too long
        ] {
            let (found, made) = gathered(shape, strides, start, most);
            assert_eq!(found, expected(shape, strides, start), "{shape:?} {strides:?}");
            assert_eq!(made, calls, "{shape:?} {strides:?}");
        }
    }

    #[test]
    fn a_layout_stays_within_the_elements_that_there_are() {
        assert_eq!(check_span(&[2, 3], &[3, 1], 0, 6), Ok(()));
        assert_eq!(check_span(&[6], &[-1], 5, 6), Ok(()));
        assert_eq!(check_span(&[100, 0], &[100, 100], 9, 6), Ok(()));
        assert_eq!(check_span(&[], &[], 5, 6), Ok(()));
        let reach = |shape: &[usize], strides: &[i64], offset| match check_span(shape, strides, offset, 6) {
            Err(DlpackError::Layout { first, last, length: 6, .. }) => (first, last),
            other => panic!("{other:?}"),
        };
        assert_eq!(reach(&[2, 3], &[3, 1], 1), (1, 6));
        assert_eq!(reach(&[6], &[-1], 4), (-1, 4));
        assert_eq!(reach(&[], &[], 6), (6, 6));
        assert_eq!(reach(&[i64::MAX as usize], &[i64::MAX], 0), (0, i64::MAX));
        assert_eq!(check_span(&[2], &[1, 1], 0, 6), Err(DlpackError::Rank { rank: 1, strides: 2 }));
        let huge = check_span(&[usize::MAX, 0], &[1, 1], 0, 6);
        assert!(matches!(huge, Err(DlpackError::Shape { length: 6, .. })), "{huge:?}");
    }
}
