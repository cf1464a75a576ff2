// SPDX-License-Identifier: Apache-2.0

//! Structs that no sound producer gives, and what becomes of them: a clear error, never a crash, and
//! nothing released twice.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr::{null, null_mut};

use fletching_abi::{
    ArrowArray, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowDeviceType, ArrowSchema,
};
use fletching_transit_rust::describe::{describe, require_same_text};
use fletching_transit_rust::error::Error;
use fletching_transit_rust::owned::Owned;
use fletching_transit_rust::stream::{forward_stream, Inspect};
use fletching_transit_rust::transit::transit_array;

thread_local! {
    /// Release callbacks of this file that ran on this thread, which is one test.
    static RELEASES: Cell<usize> = const { Cell::new(0) };
    /// The buffers of the batches that a stream of this file gives.
    static BUFFERS: Cell<[*const c_void; 2]> = const { Cell::new([null(); 2]) };
}

fn releases() -> usize {
    RELEASES.get()
}

// --- Good structs, to be spoiled

static VALUES: [i32; 4] = [1, 2, 3, 4];

unsafe extern "C" fn release_schema(this: *mut ArrowSchema) {
    RELEASES.set(RELEASES.get() + 1);
    // SAFETY: called with the struct that it stands in.
    unsafe { (*this).release = None };
}

unsafe extern "C" fn release_array(this: *mut ArrowArray) {
    RELEASES.set(RELEASES.get() + 1);
    // SAFETY: called with the struct that it stands in.
    unsafe { (*this).release = None };
}

fn good_schema() -> ArrowSchema {
    let mut schema = ArrowSchema::zeroed();
    schema.format = c"i".as_ptr();
    schema.release = Some(release_schema);
    schema
}

fn good_array(buffers: &mut [*const c_void; 2]) -> ArrowDeviceArray {
    buffers[1] = VALUES.as_ptr().cast();
    let mut array = ArrowDeviceArray::zeroed();
    array.device_type = ArrowDeviceType::CPU;
    array.device_id = -1;
    array.array.length = 4;
    array.array.n_buffers = 2;
    array.array.buffers = buffers.as_mut_ptr();
    array.array.release = Some(release_array);
    array
}

// --- Arrays

/// Sends both structs through the transit function, and gives its errno and message.
fn transit(schema: &mut ArrowSchema, array: &mut ArrowDeviceArray) -> (c_int, String) {
    let (mut out_schema, mut out_array) = (ArrowSchema::zeroed(), ArrowDeviceArray::zeroed());
    let mut message = [0_u8; 256];
    let text = message.as_mut_ptr().cast();
    // SAFETY: the structs are spoiled in ways that the function looks for.
    let code = unsafe { transit_array(schema, array, &mut out_schema, &mut out_array, text, 256) };
    // SAFETY: what came out is ours now.
    unsafe { drop((Owned::from_raw(out_schema), Owned::from_raw(out_array))) };
    let message = CStr::from_bytes_until_nul(&message).expect("the message ends");
    (
        code,
        message.to_str().expect("the message is UTF-8").to_owned(),
    )
}

/// Spoils good structs and expects the error; the caller still owns what he had.
#[track_caller]
fn refuses(spoil: impl FnOnce(&mut ArrowSchema, &mut ArrowDeviceArray), expected: &str) {
    let mut buffers = [null(); 2];
    let (mut schema, mut array) = (good_schema(), good_array(&mut buffers));
    spoil(&mut schema, &mut array);
    let alive = [schema.release.is_some(), array.array.release.is_some()];
    let (code, message) = transit(&mut schema, &mut array);
    assert_eq!((code, message.as_str()), (libc::EINVAL, expected));
    assert_eq!(
        [schema.release.is_some(), array.array.release.is_some()],
        alive
    );
    assert_eq!(releases(), 0);
}

#[test]
fn a_good_array_passes() {
    let mut buffers = [null(); 2];
    let (mut schema, mut array) = (good_schema(), good_array(&mut buffers));
    assert_eq!(transit(&mut schema, &mut array), (0, String::new()));
    assert!(schema.release.is_none() && array.array.release.is_none());
    assert_eq!(releases(), 2);
}

#[test]
fn reserved_is_zero_whatever_came_in() {
    let mut buffers = [null(); 2];
    let (mut schema, mut array) = (good_schema(), good_array(&mut buffers));
    array.reserved.fill(7);
    let (mut out_schema, mut out) = (ArrowSchema::zeroed(), ArrowDeviceArray::zeroed());
    // SAFETY: good structs; what comes out is ours.
    unsafe {
        let code = transit_array(
            &mut schema,
            &mut array,
            &mut out_schema,
            &mut out,
            null_mut(),
            0,
        );
        assert_eq!(code, 0);
        assert!(out.reserved.iter().all(|&value| value == 0));
        drop((Owned::from_raw(out_schema), Owned::from_raw(out)));
    }
}

#[test]
fn a_released_struct_is_refused() {
    refuses(
        |schema, _| schema.release = None,
        "/ schema is released (errno 22)",
    );
    refuses(
        |_, array| array.array.release = None,
        "/ array is released (errno 22)",
    );
}

#[test]
fn a_null_format_is_refused() {
    refuses(
        |schema, _| schema.format = null(),
        "/ schema.format is NULL (errno 22)",
    );
}

#[test]
fn null_lists_are_refused() {
    refuses(
        |schema, _| schema.n_children = 1,
        "/ schema.children is NULL (errno 22)",
    );
    refuses(
        |_, array| array.array.buffers = null_mut(),
        "/ array.buffers is NULL (errno 22)",
    );
    let mut list = [null_mut()];
    let spoil = |schema: &mut ArrowSchema, _: &mut ArrowDeviceArray| {
        schema.n_children = 1;
        schema.children = list.as_mut_ptr();
    };
    refuses(spoil, "/ schema.children[0] is NULL (errno 22)");
}

#[test]
fn negative_counts_are_refused() {
    refuses(
        |schema, _| schema.n_children = -1,
        "/ schema.n_children is -1 (errno 22)",
    );
    refuses(
        |_, array| array.array.length = -4,
        "/ array.length is -4 (errno 22)",
    );
    refuses(
        |_, array| array.array.offset = i64::MIN,
        &format!("/ array.offset is {} (errno 22)", i64::MIN),
    );
    refuses(
        |_, array| array.array.n_buffers = -2,
        "/ array.n_buffers is -2 (errno 22)",
    );
    refuses(
        |_, array| array.array.null_count = -2,
        "/ array.null_count is -2 (errno 22)",
    );
}

#[test]
fn different_shapes_are_refused() {
    let mut child = good_schema();
    let mut list = [&raw mut child];
    let spoil = |schema: &mut ArrowSchema, _: &mut ArrowDeviceArray| {
        schema.n_children = 1;
        schema.children = list.as_mut_ptr();
    };
    refuses(spoil, "/ has 0 children, its schema 1 (errno 22)");
    let mut dictionary = good_schema();
    let spoil =
        |schema: &mut ArrowSchema, _: &mut ArrowDeviceArray| schema.dictionary = &mut dictionary;
    refuses(
        spoil,
        "/ has a dictionary in only one of schema and array (errno 22)",
    );
}

#[test]
fn a_released_child_is_refused() {
    let mut child = good_schema();
    child.release = None;
    let mut list = [&raw mut child];
    let spoil = |schema: &mut ArrowSchema, _: &mut ArrowDeviceArray| {
        schema.n_children = 1;
        schema.children = list.as_mut_ptr();
    };
    refuses(spoil, "/0 schema is released (errno 22)");
}

#[test]
fn a_schema_that_contains_itself_is_refused() {
    let mut schema = good_schema();
    let inner = &raw mut schema;
    // SAFETY: our own struct, reached only through this pointer.
    unsafe { (*inner).dictionary = inner };
    let path = "/d".repeat(65);
    refuses(
        |schema, _| schema.dictionary = inner,
        &format!("{path} schema is nested deeper than 64 (errno 22)"),
    );
}

#[test]
fn null_pointers_are_refused() {
    let mut message = [1_u8; 8];
    let text: *mut c_char = message.as_mut_ptr().cast();
    // SAFETY: NULL is looked for, and the message has its room.
    unsafe {
        let code = transit_array(null_mut(), null_mut(), null_mut(), null_mut(), text, 8);
        assert_eq!((code, &message), (libc::EINVAL, b"schema \0"));
        let code = transit_array(
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            8,
        );
        assert_eq!(code, libc::EINVAL);
    }
}

// --- Descriptions

/// Describes good structs that were spoiled.
fn described(spoil: impl FnOnce(&mut ArrowSchema, &mut ArrowDeviceArray)) -> Result<String, Error> {
    let mut buffers = [null(); 2];
    let (mut schema, mut array) = (good_schema(), good_array(&mut buffers));
    spoil(&mut schema, &mut array);
    // SAFETY: the structs are spoiled in ways that the function looks for.
    unsafe { describe(&schema, &array) }
}

#[track_caller]
fn is_no_description(
    spoil: impl FnOnce(&mut ArrowSchema, &mut ArrowDeviceArray),
    code: c_int,
    expected: &str,
) {
    assert_eq!(described(spoil), Err(Error::new(code, expected)));
}

#[test]
fn a_good_array_is_described() {
    let text = described(|_, array| {
        array.array.offset = 1;
        array.array.length = 3;
    });
    let bytes = VALUES.iter().flat_map(|value| value.to_ne_bytes());
    let values: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    let expected = format!(
        "/ format=i name= flags=0 metadata=- length=3 null_count=0 offset=1\n\
         / buffer 0 -\n\
         / buffer 1 16:{values}\n"
    );
    assert_eq!(text, Ok(expected));
}

#[test]
fn what_cannot_be_read_is_not_described() {
    is_no_description(
        |_, a| a.array.release = None,
        libc::EINVAL,
        "/ array is released",
    );
    is_no_description(
        |_, a| a.device_type = ArrowDeviceType(21),
        libc::ENOTSUP,
        "buffers on device unknown(21) cannot be read here",
    );
    is_no_description(
        |_, a| a.sync_event = (&raw mut a.reserved).cast(),
        libc::EINVAL,
        "sync_event is not NULL, and host memory has no event",
    );
    is_no_description(
        |_, a| a.array.length = i64::MAX,
        libc::EINVAL,
        &format!("array.length is {}", i64::MAX),
    );
    is_no_description(
        |_, a| a.array.n_buffers = 1,
        libc::EINVAL,
        "array.n_buffers is 1, format 'i' has 2",
    );
    is_no_description(
        |s, _| s.format = c"\xff".as_ptr(),
        libc::ENOTSUP,
        "no description for the format '\u{fffd}'",
    );
    for format in [
        c"vx",
        c"i ",
        c"b:",
        c"tsx:",
        c"tss",
        c"w:",
        c"w:-1",
        c"w:99999999999",
        c"d:1,2,x",
    ] {
        let shown = format.to_string_lossy();
        is_no_description(
            |s, _| s.format = format.as_ptr(),
            libc::ENOTSUP,
            &format!("no description for the format '{shown}'"),
        );
    }
    is_no_description(
        |s, a| (s.format, a.array.length) = (c"w:2147483647".as_ptr(), 1 << 60),
        libc::EINVAL,
        &format!("array.length is {}", 1_i64 << 60),
    );
    is_no_description(
        |s, _| s.format = c"vu".as_ptr(),
        libc::EINVAL,
        "array.n_buffers is 2, format 'vu' has 3 or more",
    );
    let negative_size = [-8_i64];
    for (sizes, problem) in [
        (null(), "the sizes of the data buffers are NULL"),
        (
            negative_size.as_ptr().cast(),
            "the size of data buffer 0 is -8",
        ),
    ] {
        let mut buffers: [*const c_void; 4] = [null(), null(), null(), sizes];
        is_no_description(
            |s, a| {
                s.format = c"vz".as_ptr();
                (a.array.n_buffers, a.array.buffers) = (4, buffers.as_mut_ptr());
            },
            libc::EINVAL,
            problem,
        );
    }
    let negative = (-1_i32).to_ne_bytes();
    is_no_description(
        |s, _| s.metadata = negative.as_ptr().cast(),
        libc::EINVAL,
        "metadata has a count of -1",
    );
}

#[test]
fn a_name_that_is_not_utf8_is_replaced() {
    let text =
        described(|schema, _| schema.name = c"a\xffb".as_ptr()).expect("it can be described");
    assert!(text.contains(" name=a\u{fffd}b "), "{text}");
}

#[test]
fn the_first_different_line_is_named() {
    assert_eq!(require_same_text("a\nb\n", "a\nb\n"), Ok(()));
    let difference = |seen, expected| require_same_text(seen, expected).unwrap_err().to_string();
    assert_eq!(
        difference("a\nb\n", "a\nc\n"),
        "'b', expected 'c' (errno 74)"
    );
    assert_eq!(
        difference("a", "a\nb"),
        "'(the end)', expected 'b' (errno 74)"
    );
}

// --- Streams

unsafe extern "C" fn give_schema(_: *mut ArrowDeviceArrayStream, out: *mut ArrowSchema) -> c_int {
    // SAFETY: `out` may be written to.
    unsafe { out.write(good_schema()) };
    0
}

unsafe extern "C" fn give_array(
    this: *mut ArrowDeviceArrayStream,
    out: *mut ArrowDeviceArray,
) -> c_int {
    // SAFETY: private_data is the room for the buffers; `out` may be written to.
    unsafe { out.write(good_array(&mut *(*this).private_data.cast())) };
    0
}

unsafe extern "C" fn fail(_: *mut ArrowDeviceArrayStream, out: *mut ArrowDeviceArray) -> c_int {
    // SAFETY: `out` may be written to; what stands there after an error is nobody's.
    unsafe { (*out).array.release = Some(release_array) };
    libc::ENODATA
}

unsafe extern "C" fn foreign_text(_: *mut ArrowDeviceArrayStream) -> *const c_char {
    c"\xff\xfe bad".as_ptr()
}

unsafe extern "C" fn no_text(_: *mut ArrowDeviceArrayStream) -> *const c_char {
    null()
}

unsafe extern "C" fn release_stream(this: *mut ArrowDeviceArrayStream) {
    RELEASES.set(RELEASES.get() + 1);
    // SAFETY: called with the struct that it stands in.
    unsafe { (*this).release = None };
}

fn good_stream() -> ArrowDeviceArrayStream {
    let mut stream = ArrowDeviceArrayStream::zeroed();
    stream.device_type = ArrowDeviceType::CPU;
    stream.get_schema = Some(give_schema);
    stream.get_next = Some(give_array);
    stream.get_last_error = Some(foreign_text);
    stream.release = Some(release_stream);
    stream.private_data = BUFFERS.with(Cell::as_ptr).cast();
    stream
}

fn forwarded(
    spoil: impl FnOnce(&mut ArrowDeviceArrayStream),
    inspect: Inspect,
) -> Result<Owned<ArrowDeviceArrayStream>, Error> {
    let mut stream = good_stream();
    spoil(&mut stream);
    // SAFETY: the stream is spoiled in ways that the function looks for.
    unsafe { forward_stream(Owned::from_raw(stream), inspect) }
}

fn accept() -> Inspect {
    Box::new(|_, _| Ok(()))
}

/// Pulls once, and gives the errno and the text after it.
fn pull(stream: &mut ArrowDeviceArrayStream) -> (c_int, Option<Vec<u8>>) {
    let mut out = ArrowDeviceArray::zeroed();
    // SAFETY: a stream of ours, and a text that lives until the next call.
    unsafe {
        let code = stream.get_next.expect("it is set")(stream, &mut out);
        drop(Owned::from_raw(out));
        let text = stream.get_last_error.expect("it is set")(stream);
        (
            code,
            (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes().to_vec()),
        )
    }
}

#[test]
fn a_good_stream_passes() {
    let mut stream = forwarded(|_| (), accept()).expect("it is good");
    assert_eq!(pull(&mut stream), (0, None));
    drop(stream);
    assert_eq!(releases(), 3, "the batch, the schema, the stream");
}

#[test]
fn a_stream_without_a_callback_is_refused() {
    type Spoil = fn(&mut ArrowDeviceArrayStream);
    let spoilers: [(Spoil, &str, usize); 4] = [
        (|s| s.release = None, "stream is released", 0),
        (
            |s| s.get_schema = None,
            "stream has a get_schema of NULL",
            1,
        ),
        (|s| s.get_next = None, "stream has a get_next of NULL", 2),
        (
            |s| s.get_last_error = None,
            "stream has a get_last_error of NULL",
            3,
        ),
    ];
    for (spoil, expected, released) in spoilers {
        assert_eq!(
            forwarded(spoil, accept()).err(),
            Some(Error::invalid(expected))
        );
        assert_eq!(releases(), released, "each live stream is released");
    }
}

#[test]
fn an_error_is_handed_on_byte_by_byte() {
    let mut stream = forwarded(|s| s.get_next = Some(fail), accept()).expect("it is good");
    assert_eq!(
        pull(&mut stream),
        (libc::ENODATA, Some(b"\xff\xfe bad".to_vec()))
    );
    drop(stream);
    assert_eq!(
        releases(),
        2,
        "the schema and the stream, not what the failed call left"
    );
}

#[test]
fn an_error_without_a_text_is_handed_on() {
    let spoil = |s: &mut ArrowDeviceArrayStream| {
        s.get_next = Some(fail);
        s.get_last_error = Some(no_text);
    };
    let mut stream = forwarded(spoil, accept()).expect("it is good");
    assert_eq!(pull(&mut stream), (libc::ENODATA, None));
}

#[test]
fn a_panic_becomes_an_errno_and_a_text() {
    let panics: Inspect = Box::new(|_, _| panic!("on {}", "purpose"));
    let mut stream = forwarded(|_| (), panics).expect("it is good");
    assert_eq!(
        pull(&mut stream),
        (libc::EIO, Some(b"panic: on purpose".to_vec()))
    );
    drop(stream);
    assert_eq!(releases(), 3, "the batch, the schema, the stream");
}

#[test]
fn an_error_of_the_inspection_becomes_one_of_the_stream() {
    let refuse: Inspect = Box::new(|_, _| Err(Error::new(libc::EBADMSG, "no")));
    let mut stream = forwarded(|_| (), refuse).expect("it is good");
    assert_eq!(pull(&mut stream), (libc::EBADMSG, Some(b"no".to_vec())));
    drop(stream);
    assert_eq!(releases(), 3, "the batch, the schema, the stream");
}

#[test]
fn a_spoiled_batch_becomes_an_error() {
    unsafe extern "C" fn give_spoiled(
        this: *mut ArrowDeviceArrayStream,
        out: *mut ArrowDeviceArray,
    ) -> c_int {
        // SAFETY: as for `give_array`, which fills the struct first.
        unsafe {
            give_array(this, out);
            (*out).array.buffers = null_mut();
        }
        0
    }
    let mut stream = forwarded(|s| s.get_next = Some(give_spoiled), accept()).expect("it is good");
    assert_eq!(
        pull(&mut stream),
        (libc::EINVAL, Some(b"/ array.buffers is NULL".to_vec()))
    );
}

#[test]
fn null_for_the_result_is_refused() {
    let mut stream = forwarded(|_| (), accept()).expect("it is good");
    // SAFETY: NULL is looked for.
    let code = unsafe { stream.get_next.expect("it is set")(&mut *stream, null_mut()) };
    assert_eq!(code, libc::EINVAL);
}

#[test]
fn a_released_stream_answers_with_an_error() {
    let mut stream = forwarded(|_| (), accept()).expect("it is good").into_raw();
    let get_next = stream.get_next.expect("it is set");
    let get_last_error = stream.get_last_error.expect("it is set");
    let release = stream.release.expect("it is set");
    let mut out = ArrowDeviceArray::zeroed();
    // SAFETY: the callbacks look for a released stream, and for NULL.
    unsafe {
        release(&mut stream);
        assert_eq!(get_next(&mut stream, &mut out), libc::EINVAL);
        assert_eq!(get_next(null_mut(), &mut out), libc::EINVAL);
        assert_eq!(get_last_error(&mut stream), null());
        release(&mut stream);
    }
    assert_eq!(releases(), 2, "the schema and the stream");
}

// --- Ownership

#[test]
fn a_child_outlives_its_parent() {
    let mut buffers = [null(); 2];
    let mut child = good_schema();
    let mut child_array = good_array(&mut buffers).array;
    let (mut schema_list, mut array_list) = ([&raw mut child], [&raw mut child_array]);
    let mut schema = good_schema();
    schema.format = c"+s".as_ptr();
    schema.n_children = 1;
    schema.children = schema_list.as_mut_ptr();
    let mut array = ArrowDeviceArray::zeroed();
    array.array.n_children = 1;
    array.array.children = array_list.as_mut_ptr();
    array.array.release = Some(release_array);

    let (mut out_schema, mut out) = (ArrowSchema::zeroed(), ArrowDeviceArray::zeroed());
    // SAFETY: good structs; the list of children has one entry.
    unsafe {
        let code = transit_array(
            &mut schema,
            &mut array,
            &mut out_schema,
            &mut out,
            null_mut(),
            0,
        );
        assert_eq!(code, 0);
        let moved_out = Owned::take(&mut **out.array.children);
        drop((Owned::from_raw(out_schema), Owned::from_raw(out)));
        assert_eq!(releases(), 3, "both schemas and the parent array");
        assert_eq!(*(*moved_out.buffers.add(1)).cast::<[i32; 4]>(), VALUES);
        drop(moved_out);
    }
    assert_eq!(releases(), 4);
}
