//! CUDA arrays of the fake driver: memory behind handles, and its texture and surface objects.
//! It watches that each is destroyed once, and none while work uses it.

use std::alloc::{Layout, alloc};
use std::collections::HashMap;

use crate::pointer::Out;
use crate::work::{Code, Pointer, Work, with};
use crate::{CONTEXT, OUT_OF_MEMORY, found_at, log, number};

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
pub(crate) struct Description {
    extent: [usize; 3],
    format: u32,
    channels: u32,
    flags: u32,
}

/// `CUDA_RESOURCE_DESC` of an array.
#[repr(C)]
pub(crate) struct Resource {
    kind: u32,
    array: usize,
}

/// What of `CUDA_TEXTURE_DESC` is looked at.
#[repr(C)]
pub(crate) struct Sampler {
    addresses: [u32; 3],
    filter: u32,
    flags: u32,
}

/// A side of `CUDA_MEMCPY3D`.
#[repr(C)]
struct Side {
    origin: [usize; 4],
    kind: u32,
    host: usize,
    device: u64,
    array: usize,
    reserved: usize,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
pub(crate) struct Copy {
    source: Side,
    target: Side,
    width: usize,
    height: usize,
    depth: usize,
}

struct Array {
    start: usize,
    /// In bytes along x; in elements along the others, at least 1.
    extent: [usize; 3],
    has_surface: bool,
    objects: u32,
}

#[derive(Default)]
pub(crate) struct Arrays {
    arrays: HashMap<usize, Array>,
    /// The arrays of texture and surface objects.
    objects: HashMap<u64, usize>,
}

impl Arrays {
    /// The contexts of all are gone.
    pub(crate) fn reset(&mut self, is_gone: impl Fn(&usize) -> bool) {
        self.arrays.retain(|array, _| !is_gone(array));
        let Arrays { arrays, objects } = self;
        objects.retain(|_, array| arrays.contains_key(array));
    }

    /// Where the array of an object begins.
    pub(crate) fn start_of(&self, object: u64) -> Option<usize> {
        self.objects.get(&object).map(|array| self.arrays[array].start)
    }
}

/// The attributes with limits of textures and surfaces.
pub(crate) fn attribute(attribute: u32) -> Option<u64> {
    Some(match attribute {
        21 => number("texture_width", 131_072),
        22 | 56 => 131_072,
        23 | 57 => 65_536,
        24..=26 | 58..=60 => 16_384,
        47..=48 => 8_192,
        49 => 32_768,
        55 => 32_768,
        _ => return None,
    })
}

fn element_bytes(format: u32) -> usize {
    match format {
        1 | 8 => 1,
        2 | 9 | 16 => 2,
        3 | 10 | 32 => 4,
        other => panic!("format {other}"),
    }
}

pub(crate) fn create(array: Out<usize>, description: &Description) -> Result<(), Code> {
    let Description { extent: [width, height, depth], format, channels, flags } = *description;
    log(&format!("array {width} {height} {depth} format={format} channels={channels} flags={flags}"));
    assert!(width > 0 && (height > 0 || depth == 0) && [1, 2, 4].contains(&channels));
    let extent = [width * element_bytes(format) * channels as usize, height.max(1), depth.max(1)];
    let bytes: usize = extent.iter().product();
    with(|state| {
        if state.used() + bytes as u64 > number("memory", 1 << 30) {
            return Err(OUT_OF_MEMORY);
        }
        // SAFETY: the extents are not 0, so `bytes` is not.
        let start = unsafe { alloc(Layout::from_size_align(bytes, 256).unwrap()) };
        // SAFETY: `start` has so many bytes, which nothing else knows yet.
        unsafe { start.write_bytes(0xaa, bytes) };
        state.allocations.insert(start as usize, bytes);
        let handle = state.id();
        state.made_in.insert(handle, CONTEXT.get());
        let entry = Array { start: start as usize, extent, has_surface: flags & 2 != 0, objects: 0 };
        state.arrays.arrays.insert(handle, entry);
        array.set(handle);
        Ok(())
    })
}

pub(crate) fn destroy(array: usize) {
    with(|state| {
        let gone = state.arrays.arrays.remove(&array).expect("a live array, destroyed once");
        assert_eq!(gone.objects, 0, "an array is destroyed before its objects");
        assert!(!state.is_in_use(gone.start, gone.extent.iter().product()), "destroyed while it is used");
        state.release(gone.start);
    });
}

/// An object of the array.
fn object(made: Out<u64>, resource: &Resource, needs_surface: bool) {
    assert_eq!(resource.kind, 0, "an array");
    with(|state| {
        let id = state.id() as u64;
        let array = state.arrays.arrays.get_mut(&resource.array).expect("a live array");
        assert!(array.has_surface || !needs_surface, "an array that no kernel may write");
        array.objects += 1;
        state.arrays.objects.insert(id, resource.array);
        made.set(id);
    });
}

pub(crate) fn texture(made: Out<u64>, resource: &Resource, sampler: &Sampler) {
    let Sampler { addresses, filter, flags } = sampler;
    log(&format!("texture addresses={addresses:?} filter={filter} flags={flags}"));
    object(made, resource, false);
}

pub(crate) fn surface(made: Out<u64>, resource: &Resource) {
    object(made, resource, true);
}

pub(crate) fn destroy_object(object: u64) {
    with(|state| {
        let array = state.arrays.objects.remove(&object).expect("a live object, destroyed once");
        state.arrays.arrays.get_mut(&array).expect("its array is live").objects -= 1;
    });
}

impl Copy {
    pub(crate) fn is_of_array(&self) -> bool {
        self.source.kind == 3 || self.target.kind == 3
    }

    /// Where the target and the source of a copy of rows are; `place` says it of a kind of memory and its addresses.
    pub(crate) fn places_of_rows(&self, place: impl Fn(u32, usize, usize) -> usize) -> (usize, usize) {
        let of = |side: &Side| {
            assert_eq!((side.origin, side.array, side.reserved), ([0; 4], 0, 0), "a copy of rows");
            place(side.kind, side.host, side.device as usize)
        };
        assert_eq!(self.depth, 1, "a copy of rows");
        (of(&self.target), of(&self.source))
    }

    /// The work of a copy of rows.
    pub(crate) fn rows(&self, target: usize, source: usize) -> Work {
        let (target_pitch, source_pitch) = (self.target.pitch, self.source.pitch);
        Work::CopyRows { target, source, target_pitch, source_pitch, width: self.width, height: self.height }
    }

    /// Where the target and the source are; `of_host` says it of memory of the host.
    pub(crate) fn sides(&self, of_host: impl Fn(usize) -> usize) -> (usize, usize) {
        let place = |side: &Side| {
            assert_eq!(side.origin, [0; 4]);
            assert_eq!((side.pitch, side.height), (self.width, self.height), "rows follow each other");
            match side.kind {
                1 => of_host(side.host),
                4 => found_at(side.device),
                3 => with(|state| {
                    let array = &state.arrays.arrays[&side.array];
                    assert_eq!(array.extent, [self.width, self.height, self.depth], "the whole array");
                    array.start
                }),
                other => panic!("memory type {other}"),
            }
        };
        (place(&self.target), place(&self.source))
    }

    pub(crate) fn work(&self, target: usize, source: usize) -> Work {
        let (width, height) = (self.width, self.height * self.depth);
        Work::CopyRows { target, source, target_pitch: width, source_pitch: width, width, height }
    }
}

/// A copy of a whole array.
pub(crate) fn copy(copy: &Copy, stream: Pointer) {
    let (target, source) = copy.sides(|host| host);
    with(|state| state.push(stream, copy.work(target, source)));
}
