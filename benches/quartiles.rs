//! The middle half of measured values.

/// The values at one quarter, the middle, and three quarters.
pub fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

pub fn list(values: [f64; 3]) -> String {
    format!("[{}]", values.map(|value| format!("{value:.6e}")).join(", "))
}
