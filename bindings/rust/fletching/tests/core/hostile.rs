// SPDX-License-Identifier: Apache-2.0

//! Every case of the hostile peer (tests/hostile) that concerns schemas and arrays, with
//! the crate on the other side: it ends as the catalogue says, without a crash or a leak.

use std::ffi::{c_char, c_int, CStr, CString};
use std::sync::Mutex;

use fletching::abi::{ArrowArrayStream, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};
use fletching::{Array, DeviceArray, Error, Schema};
use fletching_testing::library;

use crate::array_builder::batch;
use crate::foreign::{Log, Note};

#[repr(C)]
pub struct Message([u8; 1024]);

impl Message {
    pub fn new() -> Self {
        Self([0; 1024])
    }
    pub fn text(&self) -> String {
        let text = CStr::from_bytes_until_nul(&self.0).expect("the message ends");
        text.to_string_lossy().into()
    }
}

library! {
    /// What the tests call in the hostile peer.
    pub struct Peer from "fletching_hostile" {
        count = FletchingHostileCaseCount() -> i32;
        name = FletchingHostileCaseName(i32) -> *const c_char;
        party = FletchingHostileCaseParty(i32) -> i32;
        outcome = FletchingHostileCaseOutcome(i32) -> i32;
        code = FletchingHostileCaseCode(i32) -> i32;
        schema = FletchingHostileExportSchema(*const c_char, *mut ArrowSchema, *mut Message) -> c_int;
        array = FletchingHostileExportArray(*const c_char, *mut ArrowSchema, *mut ArrowDeviceArray, *mut Message) -> c_int;
        stream = FletchingHostileExportStream(*const c_char, *mut ArrowArrayStream, *mut Message) -> c_int;
        device_stream = FletchingHostileExportDeviceStream(*const c_char, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        consume_array = FletchingHostileConsumeArray(*const c_char, *mut ArrowDeviceArray, *mut Message) -> c_int;
        consume_stream = FletchingHostileConsumeStream(*const c_char, i64, *mut ArrowArrayStream, *mut Message) -> c_int;
        consume_device_stream = FletchingHostileConsumeDeviceStream(*const c_char, i64, *mut ArrowDeviceArrayStream, *mut Message) -> c_int;
        finish = FletchingHostileFinish(*mut Message) -> c_int;
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Party {
    Schema = 1,
    Array = 2,
    Stream = 3,
    DeviceStream = 4,
    ArrayConsumer = 6,
    StreamConsumer = 7,
}

pub const ACCEPTED: i32 = 1;
pub const REFUSED: i32 = 2;
pub const REPORTED: i32 = 3;
pub const TOLERATED: i32 = 4;

pub struct Case {
    pub name: CString,
    pub outcome: i32,
    pub code: i32,
}

impl Case {
    pub fn is(&self, name: &str) -> bool {
        self.name.to_bytes() == name.as_bytes()
    }

    /// Compares the result with the catalogue.
    pub fn check(&self, error: Option<&Error>) {
        let name = &self.name;
        let code = error.map_or(0, Error::code);
        match self.outcome {
            ACCEPTED => assert_eq!(code, 0, "{name:?}: {error:?}"),
            REFUSED => assert!(
                code > 0 && !error.unwrap().message().is_empty(),
                "{name:?}: {error:?}"
            ),
            REPORTED => assert_eq!(code, self.code, "{name:?}: {error:?}"),
            _ => {}
        }
        // Whatever the peer said, it can be printed and has an end.
        let message = error.map_or("", Error::message);
        assert!(message.len() <= 64 * 1024, "{name:?}");
        assert!(message
            .chars()
            .all(|c| c == '\n' || c == '\t' || !c.is_ascii_control()));
    }
}

/// The account of the peer is one for the process.
pub static ACCOUNT: Mutex<()> = Mutex::new(());

/// Calls `play` for each case of a party; after it nothing may be left.
pub fn each(party: Party, mut play: impl FnMut(&Peer, &Case)) {
    let _one = ACCOUNT
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner());
    let peer = Peer::load().unwrap();
    let mut played = 0;
    // SAFETY: the functions of the peer, with indices that it has.
    unsafe {
        for index in 0..(peer.count)() {
            if (peer.party)(index) != party as i32 {
                continue;
            }
            let case = Case {
                name: CStr::from_ptr((peer.name)(index)).into(),
                outcome: (peer.outcome)(index),
                code: (peer.code)(index),
            };
            play(&peer, &case);
            let mut message = Message::new();
            let code = (peer.finish)(&mut message);
            assert_eq!(code, 0, "{:?}: {}", case.name, message.text());
            played += 1;
        }
    }
    assert!(played > 0, "party {}", party as i32);
}

pub fn schema(peer: &Peer, name: &CStr) -> Schema {
    let mut schema = Schema::default();
    // SAFETY: a case of the peer, which fills the slot with what the reader has to survive.
    let code = unsafe { (peer.schema)(name.as_ptr(), schema.out(), std::ptr::null_mut()) };
    assert_eq!(code, 0);
    schema
}

pub fn array(peer: &Peer, name: &CStr) -> DeviceArray {
    let (mut schema, mut array) = (Schema::default(), DeviceArray::default());
    // SAFETY: as above.
    let code = unsafe {
        (peer.array)(
            name.as_ptr(),
            schema.out(),
            array.out(),
            std::ptr::null_mut(),
        )
    };
    assert_eq!(code, 0);
    array
}

// --- Schemas ------------------------------------------------------------------------------------

/// Reads what there is to read below a schema whose shape was checked. What a format means is not
/// for this crate to say.
fn read(schema: &Schema) -> Result<usize, Error> {
    let mut texts = schema.format().to_bytes().len() + schema.name().to_bytes().len();
    texts += schema
        .metadata()?
        .iter()
        .map(|(key, value)| key.len() + value.len())
        .sum::<usize>();
    for child in schema.children().iter().flatten() {
        texts += read(child)?;
    }
    Ok(texts)
}

#[test]
fn schemas_are_read_or_refused() {
    let mut refused = Vec::new();
    each(Party::Schema, |peer, case| {
        let read = schema(peer, &case.name)
            .share()
            .and_then(|shared| shared.view())
            .and_then(|view| read(&view));
        if let Err(error) = &read {
            assert!(error.code() > 0 && !error.message().is_empty());
            refused.push(case.name.to_str().unwrap().to_owned());
        }
        if case.outcome == ACCEPTED {
            case.check(read.err().as_ref());
        }
    });
    // The others are about formats.
    assert_eq!(
        refused,
        [
            "schema.released",
            "schema.format-null",
            "schema.metadata-negative-count",
            "schema.metadata-negative-length",
            "schema.deep",
            "schema.children-negative",
            "schema.children-huge",
            "schema.children-null",
            "schema.child-null",
            "schema.child-released",
            "schema.children-of-primitive",
            "schema.cycle",
        ]
    );
}

#[test]
fn schemas_are_moved_and_released_unread() {
    each(Party::Schema, |peer, case| {
        let first = schema(peer, &case.name);
        let mut raw = first.into_raw();
        // SAFETY: the schema of the case.
        let second = unsafe { Schema::move_from(&mut raw) };
        assert!(raw.is_released());
        drop(second);
    });
}

// --- Arrays -------------------------------------------------------------------------------------

#[test]
fn arrays_are_moved_and_released_unread() {
    each(Party::Array, |peer, case| {
        let mut raw = ArrowDeviceArray::zeroed();
        // SAFETY: the target is there.
        unsafe { array(peer, &case.name).move_to(&mut raw) };
        // SAFETY: the array of the case.
        drop(unsafe { DeviceArray::move_from(&mut raw) });
        assert!(raw.array.is_released());
    });
}

/// Columns and children: of a child that is wrong an error, and the parent stays whole. What the
/// count says is not believed.
#[test]
fn arrays_are_shared_and_taken_apart_or_refused() {
    each(Party::Array, |peer, case| {
        let expects_both = case.is("array.good-children");
        let shared = array(peer, &case.name).share();
        assert_eq!(
            shared.is_err(),
            case.is("array.released"),
            "{:?}",
            case.name
        );
        if let Ok(shared) = shared {
            let columns = [usize::MAX, 0, 1].map(|index| shared.column(index));
            assert!(columns[0].is_err());
            let found = columns.iter().flatten().count();
            assert!(!expects_both || found == 2, "{:?}", case.name);
            drop(shared.view());
            drop(shared);
            assert!(columns.iter().flatten().all(|column| !column.is_released()));
        }

        let mut parent = array(peer, &case.name);
        let parts = [usize::MAX, 1, 1, 0].map(|index| parent.take_child(index));
        drop(parent.take_dictionary());
        drop(parent);
        assert!(parts[0].is_err() && parts[2].is_err());
        assert!(!expects_both || (parts[1].is_ok() && parts[3].is_ok()));
    });
}

#[test]
fn accessors_of_any_array_do_no_harm() {
    each(Party::Array, |peer, case| {
        let array = array(peer, &case.name);
        let _ = (
            array.length(),
            array.null_count(),
            array.offset(),
            array.device_type(),
        );
        let known = array
            .children()
            .iter()
            .flatten()
            .filter(|child| child.is_released());
        assert!(known.count() <= 1);
        assert!(!case.is("array.good") || array.buffers().len() == 2);
        let plain = Array::try_from(array);
        let on_cpu = !case.name.to_str().unwrap().contains("device-unknown")
            && !case.name.to_str().unwrap().contains("device-negative")
            && !case.name.to_str().unwrap().contains("event-");
        assert_eq!(plain.is_ok(), on_cpu, "{:?}", case.name);
    });
}

/// Our array of two columns in the hands of consumers that may do what they do.
#[test]
fn arrays_of_ours_survive_rude_consumers() {
    each(Party::ArrayConsumer, |peer, case| {
        let log = Log::default();
        // The peer releases the array before `finish` returns, on threads of its own or not.
        let consume = |array: DeviceArray, released: &[&str]| {
            let (mut raw, mut message) = (array.into_raw(), Message::new());
            // SAFETY: an array of ours, which is moved in.
            let codes = unsafe {
                let code = (peer.consume_array)(case.name.as_ptr(), &mut raw, &mut message);
                (code, (peer.finish)(std::ptr::null_mut()))
            };
            assert_eq!(codes, (0, 0), "{:?}: {}", case.name, message.text());
            assert_eq!(log.take(), released, "{:?}", case.name);
        };
        consume(batch(&log, 2), &["dropped"]);

        let shared = batch(&log, 2).share().unwrap();
        consume(shared.view().unwrap(), &[]);
        drop(shared);
        assert_eq!(log.take(), ["dropped"]);

        // The object belongs to the array, and the data to its children too.
        let mut attached = batch(&log, 0);
        attached.attach(Note(log.clone(), "attached")).unwrap();
        consume(attached, &["dropped", "attached"]);

        let mut parent = batch(&log, 3);
        let child = parent.take_child(1).unwrap();
        consume(parent, &[]);
        drop(child);
        assert_eq!(log.take(), ["dropped"]);
    });
}
