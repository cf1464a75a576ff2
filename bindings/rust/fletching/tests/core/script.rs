// SPDX-License-Identifier: Apache-2.0

//! A foreign producer of streams: it does as its script says, counts, and notes what a consumer must
//! not do.

use std::ffi::{c_char, c_int, c_void, CString};
use std::sync::{Arc, Mutex};

use fletching::abi::{
    ArrowArray, ArrowArrayStream, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use fletching::{Array, Schema};

/// What one get_next does.
#[derive(Clone)]
pub struct Step {
    pub code: c_int,
    pub device_type: ArrowDeviceType,
    pub reserved: i64,
}

impl Default for Step {
    fn default() -> Self {
        Step {
            code: 0,
            device_type: ArrowDeviceType::CPU,
            reserved: 0,
        }
    }
}

pub fn fails(code: c_int) -> Step {
    Step {
        code,
        ..Step::default()
    }
}

/// What a stream does, and what has happened. The end follows the last step.
pub struct Script {
    pub steps: Vec<Step>,
    pub schema_code: c_int,
    pub schema_released: bool,
    pub text: Option<CString>,
    pub device_type: ArrowDeviceType,

    pub live: usize,
    pub released_streams: usize,
    pub asked_for_text: usize,
    pub pulls: usize,
    pub broken: Vec<String>,
    pub given_text: Vec<u8>,
    pub failed: bool,
    pub gone: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            schema_code: 0,
            schema_released: false,
            text: Some(c"the foreign text".into()),
            device_type: ArrowDeviceType::CPU,
            live: 0,
            released_streams: 0,
            asked_for_text: 0,
            pulls: 0,
            broken: Vec::new(),
            given_text: Vec::new(),
            failed: false,
            gone: false,
        }
    }
}

/// A script that several structs point to.
#[derive(Clone)]
pub struct Play(Arc<Mutex<Script>>);

impl Play {
    pub fn new(steps: impl Into<Vec<Step>>) -> Self {
        Self::of(Script {
            steps: steps.into(),
            ..Script::default()
        })
    }
    pub fn of(script: Script) -> Self {
        Self(Arc::new(Mutex::new(script)))
    }
    pub fn get<T>(&self, look: impl FnOnce(&mut Script) -> T) -> T {
        look(&mut self.0.lock().unwrap())
    }
    pub fn private_data(&self) -> *mut c_void {
        Arc::into_raw(Arc::clone(&self.0)).cast_mut().cast()
    }
    /// The script behind `private_data`, which keeps its share.
    pub unsafe fn behind(private_data: *mut c_void) -> Self {
        // SAFETY: the caller vouches for the pointer.
        unsafe {
            let script = private_data.cast_const().cast::<Mutex<Script>>();
            Arc::increment_strong_count(script);
            Self(Arc::from_raw(script))
        }
    }
    /// Nothing is alive, the stream was released once, and the consumer kept the rules.
    #[track_caller]
    pub fn expect_clean(&self) {
        self.get(|script| {
            assert_eq!((script.live, script.released_streams), (0, 1));
            assert!(script.broken.is_empty(), "{:?}", script.broken);
        });
        assert_eq!(Arc::strong_count(&self.0), 1);
    }
    /// The memory of the last text has other bytes from now on.
    pub fn overwrite_text(&self) {
        self.get(|script| script.given_text.iter_mut().for_each(|byte| *byte = b'!'));
    }

    pub fn batch(&self, length: i64) -> Array {
        self.get(|script| script.live += 1);
        let mut raw = ArrowArray::zeroed();
        raw.length = length;
        raw.release = Some(release_array);
        raw.private_data = self.private_data();
        // SAFETY: as the texts ask.
        unsafe { Array::from_raw(raw) }
    }
    pub fn schema(&self) -> Schema {
        self.get(|script| script.live += 1);
        let mut raw = ArrowSchema::zeroed();
        (raw.format, raw.name) = (c"i".as_ptr(), c"values".as_ptr());
        raw.release = Some(release_schema);
        raw.private_data = self.private_data();
        // SAFETY: as the texts ask.
        unsafe { Schema::from_raw(raw) }
    }
}

macro_rules! releases {
    ($($name:ident($struct:ident): $gone:literal;)*) => {$(
        pub unsafe extern "C" fn $name(this: *mut $struct) {
            // SAFETY: a struct of a script, whose share it has.
            let script = unsafe {
                (*this).release = None;
                Arc::from_raw((*this).private_data.cast_const().cast::<Mutex<Script>>())
            };
            let mut script = script.lock().unwrap();
            if $gone {
                script.gone = true;
                script.released_streams += 1;
            } else {
                script.live -= 1;
            }
        }
    )*};
}

releases! {
    release_array(ArrowArray): false;
    release_schema(ArrowSchema): false;
    release_stream(ArrowArrayStream): true;
    release_device_stream(ArrowDeviceArrayStream): true;
}

/// Begins a call with an out-struct, which makes the last text invalid. The script is locked
/// during a call, so a second one at the same time is a deadlock or an error of `try_lock`.
fn begin<'a, Out>(
    play: &'a Play,
    name: &str,
    out: *mut Out,
    zeroed: &Out,
) -> std::sync::MutexGuard<'a, Script>
where
    Out: std::fmt::Debug,
{
    let mut script = play.0.try_lock().expect("one call at a time");
    if script.gone {
        script.broken.push(format!("{name} after release"));
    }
    // SAFETY: an out-struct that the consumer has filled.
    if format!("{:?}", unsafe { &*out }) != format!("{zeroed:?}") {
        script
            .broken
            .push("an out-struct that is not zeroed".into());
    }
    script.given_text.iter_mut().for_each(|byte| *byte = b'!');
    script.failed = false;
    script
}

pub fn pull_schema(play: &Play, out: *mut ArrowSchema) -> c_int {
    let mut script = begin(play, "get_schema", out, &ArrowSchema::zeroed());
    script.failed = script.schema_code != 0;
    if script.failed || script.schema_released {
        return script.schema_code;
    }
    drop(script);
    // SAFETY: the consumer passes a struct to fill.
    unsafe { out.write(play.schema().into_raw()) };
    0
}

pub fn pull<Out: std::fmt::Debug>(
    play: &Play,
    out: *mut Out,
    zeroed: &Out,
    fill: impl FnOnce(Array, Step) -> Out,
) -> c_int {
    let mut script = begin(play, "get_next", out, zeroed);
    let at = script.pulls;
    script.pulls += 1;
    let Some(step) = script.steps.get(at).cloned() else {
        return 0;
    };
    script.failed = step.code != 0;
    drop(script);
    if step.code == 0 {
        // SAFETY: the consumer passes a struct to fill.
        unsafe { out.write(fill(play.batch(at as i64 + 1), step)) };
        return 0;
    }
    step.code
}

pub fn last_error(play: &Play) -> *const c_char {
    let mut script = play.0.try_lock().expect("one call at a time");
    if script.gone {
        script.broken.push("get_last_error after release".into());
    }
    if !script.failed {
        script.broken.push("get_last_error without an error".into());
    }
    script.asked_for_text += 1;
    let Some(text) = script.text.clone() else {
        return std::ptr::null();
    };
    script.given_text = text.into_bytes_with_nul();
    script.given_text.as_ptr().cast()
}
