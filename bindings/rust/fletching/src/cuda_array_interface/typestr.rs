// SPDX-License-Identifier: Apache-2.0

//! Type strings: byte order, kind, size, and the unit of times.

use super::tables::{Counts, Kind, KINDS, MAX_ITEM_BYTES, ORDERS, UNITS};

/// A type string in its parts.
#[derive(Debug)]
pub(super) struct Typestr {
    pub(super) order: u8,
    pub(super) kind: &'static Kind,
    /// The size of an item, in what the kind counts.
    pub(super) number: Option<u64>,
}

impl Typestr {
    /// `None` for a text that is no type string.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let order = *text.as_bytes().first()?;
        if !ORDERS.contains(&order) {
            return None;
        }
        let mut characters = text[1..].chars();
        let character = characters.next()?;
        let kind = KINDS.iter().find(|kind| kind.character == character)?;
        let mut rest = characters.as_str();
        let mut number = None;
        if rest.starts_with(|c: char| c.is_ascii_digit()) {
            number = Some(take_number(&mut rest, 10)?);
        } else if kind.no_number == 0 {
            return None;
        }
        let is_complete = rest.is_empty() || kind.has_unit && is_unit(rest);
        if !is_complete {
            return None;
        }
        let parsed = Self {
            order,
            kind,
            number,
        };
        (parsed.item_bytes() <= MAX_ITEM_BYTES).then_some(parsed)
    }

    pub(super) fn item_bytes(&self) -> u64 {
        let size = self.number.unwrap_or(self.kind.no_number);
        match self.kind.counts {
            Counts::Bits => size.div_ceil(8),
            Counts::Bytes => size,
            Counts::Characters => size * 4,
        }
    }
}

/// Removes a number without leading zeros and of at most `digits` digits from the front.
fn take_number(text: &mut &str, digits: usize) -> Option<u64> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    if number.len() > digits || number.len() > 1 && number.starts_with('0') {
        return None;
    }
    *text = rest;
    number.parse().ok()
}

/// In brackets: a multiple, which may be omitted, and a unit.
fn is_unit(text: &str) -> bool {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let Some(mut unit) = inner else { return false };
    if unit.starts_with(|c: char| c.is_ascii_digit()) {
        let multiple = take_number(&mut unit, 9);
        if matches!(multiple, None | Some(0)) {
            return false;
        }
    }
    UNITS.contains(&unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_strings_are_read() {
        let bytes = |text: &str| Typestr::parse(text).map(|parsed| parsed.item_bytes());
        for (text, expected) in [
            ("<f4", 4),
            (">c16", 16),
            ("|b1", 1),
            ("|t12", 2),
            ("<U3", 12),
            ("|O", 8),
            ("|V0", 0),
            ("<M8", 8),
            ("<M8[ns]", 8),
            ("<m8[25s]", 8),
            ("|V2147483647", 2_147_483_647),
        ] {
            assert_eq!(bytes(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "<",
            "f4",
            "<f",
            "<x4",
            "=f4",
            "<f04",
            "<f4 ",
            "<f4[s]",
            "<M8[]",
            "<M8[0s]",
            "<M8[025s]",
            "<M8[x]",
            "<M8[s",
            "<M8[1234567890s]",
            "<M8s]",
            "|V2147483648",
            "|V99999999999",
            "<U536870912",
            "<é4",
            "é",
        ] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
