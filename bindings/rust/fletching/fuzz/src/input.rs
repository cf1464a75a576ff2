// SPDX-License-Identifier: Apache-2.0

//! An input, taken from the front.

/// The bytes that are left; zeros when they are used up.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let (taken, left) = self.0.split_at(N.min(self.0.len()));
        self.0 = left;
        let mut bytes = [0; N];
        bytes[..taken.len()].copy_from_slice(taken);
        bytes
    }

    pub fn byte(&mut self) -> u8 {
        u8::from_le_bytes(self.bytes())
    }

    pub fn two(&mut self) -> u16 {
        u16::from_le_bytes(self.bytes())
    }

    pub fn eight(&mut self) -> i64 {
        i64::from_le_bytes(self.bytes())
    }

    /// A small number mostly, any number now and then.
    pub fn number(&mut self) -> i64 {
        match self.byte() as i8 {
            i8::MAX => self.eight(),
            small => small.into(),
        }
    }

    /// What is before the next NUL, which is taken too.
    pub fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = &self.0[(text.len() + 1).min(self.0.len())..];
        text
    }
}
