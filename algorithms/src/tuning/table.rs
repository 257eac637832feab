//! The table as text: reading, checking and writing it.

use std::fmt;
use std::str::FromStr;

use super::{Numbers, PLACES, Tuning};

/// The first line.
const HEADER: &str = "architecture,operation,element_size,value_size,number,source";

/// A number, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The compute capability.
    pub architecture: (u32, u32),
    /// What it is for.
    pub tuning: Tuning,
    /// The bytes of an element, and of the value with it or 0.
    pub sizes: [usize; 2],
    /// The number.
    pub number: usize,
    /// The record of the measurement, or what else it comes from. No commas.
    pub source: String,
}

/// All rows, sorted by all columns but the last two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    rows: Vec<Row>,
}

impl Row {
    fn key(&self) -> ((u32, u32), Tuning, [usize; 2]) {
        (self.architecture, self.tuning, self.sizes)
    }
}

impl Table {
    /// The table that this crate is compiled with.
    ///
    /// # Panics
    /// If it is wrong, which a test excludes.
    pub fn of_this_crate() -> Self {
        include_str!("table.csv").parse().expect("algorithms/src/tuning/table.csv")
    }

    /// The number for elements and values of these sizes on a device of this compute capability.
    ///
    /// # Panics
    /// If no launch takes such a number.
    pub fn number(&self, device: (u32, u32), tuning: Tuning, sizes: [usize; 2]) -> usize {
        super::number(&self.numbers(), Some(device), tuning.place(sizes))
    }

    /// Replaces the rows of the same architecture, operation and sizes, or adds these.
    pub fn set(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            match self.rows.binary_search_by_key(&row.key(), Row::key) {
                Ok(place) => self.rows[place] = row,
                Err(place) => self.rows.insert(place, row),
            }
        }
    }

    /// The numbers of each architecture, the oldest first. What an architecture lacks is that of the one before.
    pub(super) fn numbers(&self) -> Vec<((u32, u32), Numbers)> {
        let mut all: Vec<((u32, u32), Numbers)> = Vec::new();
        for row in &self.rows {
            let before = all.last().map_or([None; PLACES], |(_, numbers)| *numbers);
            if all.last().is_none_or(|(architecture, _)| *architecture != row.architecture) {
                all.push((row.architecture, before));
            }
            let place = row.tuning.place(row.sizes);
            all.last_mut().expect("a row's architecture").1[place] = Some(row.number);
        }
        all
    }
}

/// A complaint, unless the number is one that a launch can take.
pub(super) fn check(tuning: Tuning, sizes: [usize; 2], number: usize) -> Result<(), String> {
    let (name, limits) = (tuning.name(), tuning.limits());
    if !tuning.sizes().any(|it| it == sizes) {
        let all: Vec<_> = tuning.sizes().collect();
        return Err(format!("{name} of sizes {sizes:?}: expected one of {all:?}"));
    }
    if !limits.contains(&number) {
        return Err(format!("{name} of sizes {sizes:?} is {number}: expected {limits:?}"));
    }
    Ok(())
}

impl FromStr for Row {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let columns: Vec<&str> = line.split(',').collect();
        let [architecture, name, element, value, number, source] = columns[..] else {
            return Err(format!("{} columns, expected 6", columns.len()));
        };
        fn whole<T: FromStr>(text: &str) -> Result<T, String> {
            text.parse().map_err(|_| format!("`{text}`, expected a whole number"))
        }
        let (major, minor) =
            architecture.split_once('.').ok_or(format!("architecture `{architecture}`, expected `9.0`"))?;
        let tuning = Tuning::ALL.into_iter().find(|tuning| tuning.name() == name);
        let row = Row {
            architecture: (whole(major)?, whole(minor)?),
            tuning: tuning.ok_or(format!("operation `{name}`"))?,
            sizes: [whole(element)?, whole(value)?],
            number: whole(number)?,
            source: source.to_owned(),
        };
        check(row.tuning, row.sizes, row.number)?;
        Ok(row)
    }
}

impl FromStr for Table {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        if lines.next() != Some(HEADER) {
            return Err(format!("line 1: expected `{HEADER}`"));
        }
        let row =
            |(line, text): (usize, &str)| text.parse().map_err(|error| format!("line {}: {error}", line + 2));
        let rows: Vec<Row> = lines.enumerate().map(row).collect::<Result<_, _>>()?;
        if let Some(place) = rows.windows(2).position(|pair| pair[0].key() >= pair[1].key()) {
            return Err(format!("line {}: not after the row before", place + 3));
        }
        let table = Table { rows };
        let numbers = table.numbers();
        for tuning in Tuning::ALL {
            let is_missing =
                |sizes: &[usize; 2]| numbers.first().is_none_or(|it| it.1[tuning.place(*sizes)].is_none());
            if let Some(sizes) = tuning.sizes().find(is_missing) {
                let name = tuning.name();
                return Err(format!("the oldest architecture has no {name} of sizes {sizes:?}"));
            }
        }
        Ok(table)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        self.rows.iter().try_for_each(|row| {
            let Row { architecture: (major, minor), tuning, sizes: [element, value], number, source } = row;
            writeln!(f, "{major}.{minor},{},{element},{value},{number},{source}", tuning.name())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = include_str!("table.csv");

    #[test]
    fn the_table_is_complete_and_is_written_as_it_is() {
        let table: Table = TEXT.parse().expect("the table");
        assert_eq!(table.to_string(), TEXT);
        let architectures: Vec<_> =
            table.numbers().into_iter().map(|(architecture, _)| architecture).collect();
        assert_eq!(architectures, [(7, 5), (9, 0)]);
    }

    #[test]
    fn wrong_tables_are_refused() {
        let lines: Vec<&str> = TEXT.lines().collect();
        let with = |line: usize, text: &str| {
            let mut lines = lines.clone();
            lines[line - 1] = text;
            lines.join("\n")
        };
        let wrong = [
            (String::new(), "line 1: expected"),
            (HEADER.to_owned(), "the oldest architecture has no filter_rows of sizes [4, 0]"),
            (
                TEXT.replacen("7.5,top_k_blocks,2,0,1056,not measured: as 9.0\n", "", 1),
                "no top_k_blocks of sizes [2, 0]",
            ),
            (with(3, lines[1]), "line 3: not after the row before"),
            (with(3, lines[3]), "line 4: not after the row before"),
            (with(2, "7.5,filter_rows,4,0,32"), "line 2: 5 columns, expected 6"),
            (with(2, "75,filter_rows,4,0,32,"), "line 2: architecture `75`, expected `9.0`"),
            (with(2, "7.5,filter_row,4,0,32,"), "line 2: operation `filter_row`"),
            (with(2, "7.5,filter_rows,4,0,-32,"), "line 2: `-32`, expected a whole number"),
            (
                with(2, "7.5,filter_rows,2,0,32,"),
                "line 2: filter_rows of sizes [2, 0]: expected one of [[4, 0], [8, 0]]",
            ),
            (
                with(2, "7.5,filter_rows,4,0,257,"),
                "line 2: filter_rows of sizes [4, 0] is 257: expected 1..=256",
            ),
        ];
        for (text, expected) in wrong {
            let error = text.parse::<Table>().expect_err(expected);
            assert!(error.contains(expected), "{error}, expected {expected}");
        }
    }

    #[test]
    fn rows_of_an_architecture_are_replaced_and_added() {
        let mut table = Table::of_this_crate();
        let row = |architecture, number| Row {
            architecture,
            tuning: Tuning::SortSmall,
            sizes: [2, 4],
            number,
            source: "2026-11-26-h200-tunings".to_owned(),
        };
        let len = table.rows.len();
        table.set([row((10, 0), 5), row((9, 0), 6)]);
        assert_eq!(table.rows.len(), len + 1);
        let read: Table = table.to_string().parse().expect("the table that was written");
        assert_eq!(read, table);
        let place = Tuning::SortSmall.place([2, 4]);
        let found: Vec<_> = read.numbers().into_iter().map(|(it, numbers)| (it, numbers[place])).collect();
        assert_eq!(found, [((7, 5), Some(1 << 18)), ((9, 0), Some(6)), ((10, 0), Some(5))]);
        let other = Tuning::SortSmall.place([4, 4]);
        assert_eq!(read.numbers()[2].1[other], Some(1 << 18), "as 9.0");
    }
}
