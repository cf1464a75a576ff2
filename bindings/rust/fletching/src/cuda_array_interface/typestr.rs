// SPDX-License-Identifier: Apache-2.0

//! Type strings: byte order, kind, size, and the unit of times.

use super::tables::{Counts, Kind, KINDS, MAX_ITEM_BYTES, ORDERS, UNITS};

/// A parsed type string.
#[derive(Debug)]
pub(super) struct Typestr {
    pub(super) order: u8,
    pub(super) kind: &'static Kind,
    /// The size of an item, in the kind's unit.
    pub(super) number: Option<u64>,
}

impl Typestr {
    /// Returns `None` if the text is not a type string.
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

/// Whether the text is a unit in brackets, with an optional multiple.
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
