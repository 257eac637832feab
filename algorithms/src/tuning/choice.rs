//! Which of the measured numbers is taken.

/// How long calls took with a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The number.
    pub number: usize,
    /// Seconds of a call, one for each length. Numbers with which a launch is the same share the time.
    pub seconds: Vec<f64>,
}

/// The gain from which another number is worth a change.
const LEAST_GAIN: f64 = 0.02;

/// The number with the least geometric mean of times, of those that take at most 0.98 of the times of `today`'s where these are not
/// shared; `today`'s if there is none. Also returns that ratio.
///
/// ```
/// use ferrogrid_algorithms::tuning::{Measured, best};
///
/// let measured = |number, seconds: [f64; 2]| Measured { number, seconds: seconds.into() };
/// assert_eq!(best(32, &[measured(16, [1.0, 0.5]), measured(32, [1.0, 1.0])]), (16, 0.5));
/// assert_eq!(best(32, &[measured(16, [1.0, 0.99]), measured(32, [1.0, 1.0])]), (32, 1.0));
/// ```
pub fn best(today: usize, measured: &[Measured]) -> (usize, f64) {
    let Some(present) = measured.iter().find(|it| it.number == today) else { return (today, 1.0) };
    let gain = |it: &Measured| {
        let logarithms =
            it.seconds.iter().zip(&present.seconds).map(|(seconds, today)| (seconds / today).ln());
        let different: Vec<f64> = logarithms.filter(|it| *it != 0.0).collect();
        let sum: f64 = different.iter().sum();
        (sum, (sum / different.len().max(1) as f64).exp())
    };
    let gains = measured.iter().map(|it| (it.number, gain(it)));
    gains
        .filter(|(_, (_, ratio))| *ratio <= 1.0 - LEAST_GAIN)
        .min_by(|(_, (a, _)), (_, (b, _))| a.total_cmp(b))
        .map_or((today, 1.0), |(number, (_, ratio))| (number, ratio))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(numbers: &[(usize, [f64; 4])]) -> Vec<Measured> {
        numbers
            .iter()
            .map(|(number, seconds)| Measured { number: *number, seconds: seconds.to_vec() })
            .collect()
    }

    #[test]
    fn the_best_mean_over_all_lengths_is_taken() {
        // The sum of times would be less with 1, the mean of ratios with 2.
        let all = measured(&[
            (1, [1.2e-6, 1.2e-6, 1.2e-6, 1.0]),
            (2, [0.9e-6, 0.9e-6, 0.9e-6, 2.1]),
            (3, [1e-6, 1e-6, 1e-6, 2.0]),
        ]);
        assert_eq!(best(3, &all).0, 2);
    }

    #[test]
    fn todays_number_stays_unless_another_is_better_by_2_percent() {
        let with = |seconds| best(3, &measured(&[(3, [1.0; 4]), (4, [seconds; 4])])).0;
        assert_eq!([0.9, 0.979, 0.981, 1.0, 1.1].map(with), [4, 4, 3, 3, 3]);
        assert_eq!(best(3, &measured(&[(4, [1.0; 4])])), (3, 1.0), "today's was not measured");
        assert_eq!(best(3, &[]), (3, 1.0));
    }

    #[test]
    fn the_gain_is_that_of_the_lengths_with_another_launch() {
        let all = measured(&[(3, [1.0; 4]), (4, [1.0, 0.97, 1.0, 1.0]), (5, [1.0, 0.97, 1.05, 1.0])]);
        let (number, ratio) = best(3, &all);
        assert_eq!(number, 4);
        assert!((ratio - 0.97).abs() < 1e-9, "{ratio}");
    }
}
