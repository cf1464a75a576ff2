// SPDX-License-Identifier: Apache-2.0

//! The error message in the test libraries' C interfaces.

use std::ffi::CStr;

/// `struct FletchingMessage`
#[repr(C)]
pub struct Message([u8; 1024]);

impl Default for Message {
    fn default() -> Self {
        Self([0; 1024])
    }
}

impl Message {
    /// The text.
    ///
    /// # Panics
    ///
    /// If it is not NUL-terminated.
    pub fn text(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.0).expect("the message ends");
        text.to_string_lossy().into()
    }

    /// Writes the text, truncated at a character boundary if it is too long.
    pub fn write(&mut self, text: &str) {
        let mut size = text.len().min(self.0.len() - 1);
        while !text.is_char_boundary(size) {
            size -= 1;
        }
        self.0[..size].copy_from_slice(&text.as_bytes()[..size]);
        self.0[size] = 0;
    }
}
