//! The names of device architectures, as rustc's `-C target-cpu` takes them.

/// The number of the oldest architecture that Ferrogrid supports.
pub const OLDEST_ARCHITECTURE: u32 = 75;

/// The numbers of the architectures that Ferrogrid supports, as LLVM 22 names them.
const ARCHITECTURES: [u32; 13] = [OLDEST_ARCHITECTURE, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121];

/// For errors: the names of all architectures.
pub const ARCHITECTURE_NAMES: &str = "`sm_75`, `sm_80`, `sm_86` to `sm_90`, `sm_100`, `sm_101`, `sm_103`, `sm_110`, \
    `sm_120` and `sm_121`, from `sm_90` on also with `a` and from `sm_100` on with `f`";

/// 90 for `sm_90` and `sm_90a`; `None` for anything that is not the name of a supported architecture.
pub fn architecture_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("sm_")?;
    let (digits, oldest) = match number.as_bytes().last()? {
        b'a' => (&number[..number.len() - 1], 90),
        b'f' => (&number[..number.len() - 1], 100),
        _ => (number, OLDEST_ARCHITECTURE),
    };
    ARCHITECTURES.into_iter().find(|known| *known >= oldest && known.to_string() == digits)
}
