//! The memory of a constant on each device, and the order of its uses.

use std::cell::Cell;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use super::InitialValue;
use super::enqueueing::{Enqueueing, Enqueuers};
use crate::backend::cuda::ModuleLease;
use crate::backend::{Contents, DeviceBackend};
use crate::device::Device;
use crate::error::Result;
use crate::kernel::image::ModuleImage;
use crate::memory::{Memory, Origin};
use crate::order::Use;
use crate::stream::StreamInner;
use crate::sync::lock;

/// A constant of this program, on all devices.
#[doc(hidden)]
pub struct ConstantMemory {
    name: &'static str,
    symbol: &'static str,
    image: &'static ModuleImage,
    initial: *const u8,
    bytes: usize,
    /// How launches use it that may reach it.
    pub(crate) by_launches: Use,
    /// The devices that have it, the latest first. They live as long as the process, so entries are only added.
    residents: AtomicPtr<Resident>,
    /// Held while one is added.
    adding: Mutex<()>,
}

// SAFETY: `initial` points to bytes that are never written; the rest is thread-safe.
unsafe impl Send for ConstantMemory {}
// SAFETY: as above.
unsafe impl Sync for ConstantMemory {}

/// A constant on one device.
pub(crate) struct Resident {
    device: DeviceBackend,
    pub(crate) memory: Memory,
    /// How long it exists on a GPU. On the CPU device it always does.
    lease: Option<ModuleLease>,
    next: *const Resident,
}

impl ConstantMemory {
    /// That of a constant or a static, at first as `initial` is, which launches use as `by_launches` says.
    pub(in crate::memory) const fn new<T>(
        name: &'static str,
        symbol: &'static str,
        image: &'static ModuleImage,
        initial: &'static InitialValue<T>,
        by_launches: Use,
    ) -> Self {
        // Only what is `DeviceCopy`, or made of atomic numbers, is copied further.
        let (initial, bytes) = (from_ref(initial).cast(), size_of::<T>());
        let (residents, adding) = (AtomicPtr::new(null_mut()), Mutex::new(()));
        ConstantMemory { name, symbol, image, initial, bytes, by_launches, residents, adding }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The constant on `device`, with the value in the source if it was not there before.
    pub(crate) fn resident(&self, device: &Device) -> Result<&'static Resident> {
        if let Some(resident) = self.find(device.backend().address()) {
            return Ok(resident);
        }
        let _adding = lock(&self.adding);
        if let Some(resident) = self.find(device.backend().address()) {
            return Ok(resident);
        }
        let (memory, lease) = self.place(device)?;
        let next = self.residents.load(Ordering::Acquire).cast_const();
        let resident: &'static mut Resident =
            Box::leak(Box::new(Resident { device: device.backend(), memory, lease, next }));
        self.residents.store(resident, Ordering::Release);
        Ok(resident)
    }

    #[inline]
    fn find(&self, device: *const ()) -> Option<&'static Resident> {
        let mut at = self.residents.load(Ordering::Acquire).cast_const();
        // SAFETY: entries are leaked, and complete before they are in the list.
        while let Some(resident) = unsafe { at.as_ref() } {
            let has_ended = || resident.lease.as_ref().is_some_and(ModuleLease::has_ended);
            if std::ptr::addr_eq(resident.device.address(), device) && !has_ended() {
                return Some(resident);
            }
            at = resident.next;
        }
        None
    }

    fn place(&self, device: &Device) -> Result<(Memory, Option<ModuleLease>)> {
        // Of its own: one of a recording runs nothing.
        let stream = device.new_stream()?;
        if let Some((start, lease)) =
            device.backend().variable(self.image, self.name, self.symbol, self.bytes)?
        {
            // SAFETY: the variable has that many bytes, of this device, while the module is loaded; the code that unloads
            // it vouches that this is no longer used. No kernel of this process has used it so far, since
            // launches come here first.
            let memory =
                unsafe { Memory::owned(stream.inner(), Origin::Foreign, start, self.bytes, Box::new(())) };
            return Ok((memory, Some(lease)));
        }
        let memory = Memory::allocate(stream.inner(), None, self.bytes, Contents::Uninitialised)?;
        // SAFETY: the value in the source has that many bytes, and the memory has just been allocated.
        unsafe { stream.inner().initialise_from_host(memory.pointer(), self.initial, self.bytes)? };
        Ok((memory, None))
    }

    /// Where the CPU device has it whose kernel runs on this thread.
    #[inline]
    pub(crate) fn here(&self) -> *const u8 {
        let listed = |running: &Entered| running.constants.iter().any(|it| std::ptr::eq(*it, self));
        let resident = RUNNING.get().filter(listed).and_then(|running| self.find(running.device));
        match resident {
            Some(resident) => resident.memory.pointer(),
            None => {
                panic!("`{}` is memory of devices, which only kernels of its module can reach", self.name)
            }
        }
    }
}

impl Resident {
    /// Enters a use by what `stream` is about to be given; the caller holds [`Enqueueing`] until it has been.
    pub(super) fn begin(&'static self, stream: &Arc<StreamInner>, usage: Use) -> Result<()> {
        match stream.recording() {
            None => self.memory.begin(stream, usage),
            // A graph need not hold it, because it is static.
            Some(recording) => recording.note_constant(&self.memory, usage),
        }
    }
}

/// Of all constants: work may use several.
pub(crate) static ENQUEUERS: Enqueuers = Enqueuers { lock: RwLock::new(()) };

/// Enters into the order that a launch on `stream` may use `constants`, which are not empty.
#[cold]
pub(crate) fn begin_launch(
    constants: &[&'static ConstantMemory],
    stream: &Arc<StreamInner>,
) -> Result<Option<Enqueueing<'static>>> {
    for constant in constants {
        constant.resident(stream.device())?;
    }
    let enqueueing = ENQUEUERS.for_uses(constants.iter().map(|constant| constant.by_launches));
    for constant in constants {
        constant.resident(stream.device())?.begin(stream, constant.by_launches)?;
    }
    Ok(enqueueing)
}

/// The kernel that runs on a thread of the CPU device.
#[derive(Clone, Copy)]
struct Entered {
    constants: &'static [&'static ConstantMemory],
    device: *const (),
}

thread_local! {
    static RUNNING: Cell<Option<Entered>> = const { Cell::new(None) };
}

/// While it is there, the constants of a kernel can be read on this thread.
pub(crate) struct Running(Option<Entered>);

impl Running {
    /// `device` is where the CPU device lives.
    pub(crate) fn enter<D>(constants: &'static [&'static ConstantMemory], device: &D) -> Self {
        let device = if constants.is_empty() { null() } else { from_ref(device).cast() };
        Running(RUNNING.replace(Some(Entered { constants, device })))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}
