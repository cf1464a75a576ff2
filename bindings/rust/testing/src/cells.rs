// SPDX-License-Identifier: Apache-2.0

//! Results as cells, see `tests/roundtrip/README.md`.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// The subject of a cell.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// A struct, or "constants".
    Struct(&'a str),
    /// A case of the producer, and its backend.
    Case(&'a str, &'a str),
}

/// The result of one direction of one subject: the number of comparisons and releases, and a line
/// for each failed comparison.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of comparisons.
    pub asserted: u64,
    /// The number of Rust release callbacks that ran.
    pub releases: u64,
    /// One line per failure.
    pub problems: Vec<String>,
    /// "stand-in" or "absent"; empty means "real".
    pub status: &'static str,
}

impl Tally {
    /// Counts one comparison.
    pub fn check(&mut self, result: Result<(), String>) {
        self.asserted += 1;
        self.problems.extend(result.err());
    }

    /// Counts one comparison of two values.
    pub fn equal<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, seen: T, expected: T) {
        self.check(if seen == expected {
            Ok(())
        } else {
            Err(format!("{what} is {seen:?}, expected {expected:?}"))
        });
    }

    /// Whether at least one comparison was made and none failed.
    pub fn is_good(&self) -> bool {
        self.asserted > 0 && self.problems.is_empty()
    }

    /// Appends the cell to the file in `FLETCHING_CELLS`, if it is set.
    ///
    /// # Panics
    ///
    /// If the file cannot be written: lost results must not look like success.
    pub fn report(&self, subject: Subject<'_>, direction: &str) {
        let Some(path) = cells_file() else {
            return;
        };
        let line = self.to_json(subject, direction) + "\n";
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .and_then(|mut file| file.write_all(line.as_bytes()))
            .unwrap_or_else(|error| {
                panic!(
                    "cannot append to FLETCHING_CELLS={}: {error}",
                    path.display()
                )
            });
    }

    fn to_json(&self, subject: Subject<'_>, direction: &str) -> String {
        let (key, name, backend) = match subject {
            Subject::Struct(name) => ("struct", name, "none"),
            Subject::Case(name, backend) => ("case", name, backend),
        };
        format!(
            r#"{{"language": "rust", "backend": {}, "{key}": {}, "direction": {}, "status": {}, "reason": {}, "asserted": {}, "releases": {}, "ok": {}}}"#,
            quote(backend),
            quote(name),
            quote(direction),
            quote(if self.status.is_empty() {
                "real"
            } else {
                self.status
            }),
            quote(&self.problems.join("; ")),
            self.asserted,
            self.releases,
            self.is_good()
        )
    }
}

fn cells_file() -> Option<PathBuf> {
    let path = std::env::var_os("FLETCHING_CELLS").filter(|path| !path.is_empty())?;
    Some(path.into())
}

fn quote(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..='\x1f' => quoted.push_str(&format!("\\u{:04x}", character as u32)),
            _ => quoted.push(character),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tally_to_json_returns_one_line() {
        let mut tally = Tally::default();
        tally.check(Err("a \"b\"\n\\".into()));
        assert_eq!(
            tally.to_json(Subject::Struct("ArrowArray"), "layout"),
            r#"{"language": "rust", "backend": "none", "struct": "ArrowArray", "direction": "layout", "status": "real", "reason": "a \"b\"\u000a\\", "asserted": 1, "releases": 0, "ok": false}"#
        );
    }

    #[test]
    fn tally_without_comparison_is_not_good() {
        assert!(!Tally::default().is_good());
    }
}
