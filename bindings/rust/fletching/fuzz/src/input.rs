// SPDX-License-Identifier: Apache-2.0

//! An input that is consumed from the front.

/// The remaining bytes, followed by zeros.
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

    /// Returns mostly small numbers, and sometimes any number.
    pub fn number(&mut self) -> i64 {
        match self.byte() as i8 {
            i8::MAX => self.eight(),
            small => small.into(),
        }
    }

    /// Returns the bytes up to the next NUL, and consumes the NUL.
    pub fn text(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == 0);
        let text = &self.0[..end.unwrap_or(self.0.len())];
        self.0 = &self.0[(text.len() + 1).min(self.0.len())..];
        text
    }
}
