// SPDX-License-Identifier: Apache-2.0

//! Checks every declaration against the oracle: layout, memory in both directions, calls in both
//! directions, constants. Names and signatures come from the generated list, so a wrong spec fails
//! here with the oracle's message and not at compile time.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use fletching_abi::DEVICES;
use fletching_testing::cells::{Subject, Tally};
use fletching_testing::entries::{CallbackEntry, StructEntry};
use fletching_testing::fields::{ENUMS, INTEGERS, STRUCTS};
use fletching_testing::oracle::{self, c_name, checked, functions};

#[test]
fn layout() {
    for_each_struct("layout", check_layout);
}

#[test]
fn every_struct_is_declared() {
    let _turn = take_turn();
    let mut problems = Vec::new();
    for name in oracle_structs() {
        if STRUCTS.iter().all(|entry| entry.name != name) {
            let mut tally = Tally::default();
            let owner = c_name(&name);
            // SAFETY: names are NUL-terminated. The list of fields is empty, so the oracle names
            // the first field.
            tally.check(checked(|text, room| unsafe {
                (functions().check_field_names)(owner.as_ptr(), c"".as_ptr(), text, room)
            }));
            tally.report(Subject::Struct(&name), "layout");
            problems.append(&mut tally.problems);
        }
    }
    fail_with(problems);
}

#[test]
fn c_writes() {
    for_each_struct("c_writes", |entry, tally| {
        let name = c_name(entry.name);
        let mut object = Object::new(entry);
        // SAFETY: the object has room for the struct as declared in C and in Rust.
        let filled = unsafe { (functions().fill)(name.as_ptr(), object.pointer().cast()) };
        tally.equal(&format!("{}: errno of Fill", entry.name), filled, 0);
        for leaf in entry.leaves {
            let path = c_name(leaf.path);
            // SAFETY: as above; names are NUL-terminated.
            tally.check(unsafe {
                let seen = (leaf.read)(object.pointer());
                checked(|text, room| {
                    let check_read = functions().check_read;
                    check_read(name.as_ptr(), path.as_ptr(), leaf.element, seen, text, room)
                })
            });
        }
    });
}

#[test]
fn c_verifies() {
    for_each_struct("c_verifies", |entry, tally| {
        let name = c_name(entry.name);
        let mut object = Object::new(entry);
        for leaf in entry.leaves {
            let path = c_name(leaf.path);
            // SAFETY: the object has room for the struct; names are NUL-terminated.
            unsafe {
                let canary = (functions().canary)(name.as_ptr(), path.as_ptr(), leaf.element);
                (leaf.write)(object.pointer(), canary);
            }
        }
        // SAFETY: as above.
        tally.check(checked(|text, room| unsafe {
            (functions().check_written)(name.as_ptr(), object.pointer().cast(), text, room)
        }));
    });
}

#[test]
fn c_calls() {
    for_each_callback("c_calls", |entry, callback, variant, tally| {
        let (name, callback_name) = (c_name(entry.name), c_name(callback.name));
        let mut object = Object::new(entry);
        // SAFETY: the layout was checked, so C finds the callbacks where Rust stored them.
        tally.check(unsafe {
            (callback.install)(object.pointer());
            checked(|text, room| {
                let object = object.pointer().cast();
                let call = functions().call;
                call(
                    name.as_ptr(),
                    callback_name.as_ptr(),
                    variant,
                    object,
                    text,
                    room,
                )
            })
        });
        tally.releases += u64::from(callback.name == "release");
    });
}

#[test]
fn c_is_called() {
    for_each_callback("c_is_called", |entry, callback, variant, tally| {
        let (name, callback_name) = (c_name(entry.name), c_name(callback.name));
        let mut object = Object::new(entry);
        // SAFETY: the layout was checked, so Rust finds the callbacks where C stored them; the rest
        // of the object is zeroed.
        tally.check(unsafe {
            let pointer = object.pointer();
            (functions().install)(name.as_ptr(), pointer.cast());
            let begin_call = functions().begin_call;
            begin_call(
                name.as_ptr(),
                callback_name.as_ptr(),
                variant,
                pointer.cast(),
            );
            let result = (callback.call)(pointer);
            checked(|text, room| (functions().end_call)(result, text, room))
        });
    });
}

#[test]
fn constants() {
    let _turn = take_turn();
    let mut tally = Tally::default();
    let names: Vec<_> = INTEGERS.iter().map(|(name, _)| *name).collect();
    let names = c_name(&names.join(","));
    // SAFETY: names are NUL-terminated.
    tally.check(checked(|text, room| unsafe {
        (functions().check_constant_names)(names.as_ptr(), text, room)
    }));
    for &(name, value) in INTEGERS {
        let name = c_name(name);
        // SAFETY: as above.
        tally.check(checked(|text, room| unsafe {
            (functions().check_constant)(name.as_ptr(), value, text, room)
        }));
    }
    for (owner, enumerators) in ENUMS {
        let values = enumerators
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        let (owner, values) = (c_name(owner), c_name(&values.collect::<Vec<_>>().join(",")));
        // SAFETY: as above.
        tally.check(checked(|text, room| unsafe {
            (functions().check_enumerators)(owner.as_ptr(), values.as_ptr(), text, room)
        }));
    }
    tally.report(Subject::Struct("constants"), "layout");
    fail_with(tally.problems);
}

#[test]
fn rule_device_type_values_of_dlpack() {
    let _turn = take_turn();
    let values = DEVICES
        .iter()
        .map(|device| format!("{}={}", device.dlpack_name, device.device_type.0));
    let values = c_name(&values.collect::<Vec<_>>().join(","));
    // SAFETY: names are NUL-terminated.
    let answer = checked(|text, room| unsafe {
        (functions().check_enumerators)(c"DLDeviceType".as_ptr(), values.as_ptr(), text, room)
    });
    assert_eq!(answer, Ok(()));
}

/// DLPack defines the number first: the test above finds the name there.
#[test]
fn rule_device_type_dlpack_first() {
    for device in DEVICES {
        assert!(!device.dlpack_name.is_empty(), "{}", device.name);
    }
}

// --- Helpers

/// The oracle has one current call, so tests run one at a time.
fn take_turn() -> impl Drop {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the check for every struct, reports a cell for each, and fails with all messages at once.
fn for_each_struct(direction: &str, check: impl Fn(&StructEntry, &mut Tally)) {
    let _turn = take_turn();
    let mut problems = Vec::new();
    for entry in STRUCTS {
        let mut tally = Tally::default();
        check(entry, &mut tally);
        tally.report(Subject::Struct(entry.name), direction);
        problems.append(&mut tally.problems);
    }
    fail_with(problems);
}

fn fail_with(problems: Vec<String>) {
    assert!(
        problems.is_empty(),
        "{} problems\n{}",
        problems.len(),
        problems.join("\n")
    );
}

/// Runs the check for every callback and variant. Skips a struct whose layout differs from C: the
/// call would jump to an arbitrary address.
fn for_each_callback(
    direction: &str,
    check: impl Fn(&StructEntry, &CallbackEntry, i32, &mut Tally),
) {
    // SAFETY: the function takes no arguments.
    let variants = unsafe { (functions().variant_count)() };
    for_each_struct(direction, |entry, tally| {
        let mut layout = Tally::default();
        check_layout(entry, &mut layout);
        if let Some(problem) = layout.problems.first() {
            tally.check(Err(format!(
                "{}: not called, its layout differs: {problem}",
                entry.name
            )));
            return;
        }
        check_no_callback_is_missing(entry, tally);
        for callback in entry.callbacks {
            for variant in 0..variants {
                check(entry, callback, variant, tally);
            }
        }
    });
}

/// Checks that every upstream callback is declared. A call of a missing one fails with the oracle's
/// message.
fn check_no_callback_is_missing(entry: &StructEntry, tally: &mut Tally) {
    let owner = c_name(entry.name);
    let mut object = Object::new(entry);
    let expected = oracle_callbacks(entry);
    let what = format!("{}: number of callbacks", entry.name);
    tally.equal(&what, entry.callbacks.len(), expected.len());
    for name in expected {
        if entry.callbacks.iter().all(|callback| callback.name != name) {
            let name = c_name(&name);
            // SAFETY: the object is zeroed, so the oracle finds NULL and makes no call.
            tally.check(checked(|text, room| unsafe {
                let object = object.pointer().cast();
                (functions().call)(owner.as_ptr(), name.as_ptr(), 0, object, text, room)
            }));
        }
    }
}

fn check_layout(entry: &StructEntry, tally: &mut Tally) {
    let name = c_name(entry.name);
    let (size, align) = (entry.size as i64, entry.align as i64);
    let fields: Vec<_> = entry.direct_fields().map(|field| field.path).collect();
    let fields = c_name(&fields.join(","));
    let callbacks: Vec<_> = entry
        .callbacks
        .iter()
        .map(|callback| callback.name)
        .collect();
    let callbacks = c_name(&callbacks.join(","));
    // SAFETY: names are NUL-terminated.
    unsafe {
        tally.check(checked(|text, room| {
            (functions().check_struct)(name.as_ptr(), size, align, text, room)
        }));
        tally.check(checked(|text, room| {
            (functions().check_field_names)(name.as_ptr(), fields.as_ptr(), text, room)
        }));
    }
    // SAFETY: as above.
    tally.check(checked(|text, room| unsafe {
        (functions().check_callback_names)(name.as_ptr(), callbacks.as_ptr(), text, room)
    }));
    for callback in entry.callbacks {
        let (callback, signature) = (c_name(callback.name), c_name(&(callback.signature)()));
        // SAFETY: as above.
        tally.check(checked(|text, room| unsafe {
            let check_signature = functions().check_signature;
            check_signature(
                name.as_ptr(),
                callback.as_ptr(),
                signature.as_ptr(),
                text,
                room,
            )
        }));
    }
    for field in entry.fields {
        let path = c_name(field.path);
        let (offset, size) = (field.offset as i64, field.size as i64);
        // SAFETY: as above.
        tally.check(checked(|text, room| unsafe {
            (functions().check_field)(name.as_ptr(), path.as_ptr(), offset, size, text, room)
        }));
    }
}

// --- The oracle's lists

fn oracle_structs() -> Vec<String> {
    // SAFETY: any index is allowed.
    let name = |index| unsafe { oracle::name((functions().struct_name)(index)) };
    (0..).map_while(name).collect()
}

fn oracle_callbacks(entry: &StructEntry) -> Vec<String> {
    let owner: CString = c_name(entry.name);
    // SAFETY: any index is allowed; the name is NUL-terminated.
    let name = |index| unsafe { oracle::name((functions().callback_name)(owner.as_ptr(), index)) };
    (0..).map_while(name).collect()
}

/// Zeroed memory with room for a struct as declared in Rust and in C, plus a margin: a wrong
/// declaration must fail a check, not crash.
struct Object(Vec<u128>);

impl Object {
    fn new(entry: &StructEntry) -> Self {
        let name = c_name(entry.name);
        // SAFETY: the name is NUL-terminated.
        let size = unsafe { (functions().size)(name.as_ptr()) };
        let bytes = entry.size.max(usize::try_from(size).unwrap_or(0)) + 64;
        Self(vec![0; bytes.div_ceil(size_of::<u128>())])
    }

    fn pointer(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}
