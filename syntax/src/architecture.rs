//! The names of device architectures, as rustc's `-C target-cpu` takes them.

/// The number of the oldest architecture that Ferrogrid supports.
pub const OLDEST_ARCHITECTURE: u32 = 75;

/// 90 for `sm_90` and `sm_90a`; `None` for anything that is not the name of a supported architecture.
pub fn architecture_number(name: &str) -> Option<u32> {
    let number = name.strip_prefix("sm_")?;
    let digits = number.strip_suffix(['a', 'f']).unwrap_or(number);
    if digits.len() > 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().filter(|number| *number >= OLDEST_ARCHITECTURE)
}
