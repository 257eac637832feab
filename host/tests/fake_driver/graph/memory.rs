//! Memory that nodes of the fake driver's graphs allocate: pages that are accessible only while a launch is between the
//! nodes that allocate and free them. Nodes that come after a free are given its addresses again.

use std::ffi::c_void;
use std::sync::Mutex;

use crate::pointer::{In, Out};
use crate::work::{Code, SUCCESS};
use crate::enter;

const PAGE: usize = 4096;
const PRIVATE_ANONYMOUS_NORESERVE: i32 = 2 | 0x20 | 0x4000;

// SAFETY: the declarations are those of POSIX.
unsafe extern "C" {
    fn mmap(start: *mut c_void, bytes: usize, access: i32, flags: i32, file: i32, offset: i64) -> *mut c_void;
    fn mprotect(start: *mut c_void, bytes: usize, access: i32) -> i32;
}

/// Addresses of a graph, and the nodes that allocate and free there, one after the other.
#[derive(Clone)]
pub(crate) struct Block {
    pub(crate) start: usize,
    pub(crate) bytes: usize,
    pub(crate) owners: Vec<Owner>,
}

#[derive(Clone)]
pub(crate) struct Owner {
    pub(crate) allocated: usize,
    pub(crate) freed: Option<usize>,
}

/// In use now and at most, held now and at most.
static FIGURES: Mutex<[u64; 4]> = Mutex::new([0; 4]);

impl Block {
    /// For the node `allocated`: one of `blocks` that was freed before, else a new one at the end. `None` if there is no room.
    pub(crate) fn take(blocks: &mut Vec<Block>, bytes: usize, allocated: usize, before: &[usize]) -> Option<usize> {
        let bytes = bytes.checked_next_multiple_of(PAGE)?;
        let is_free = |block: &&mut Block| {
            let last = block.owners.last().and_then(|owner| owner.freed);
            block.bytes == bytes && last.is_some_and(|freed| before.contains(&freed))
        };
        let owner = Owner { allocated, freed: None };
        if let Some(block) = blocks.iter_mut().find(is_free) {
            block.owners.push(owner);
            return Some(block.start);
        }
        // SAFETY: a new mapping, wherever the system has room, changes no other memory.
        let start = unsafe { mmap(std::ptr::null_mut(), bytes, 0, PRIVATE_ANONYMOUS_NORESERVE, -1, 0) };
        if start as isize == -1 {
            return None;
        }
        blocks.push(Block { start: start as usize, bytes, owners: vec![owner] });
        Some(start as usize)
    }
}

/// The pages from `start` on are there, with anything in them.
pub(crate) fn map(start: usize, bytes: usize) {
    // SAFETY: the pages are a block's, which `take` mapped for good. Access is added, so nothing becomes invalid.
    assert_eq!(unsafe { mprotect(start as *mut c_void, bytes, 3) }, 0);
    // SAFETY: the pages are writable now, and what uses them is enqueued after this.
    unsafe { (start as *mut u8).write_bytes(0xee, bytes) };
    let [used, used_high, held, held_high] = &mut *FIGURES.lock().unwrap();
    *used += bytes as u64;
    *used_high = (*used_high).max(*used);
    *held = (*held).max(*used);
    *held_high = (*held_high).max(*held);
}

pub(crate) fn unmap(start: usize, bytes: usize) {
    // SAFETY: the pages are a block's. What used them ran before, or ends the process: that is under test.
    assert_eq!(unsafe { mprotect(start as *mut c_void, bytes, 0) }, 0);
    FIGURES.lock().unwrap()[0] -= bytes as u64;
}

call! {
    fn cuDeviceGetGraphMemAttribute(_device: i32, attribute: u32, value: Out<u64>) {
        value.set(FIGURES.lock().unwrap()[attribute as usize]);
        Ok(())
    }
    fn cuDeviceSetGraphMemAttribute(_device: i32, attribute: u32, value: In<u64>) {
        assert!(matches!(attribute, 1 | 3) && *value.get() == 0, "high figures are set to 0 only");
        let mut figures = FIGURES.lock().unwrap();
        figures[attribute as usize] = figures[attribute as usize - 1];
        Ok(())
    }
    fn cuDeviceGraphMemTrim(_device: i32) {
        let mut figures = FIGURES.lock().unwrap();
        figures[2] = figures[0];
        Ok(())
    }
}
