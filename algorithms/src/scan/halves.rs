//! Running sums of 16-bit floats: in `f32`, each rounded once. The kernel that sums by key does that; without keys, all is one run.

use ferrogrid_device::half::{bf16, f16};

use super::{Scanned, Summed};
use crate::accumulate::Accumulated;
use crate::keyed::{Kind, scan_without_keys};
use crate::{DeviceView, DeviceViewMut, Grid, Result, Stream};

macro_rules! halves {
    ($($t:ident),*) => {
        $(impl Scanned for $t {
            type Bits = $t;
        }

        impl Summed for $t {
            fn inclusive(stream: &Stream, _: Grid<1>, x: DeviceView<Self>, y: DeviceViewMut<Self>) -> Result<()> {
                scan_without_keys("inclusive_sum", stream, Self::SUM, Kind::Inclusive, x, y)
            }

            fn exclusive(
                stream: &Stream,
                _: Grid<1>,
                x: DeviceView<Self>,
                first: Self,
                y: DeviceViewMut<Self>,
            ) -> Result<()> {
                scan_without_keys("exclusive_sum", stream, Self::SUM, Kind::Exclusive(first), x, y)
            }
        })*
    };
}
halves!(f16, bf16);
