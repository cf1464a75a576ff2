// SPDX-License-Identifier: Apache-2.0

//! The cases of the corpus (`tests/corpus`), built in memory by `libfletching_corpus`.

use std::ffi::{c_char, c_int, CStr, CString};
use std::sync::Mutex;

use fletching_abi::{ArrowDeviceArray, ArrowSchema};

use crate::library;
use crate::message::Message;

library! {
    /// The functions of the corpus library.
    pub struct Corpus from "fletching_corpus" {
        count = FletchingCorpusCount() -> i32;
        name = FletchingCorpusName(i32) -> *const c_char;
        kind = FletchingCorpusKind(i32) -> i32;
        verdict = FletchingCorpusVerdict(i32) -> i32;
        exception = FletchingCorpusException(i32, *const c_char) -> *const c_char;
        text = FletchingCorpusText(i32, *const c_char) -> *const c_char;
        schema = FletchingCorpusExportSchema(*const c_char, *mut ArrowSchema, *mut Message) -> c_int;
        array = FletchingCorpusExportArray(*const c_char, *mut ArrowDeviceArray, *mut Message) -> c_int;
        finish = FletchingCorpusFinish(*mut Message) -> c_int;
    }
}

/// The content of a case.
#[derive(Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the C header documents the kinds")]
pub enum Kind {
    Schema = 1,
    Array = 2,
}

/// A case in progress.
pub struct Case<'a> {
    corpus: &'a Corpus,
    index: i32,
    /// The name, for messages.
    pub name: CString,
    /// Whether the case must be accepted or rejected.
    pub accepted: bool,
}

#[allow(
    clippy::not_unsafe_ptr_arg_deref,
    reason = "the tests pass the slots of owners"
)]
impl Case<'_> {
    /// Panics with the library's message unless `call` returns 0.
    fn run(&self, call: impl FnOnce(*const c_char, *mut Message) -> c_int) {
        let mut message = Message::default();
        let code = call(self.name.as_ptr(), &mut message);
        assert_eq!(code, 0, "{:?}: {}", self.name, message.text());
    }

    /// Fills `out` with the schema.
    ///
    /// # Safety
    ///
    /// `out` is valid for writes.
    pub unsafe fn export_schema(&self, out: *mut ArrowSchema) {
        // SAFETY: the caller guarantees that `out` is valid for writes.
        self.run(|name, message| unsafe { (self.corpus.schema)(name, out, message) });
    }

    /// Fills `out` with the array.
    ///
    /// # Safety
    ///
    /// `out` is valid for writes.
    pub unsafe fn export_array(&self, out: *mut ArrowDeviceArray) {
        // SAFETY: as above.
        self.run(|name, message| unsafe { (self.corpus.array)(name, out, message) });
    }

    /// The rule that a rejected case breaks, or empty if the case names none.
    pub fn rule(&self) -> String {
        // SAFETY: the index is valid, and the library owns the strings.
        let text = unsafe { (self.corpus.text)(self.index, c"rule".as_ptr()) };
        match text.is_null() {
            true => String::new(),
            // SAFETY: as above.
            false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into(),
        }
    }

    /// Whether only code that checks the buffers rejects the case.
    pub fn needs_data(&self) -> bool {
        // SAFETY: the index is valid.
        unsafe { !(self.corpus.text)(self.index, c"level".as_ptr()).is_null() }
    }

    /// Whether the library `name` is known to deviate from the verdict.
    pub fn is_exception(&self, name: &CStr) -> bool {
        // SAFETY: as above.
        unsafe { !(self.corpus.exception)(self.index, name.as_ptr()).is_null() }
    }
}

static ACCOUNT: Mutex<()> = Mutex::new(());

/// Plays each case of a kind, and checks that each export is released once.
pub fn each(kind: Kind, mut play: impl FnMut(&Case)) {
    let _one = ACCOUNT
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let corpus = Corpus::load().expect("the library of the corpus");
    let mut played = 0;
    // SAFETY: the index is valid.
    for index in 0..unsafe { (corpus.count)() } {
        // SAFETY: as above.
        if unsafe { (corpus.kind)(index) } != kind as i32 {
            continue;
        }
        let case = Case {
            corpus: &corpus,
            index,
            // SAFETY: as above; the strings live as long as the library.
            name: unsafe { CStr::from_ptr((corpus.name)(index)) }.into(),
            // SAFETY: as above.
            accepted: unsafe { (corpus.verdict)(index) } == 1,
        };
        play(&case);
        // SAFETY: the caller passes a message.
        case.run(|_, message| unsafe { (corpus.finish)(message) });
        played += 1;
    }
    assert!(played > 0, "no case");
}
