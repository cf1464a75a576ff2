// SPDX-License-Identifier: Apache-2.0

//! Owners: one release, children that are moved out, views, and what is tied to a release.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use fletching::abi::{ArrowArray, ArrowDeviceArray};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Node, Schema,
    SchemaBuilder,
};

/// Counts its drops.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn token(&self) -> Token {
        Token(Arc::clone(&self.0))
    }
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Token(Arc<AtomicUsize>);

impl Drop for Token {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A table of two columns of three values; the second has a dictionary.
fn table(drops: &Drops) -> ArrayBuilder<(Token, [i32; 3])> {
    let capacity = ArrayCapacity {
        arrays: 3,
        buffers: 7,
    };
    let mut builder = ArrayBuilder::new(capacity, (drops.token(), [1, 2, 3])).unwrap();
    let values = builder.object().1.as_ptr().cast();
    builder.set(Node::ROOT, ArrayValues::of(3), &[ptr::null()]);
    let first = builder.add_children(Node::ROOT, 2);
    for index in 0..2 {
        builder.set(
            first.sibling(index),
            ArrayValues::of(3),
            &[ptr::null(), values],
        );
    }
    let dictionary = builder.add_dictionary(first.sibling(1));
    builder.set(dictionary, ArrayValues::of(2), &[ptr::null(), values]);
    builder
}

#[test]
fn a_drop_releases_once() {
    let drops = Drops::default();
    let array = table(&drops).finish().unwrap();
    let mut raw = array.into_raw();
    assert_eq!(drops.count(), 0);
    // SAFETY: the struct was made above.
    let array = unsafe { Array::move_from(&mut raw) };
    assert!(raw.is_released());
    drop(array);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_child_that_was_moved_out_keeps_the_data() {
    let drops = Drops::default();
    let mut array = table(&drops).finish().unwrap();
    let mut child = array.take_child(1).unwrap();
    assert!(array.children()[1].unwrap().is_released());
    assert_eq!(
        array.take_child(1).unwrap_err().message(),
        "take_child: child 1: released or moved out: expected a live struct"
    );
    assert_eq!(
        array.take_child(2).unwrap_err().message(),
        "take_child: child 2: no such child: expected an index below 2"
    );
    drop(array);
    assert_eq!(drops.count(), 0);
    // SAFETY: three values of the builder's object.
    let values = unsafe { std::slice::from_raw_parts(child.buffers()[1].cast::<i32>(), 3) };
    assert_eq!(values, [1, 2, 3]);
    let dictionary = child.take_dictionary().unwrap();
    assert!(child.take_dictionary().is_err());
    drop(child);
    assert_eq!(drops.count(), 0);
    assert_eq!(dictionary.length(), 2);
    drop(dictionary);
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_builder_that_is_not_finished_drops_its_object() {
    let drops = Drops::default();
    drop(table(&drops));
    assert_eq!(drops.count(), 1);
    let mut builder = table(&drops);
    builder.set(Node::ROOT, ArrayValues::of(1), &[]);
    let error = builder.finish().unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (
            libc::EINVAL,
            "array builder: array set twice: expected one call for each added array"
        )
    );
    assert_eq!(drops.count(), 2);
}

#[test]
fn an_attached_object_is_dropped_after_the_release() {
    struct After(Drops, Drops);
    impl Drop for After {
        fn drop(&mut self) {
            assert_eq!(self.0.count(), 1);
            drop(self.1.token());
        }
    }
    let (data, object) = (Drops::default(), Drops::default());
    let mut array = table(&data).finish().unwrap();
    array.attach(After(data.clone(), object.clone())).unwrap();
    drop(array);
    assert_eq!((data.count(), object.count()), (1, 1));
    assert!(Array::default().attach(object.token()).is_err());
    assert_eq!(object.count(), 2);
}

#[test]
fn views_keep_what_they_show() {
    let drops = Drops::default();
    let array: DeviceArray = table(&drops).finish().unwrap().into();
    let shared = array.share().unwrap();
    let view = shared.view().unwrap();
    let mut column = shared.column(1).unwrap();
    assert!(shared.column(2).is_err());
    drop((shared, view));
    assert_eq!(
        (column.device_type(), column.device_id()),
        (ArrowDeviceType::CPU, -1)
    );
    let dictionary = column.take_dictionary().unwrap();
    drop(column);
    assert_eq!((drops.count(), dictionary.length()), (0, 2));
    drop(dictionary);
    assert_eq!(drops.count(), 1);
}

/// A foreign device array whose release destroys its event, as it may.
struct Foreign {
    releases: Arc<AtomicUsize>,
    event: u64,
    child: ArrowArray,
    children: [*mut ArrowArray; 1],
}

unsafe extern "C" fn release_foreign(this: *mut ArrowArray) {
    // SAFETY: the array was made by `foreign`.
    unsafe {
        let mut foreign = Box::from_raw((*this).private_data.cast::<Foreign>());
        ArrowArray::release_once(&mut foreign.child);
        foreign.event = 0;
        foreign.releases.fetch_add(1, Ordering::SeqCst);
    }
}

unsafe extern "C" fn release_foreign_child(this: *mut ArrowArray) {
    // SAFETY: as above; the count outlives the child.
    unsafe {
        (*this).release = None;
        Arc::from_raw((*this).private_data.cast::<AtomicUsize>()).fetch_add(100, Ordering::SeqCst);
    }
}

fn foreign(releases: &Arc<AtomicUsize>) -> DeviceArray {
    let mut child = ArrowArray::zeroed();
    child.length = 5;
    child.release = Some(release_foreign_child);
    child.private_data = Arc::into_raw(Arc::clone(releases)).cast_mut().cast();
    let state = Box::into_raw(Box::new(Foreign {
        releases: Arc::clone(releases),
        event: 7,
        child,
        children: [ptr::null_mut()],
    }));
    let mut raw = ArrowDeviceArray::zeroed();
    // SAFETY: the state was made above and lives until the release.
    unsafe {
        (*state).children[0] = &raw mut (*state).child;
        raw.array.children = (&raw mut (*state).children).cast();
        raw.sync_event = (&raw mut (*state).event).cast();
        raw.array.n_children = 1;
        raw.array.release = Some(release_foreign);
        raw.array.private_data = state.cast();
        raw.device_type = ArrowDeviceType::CUDA;
        DeviceArray::from_raw(raw)
    }
}

#[test]
fn the_event_of_a_foreign_array_lives_as_long_as_its_children() {
    let releases = Arc::new(AtomicUsize::new(0));
    let mut parent = foreign(&releases);
    let child = parent.take_child(0).unwrap();
    drop(parent);
    assert_eq!(releases.load(Ordering::SeqCst), 0);
    // SAFETY: the event is held back.
    assert_eq!(unsafe { *child.sync_event().cast::<u64>() }, 7);
    drop(child);
    assert_eq!(releases.load(Ordering::SeqCst), 101);
}

#[test]
fn a_device_array_with_an_event_is_no_array() {
    let releases = Arc::new(AtomicUsize::new(0));
    let error = Array::try_from(foreign(&releases)).unwrap_err();
    assert_eq!(
        error.message(),
        "array: wrong device type: expected cpu, got cuda"
    );
    assert_eq!(releases.load(Ordering::SeqCst), 101);
}

#[test]
fn a_schema_has_what_it_was_built_from() {
    let schema = SchemaBuilder::new("+s")
        .child(
            SchemaBuilder::new("+l")
                .name("list")
                .child(SchemaBuilder::new("u").name("item")),
        )
        .child(SchemaBuilder::new("c").dictionary(SchemaBuilder::new("g").metadata("k", "v")))
        .metadata("unit", "m")
        .build()
        .unwrap();
    assert_eq!(
        (schema.format(), schema.name(), schema.flags()),
        (c"+s", c"", 2)
    );
    assert_eq!(schema.metadata().unwrap().get(b"unit"), Some(&b"m"[..]));
    let list = schema.children()[0].unwrap();
    assert_eq!((list.format(), list.name()), (c"+l", c"list"));
    assert_eq!(list.children()[0].unwrap().name(), c"item");
    let values = schema.children()[1].unwrap().dictionary().unwrap();
    assert_eq!(
        values.metadata().unwrap().iter().collect::<Vec<_>>(),
        [(&b"k"[..], &b"v"[..])]
    );
    let shared = schema.share().unwrap();
    let mut copy = shared.view().unwrap();
    drop(shared);
    let child = copy.take_child(1).unwrap();
    drop(copy);
    assert_eq!(child.dictionary().unwrap().format(), c"g");

    let error = SchemaBuilder::new("+s")
        .child(SchemaBuilder::new(""))
        .build()
        .unwrap_err();
    assert_eq!(
        error.message(),
        "schema builder: child 0: format: empty: expected a format string"
    );
    assert!(SchemaBuilder::new("i").name("a\0b").build().is_err());
    assert!(Schema::default().share().is_err());
}

#[test]
fn a_schema_without_a_format_is_not_shown() {
    let mut raw = SchemaBuilder::new("i").build().unwrap().into_raw();
    raw.format = ptr::null();
    // SAFETY: a schema that lacks what is mandatory, which a view has to notice.
    let shared = unsafe { Schema::from_raw(raw) }.share().unwrap();
    let error = shared.view().unwrap_err();
    assert_eq!(
        error.message(),
        "view: the struct or a descendant has format NULL"
    );
    assert!(shared.try_unwrap().is_ok());
}
