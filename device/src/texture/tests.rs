//! Texture values on the CPU device, worked out by hand from the rules of the CUDA programming guide.

use super::*;

const CLAMP: [AddressMode; 3] = [AddressMode::Clamp; 3];

fn reading<T: TextureElement>(filter: FilterMode, addresses: [AddressMode; 3]) -> Reading {
    Reading {
        format: T::FORMAT,
        channels: T::CHANNELS,
        filter,
        addresses,
        has_normalized_coordinates: false,
        is_normalized: false,
    }
}

fn texture<T: TextureElement + ReadAs<V>, V: Texel, const R: usize>(
    elements: &[T],
    extent: [u32; R],
    reading: Reading,
) -> Texture<'_, V, R> {
    assert_eq!(elements.len(), extent.iter().product::<u32>() as usize);
    let reading = Reading { is_normalized: T::IS_NORMALIZED, ..reading };
    // SAFETY: the slice is as many elements of this format, lent as long as the texture.
    unsafe { Texture::from_raw_parts(elements.as_ptr().cast(), reading.to_word(), extent) }
}

#[test]
fn a_point_is_the_element_around_it() {
    let x: Texture<f32> = texture(&[1.0_f32, 2.0, 3.0], [3], reading::<f32>(FilterMode::Point, CLAMP));
    let places = [-5.0, -0.01, 0.0, 0.99, 1.0, 2.5, 2.99, 3.0, 1e30, f32::INFINITY];
    assert_eq!(places.map(|place| x.sample(place)), [1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
    assert!([1.0, 2.0, 3.0].contains(&x.sample(f32::NAN)), "any value, but one");
}

#[test]
fn between_elements_are_their_weighted_means() {
    let x: Texture<f32> = texture(&[0.0_f32, 256.0, 512.0], [3], reading::<f32>(FilterMode::Linear, CLAMP));
    let places = [0.0, 0.5, 0.75, 1.0, 1.5, 2.25, 2.5, 3.0, 9.0];
    assert_eq!(
        places.map(|place| x.sample(place)),
        [0.0, 0.0, 64.0, 128.0, 256.0, 448.0, 512.0, 512.0, 512.0]
    );
    // Weights have 8 bits of fraction.
    assert_eq!([0.501, 0.503, 0.505].map(|place| x.sample(place)), [0.0, 1.0, 1.0]);
}

#[test]
fn the_border_is_zero_and_counts_in_means() {
    let border = [AddressMode::Border; 3];
    let x: Texture<f32> = texture(&[8.0_f32, 16.0], [2], reading::<f32>(FilterMode::Linear, border));
    assert_eq!([-1.0, 0.0, 0.25, 2.0, 3.0].map(|place| x.sample(place)), [0.0, 4.0, 6.0, 8.0, 0.0]);
    let x: Texture<u16> = texture(&[8_u16, 16], [2], reading::<u16>(FilterMode::Point, border));
    assert_eq!([-0.5, 0.5, 1.5, 2.5].map(|place| x.sample(place)), [0, 8, 16, 0]);
    // A single row has a border above and below, of rank 2.
    let row: Texture<f32, 2> = texture(&[8.0_f32, 16.0], [2, 1], reading::<f32>(FilterMode::Linear, border));
    assert_eq!([row.sample(0.5, 0.5), row.sample(0.5, 0.0), row.sample(0.5, 1.75)], [8.0, 4.0, 0.0]);
    assert_eq!([row.sample(0.5, 1.0), row.sample(0.5, 1.25)], [4.0, 2.0]);
}

#[test]
fn address_modes_repeat_on_both_sides() {
    let repeated = |address, filter| {
        let reading = Reading { has_normalized_coordinates: true, ..reading::<f32>(filter, [address; 3]) };
        texture::<f32, f32, 1>(&[0.0, 4.0, 8.0, 12.0], [4], reading)
    };
    let at = |texture: Texture<f32>, quarters: [f32; 7]| quarters.map(|x| texture.sample(x / 4.0));
    let middles = [-4.5, -0.5, 0.5, 3.5, 4.5, 5.5, 9.5];
    let wrapped = repeated(AddressMode::Wrap, FilterMode::Point);
    assert_eq!(at(wrapped, middles), [12.0, 12.0, 0.0, 12.0, 0.0, 4.0, 4.0]);
    let mirrored = repeated(AddressMode::Mirror, FilterMode::Point);
    assert_eq!(at(mirrored, middles), [12.0, 0.0, 0.0, 12.0, 12.0, 8.0, 4.0]);
    let edges = [-4.0, 0.0, 0.25, 1.0, 3.75, 4.0, 8.0];
    let wrapped = repeated(AddressMode::Wrap, FilterMode::Linear);
    assert_eq!(at(wrapped, edges), [6.0, 6.0, 3.0, 2.0, 9.0, 6.0, 6.0]);
    let mirrored = repeated(AddressMode::Mirror, FilterMode::Linear);
    assert_eq!(at(mirrored, edges), [12.0, 0.0, 0.0, 2.0, 12.0, 12.0, 0.0]);
}

#[test]
fn integers_are_read_as_they_are_or_as_fractions() {
    let bytes = [i8::MIN, -127, -1, 0, 1, i8::MAX];
    let point = reading::<i8>(FilterMode::Point, CLAMP);
    let (whole, fractions): (Texture<i8>, Texture<f32>) =
        (texture(&bytes, [6], point), texture(&bytes, [6], point));
    for (i, byte) in bytes.into_iter().enumerate() {
        let middle = i as f32 + 0.5;
        assert_eq!(whole.sample(middle), byte);
        assert_eq!(fractions.sample(middle), (f32::from(byte) / 127.0).max(-1.0));
    }
    let halves = [0_u16, 1, 32768, u16::MAX];
    let fractions: Texture<f32> = texture(&halves, [4], reading::<u16>(FilterMode::Point, CLAMP));
    assert_eq!(
        [0.5, 1.5, 2.5, 3.5].map(|x| fractions.sample(x)),
        halves.map(|half| f32::from(half) / 65535.0)
    );
    let words = [i32::MIN, -1, 1 << 30];
    let whole: Texture<i32> = texture(&words, [3], reading::<i32>(FilterMode::Point, CLAMP));
    assert_eq!([0.5, 1.5, 2.5].map(|x| whole.sample(x)), words);
}

#[test]
fn planes_and_volumes_lie_row_by_row() {
    let numbers: [[u8; 2]; 24] = core::array::from_fn(|i| [i as u8, 100 + i as u8]);
    let plane: Texture<[u8; 2], 2> = texture(&numbers, [6, 4], reading::<[u8; 2]>(FilterMode::Point, CLAMP));
    assert_eq!(plane.sample(5.5, 3.5), [23, 123]);
    assert_eq!((plane.sample(4.5, 2.5), plane.sample(9.0, -1.0)), ([16, 116], [5, 105]));
    let volume: Texture<[u8; 2], 3> =
        texture(&numbers, [2, 3, 4], reading::<[u8; 2]>(FilterMode::Point, CLAMP));
    assert_eq!((volume.sample(1.5, 2.5, 3.5), volume.sample(0.5, 1.5, 2.5)), ([23, 123], [14, 114]));
    assert_eq!((volume.width(), volume.height(), volume.depth(), volume.shape()), (2, 3, 4, [2, 3, 4]));
    let floats: [f32; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let cube: Texture<f32, 3> = texture(&floats, [2, 2, 2], reading::<f32>(FilterMode::Linear, CLAMP));
    assert_eq!((cube.sample(1.0, 1.0, 1.0), cube.sample(1.5, 0.75, 1.25)), (3.5, 1.0 + 0.5 + 3.0));
}

#[cfg(feature = "half")]
#[test]
fn halves_become_singles() {
    use crate::half::f16;

    let halves = [0.1, -2.5, 65504.0].map(f16::from_f32);
    let singles: Texture<f32> = texture(&halves, [3], reading::<f16>(FilterMode::Point, CLAMP));
    assert_eq!([0.5, 1.5, 2.5].map(|x| singles.sample(x)), halves.map(|half| half.to_f32()));
}
