// SPDX-License-Identifier: Apache-2.0

//! Views of a shared struct.

use std::ptr;
use std::sync::Arc;

use fletching::abi::{ArrowArray, ARROW_FLAG_NULLABLE};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, DeviceArray, Node, Schema, SchemaBuilder,
};

use crate::foreign::{
    array, bare_schema, child_of, device_array, mark_schema, raw_array, refused, replace, Log, Note,
};

#[test]
fn view_shares_buffers_and_keeps_struct_alive() {
    let log = Log::default();
    let shared = device_array(&log, "a", 2, true).share().unwrap();
    let view = shared.view().unwrap();
    let (shown, original) = (&view.as_raw().array, &shared.as_raw().array);
    assert_eq!((shown.length, shown.n_buffers, shown.n_children), (1, 2, 2));
    assert!(ptr::eq(shown.buffers, original.buffers));
    assert_ne!(shown.children, original.children);
    assert_ne!(shown.dictionary, original.dictionary);
    assert_eq!(view.sync_event(), shared.sync_event());
    assert_eq!((view.device_id(), view.as_raw().reserved), (3, [0; 3]));
    assert_eq!(view.dictionary().unwrap().length(), 1);
    drop(shared);
    log.expect(&[]);
    drop(view);
    log.expect(&["a0", "a1", "ad", "a", "event"]);
}

#[test]
fn column_and_clone_keep_struct_alive() {
    let log = Log::default();
    let shared = device_array(&log, "a", 2, false).share().unwrap();
    let clone = shared.clone();
    let shared = shared.try_unwrap().unwrap_err();
    drop(clone);
    let column = shared.column(1).unwrap();
    let shared = shared.try_unwrap().unwrap_err();
    assert_eq!(column.sync_event(), shared.sync_event());
    refused(
        shared.column(2),
        "column: child 2: no such child: expected an index below 2",
    );
    drop(column);
    let owner = shared.try_unwrap().unwrap();
    log.expect(&[]);
    drop(owner);
    log.expect(&["a0", "a1", "a", "event"]);
}

#[test]
fn child_taken_from_view_leaves_other_views_intact() {
    let log = Log::default();
    let shared = device_array(&log, "a", 2, true).share().unwrap();
    let mut view = shared.view().unwrap();
    let child = view.take_child(0).unwrap();
    let dictionary = view.take_dictionary().unwrap();
    let other = shared.view().unwrap();
    assert!(!other.children()[0].unwrap().is_released());
    assert!(!shared.children()[0].unwrap().is_released());
    drop((shared, view, other, dictionary));
    log.expect(&[]);
    assert_eq!(child.length(), 1);
    drop(child);
    log.expect(&["a0", "a1", "ad", "a", "event"]);
}

#[test]
fn nested_views_release_without_recursion() {
    let log = Log::default();
    let mut view = device_array(&log, "a", 1, true);
    for _ in 0..crate::ownership::MANY {
        view = view.share().unwrap().view().unwrap();
    }
    let column = view.share().unwrap().column(0).unwrap();
    log.expect(&[]);
    assert_eq!(column.length(), 1);
    drop(column);
    log.expect(&["a0", "ad", "a", "event"]);
    let mut schema = SchemaBuilder::new("+s").child(SchemaBuilder::new("i").name("a"));
    schema = SchemaBuilder::from_schema(&schema.build().unwrap()).unwrap();
    let mut view = schema.build().unwrap();
    for _ in 0..crate::ownership::MANY {
        view = view.share().unwrap().view().unwrap();
    }
    assert_eq!(view.take_child(0).unwrap().name(), c"a");
}

/// Each view keeps the viewed view alive, because it has an attached object.
#[test]
fn nested_views_with_attachments_release_without_recursion() {
    let log = Log::default();
    let mut view = device_array(&log, "a", 0, false);
    for name in ["first", "second", "third"] {
        view = view.share().unwrap().view().unwrap();
        view.attach(Note(log.clone(), name)).unwrap();
    }
    drop(view);
    log.expect(&["a", "event", "first", "second", "third"]);

    let (log, object) = (Log::default(), Arc::new(()));
    let mut view = array(&log, "a", 1);
    for _ in 0..crate::ownership::MANY {
        view = view.share().unwrap().view().unwrap();
        view.attach(Arc::clone(&object)).unwrap();
    }
    let child = view.take_child(0).unwrap();
    drop(view);
    log.expect(&[]);
    drop(child);
    log.expect(&["a0", "a"]);
    assert_eq!(Arc::strong_count(&object), 1);
}

/// A release inside a user's drop is complete when it returns, also during the release of a view.
#[test]
fn views_in_attached_object_are_released_with_it() {
    struct Holder(Log, Option<Array>);
    impl Drop for Holder {
        fn drop(&mut self) {
            drop(self.1.take());
            self.0.push("holder");
        }
    }
    let log = Log::default();
    let inner = array(&log, "inner", 0).share().unwrap().view().unwrap();
    let outer = array(&log, "outer", 0).share().unwrap();
    let mut view = outer.view().unwrap();
    drop(outer);
    view.attach(Holder(log.clone(), Some(inner))).unwrap();
    drop(view.share().unwrap().view().unwrap());
    log.expect(&["outer", "inner", "holder"]);
}

/// A view of a view keeps objects attached to the inner view, and structs put into it.
#[test]
fn view_of_changed_view_keeps_view() {
    let (log, object) = (Log::default(), Arc::new(()));
    let mut view = array(&log, "a", 2).share().unwrap().view().unwrap();
    view.attach(Arc::clone(&object)).unwrap();
    let view = view.share().unwrap().view().unwrap();
    assert_eq!(Arc::strong_count(&object), 2);
    drop(view);
    assert_eq!(Arc::strong_count(&object), 1);
    log.expect(&["a0", "a1", "a"]);

    let log = Log::default();
    let view = array(&log, "b", 2).share().unwrap().view().unwrap();
    // SAFETY: the test owns the child, which is replaced while the view is not in use.
    unsafe {
        let place = *view.as_raw().children.add(1);
        drop(Array::move_from(place));
        array(&log, "c", 0).move_to(place);
    }
    let view = view.share().unwrap().view().unwrap();
    log.expect(&[]);
    drop(view);
    log.expect(&["c", "b0", "b1", "b"]);
}

#[test]
fn view_of_shared_column_keeps_struct_alive() {
    let log = Log::default();
    let shared = array(&log, "a", 1).share().unwrap();
    let view = shared.view().unwrap().share().unwrap();
    let column = view.column(0).unwrap().share().unwrap().view().unwrap();
    drop((shared, view));
    log.expect(&[]);
    assert_eq!(column.length(), 1);
    drop(column);
    log.expect(&["a0", "a"]);
}

#[test]
fn schema_view_shares_texts() {
    let inner = SchemaBuilder::new("s").dictionary(SchemaBuilder::new("u").metadata("k", "v"));
    let shared = SchemaBuilder::new("+s")
        .name("root")
        .child(SchemaBuilder::new("i").name("first"))
        .child(SchemaBuilder::new("+l").child(inner))
        .build()
        .unwrap()
        .share()
        .unwrap();
    let format = shared.as_raw().format;
    let view = shared.view().unwrap();
    drop(shared);
    assert_eq!((view.as_raw().format, view.name()), (format, c"root"));
    let [Some(first), Some(second)] = view.children() else {
        panic!("{:?}", view.children());
    };
    assert_eq!((first.name(), first.children().len()), (c"first", 0));
    assert!(first.as_raw().children.is_null() && first.dictionary().is_none());
    let item = second.children()[0].unwrap();
    assert_eq!(second.name(), c"");
    assert_eq!(
        item.dictionary().unwrap().metadata().unwrap().get(b"k"),
        Some(&b"v"[..])
    );
}

#[test]
fn rule_schema_flags_propagated() {
    let unknown = 1 << 40;
    let child = SchemaBuilder::new("i")
        .name("x")
        .flags(ARROW_FLAG_NULLABLE | unknown);
    let schema = SchemaBuilder::new("+s")
        .flags(unknown)
        .child(child)
        .build()
        .unwrap();
    let shared = schema.share().unwrap();
    let all = shared.view().unwrap();
    assert_eq!(all.flags(), unknown);
    assert_eq!(
        all.children()[0].unwrap().flags(),
        ARROW_FLAG_NULLABLE | unknown
    );
    let column = shared.column(0).unwrap();
    assert_eq!(
        (column.name(), column.flags()),
        (c"x", ARROW_FLAG_NULLABLE | unknown)
    );
}

// --- Malformed structs --------------------------------------------------------------------------

#[test]
fn share_rejects_released_struct() {
    let message = "share: struct is released: expected a live struct";
    refused(Array::default().share(), message);
    refused(Schema::default().share(), message);
}

#[test]
fn view_rejects_schema_without_format() {
    let schema = bare_schema(|raw| raw.format = std::ptr::null());
    let shared = schema.share().unwrap();
    refused(
        shared.view(),
        "view: the struct or a descendant has format NULL",
    );
    assert!(shared.try_unwrap().is_ok());
}

#[test]
fn view_rejects_moved_out_descendant() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 3, false);
    replace(child_of(&array, 1), raw_array(&log, "b", 1, false));
    let _grandchild = {
        // SAFETY: the only child of child 1.
        let place = unsafe { *(*child_of(&array, 1)).children };
        // SAFETY: as above.
        unsafe { Array::move_from(place) }
    };
    let _child = array.take_child(0).unwrap();
    let shared = array.share().unwrap();
    let message = "view: the struct or a descendant is released or moved out";
    refused(shared.column(0), message);
    refused(shared.column(1), message);
    refused(shared.view(), message);
    assert!(shared.column(2).is_ok());
}

#[test]
fn view_rejects_moved_out_dictionary() {
    let log = Log::default();
    let mut array = device_array(&log, "a", 1, true);
    let dictionary = array.take_dictionary().unwrap();
    let shared = array.share().unwrap();
    let message = "view: the struct or a descendant is released or moved out";
    refused(shared.view(), message);
    assert!(shared.column(0).is_ok());
    drop(dictionary);
}

/// All fields are copied, except fields that own memory.
#[test]
fn view_has_fields_of_struct() {
    let mut array = ArrowArray::zeroed();
    let mut buffers = [ptr::null(); 3];
    (array.length, array.null_count, array.offset) = (5, -1, 7);
    (array.n_buffers, array.buffers) = (3, buffers.as_mut_ptr());
    let log = Log::default();
    let array = {
        let mut owner = raw_array(&log, "a", 0, false);
        (array.release, array.private_data) = (owner.release.take(), owner.private_data);
        // SAFETY: the array from above, with other fields.
        unsafe { Array::from_raw(array) }
    };
    let shared = array.share().unwrap();
    let view = shared.view().unwrap();
    let fields = (
        view.length(),
        view.null_count(),
        view.offset(),
        view.buffers().len(),
    );
    assert_eq!(fields, (5, -1, 7, 3));
    assert_eq!(view.as_raw().n_children, 0);
    drop((shared, view));
    log.expect(&["a"]);
}

#[test]
fn view_rejects_malformed_children() {
    for count in [-1, (1 << 22) + 1, i64::MAX] {
        let schema = bare_schema(|raw| raw.n_children = count);
        refused(
            schema.share().unwrap().view(),
            &format!(
                "view: the struct or a descendant has n_children out of range: expected 0 to \
                 4194304, got {count}"
            ),
        );
    }
    let schema = bare_schema(|raw| raw.n_children = 2);
    refused(
        schema.share().unwrap().view(),
        "view: the struct or a descendant has children NULL: expected a list of 2",
    );
    let mut list = [ptr::null_mut()];
    let schema = bare_schema(|raw| (raw.n_children, raw.children) = (1, list.as_mut_ptr()));
    let shared = schema.share().unwrap();
    refused(shared.view(), "view: the struct or a descendant is NULL");
    refused(shared.column(0), "view: the struct or a descendant is NULL");
}

#[test]
fn view_rejects_cyclic_children() {
    let mut inner = fletching::abi::ArrowSchema::zeroed();
    inner.format = c"+s".as_ptr();
    inner.release = Some(mark_schema);
    let place = &raw mut inner;
    let mut list = [place];
    let children = list.as_mut_ptr();
    // SAFETY: the schema from above.
    unsafe { ((*place).n_children, (*place).children) = (1, children) };
    let schema = bare_schema(|raw| (raw.n_children, raw.children) = (1, children));
    let shared = schema.share().unwrap();
    let message =
        "view: the struct or a descendant is nested too deep: expected at most 256 levels";
    refused(shared.view(), message);
    // As above, for the dictionary, which is walked after the children.
    // SAFETY: the schema from above.
    unsafe { ((*place).n_children, (*place).dictionary) = (0, place) };
    refused(shared.view(), message);
}

/// 256 levels are accepted, 257 are not.
#[test]
fn view_rejects_more_than_256_levels() {
    for (levels, passes) in [(256, true), (257, false)] {
        let mut raw: Vec<ArrowArray> = (0..levels).map(|_| ArrowArray::zeroed()).collect();
        unsafe extern "C" fn mark(this: *mut ArrowArray) {
            // SAFETY: called with an array.
            unsafe { (*this).release = None };
        }
        let first = raw.as_mut_ptr();
        for index in 0..levels {
            // SAFETY: `levels` arrays were made.
            unsafe {
                let array = first.add(index);
                (*array).release = Some(mark);
                if index + 1 < levels {
                    (*array).dictionary = first.add(index + 1);
                }
            }
        }
        // SAFETY: the array conforms to the specification.
        let shared = unsafe { Array::move_from(first) }.share().unwrap();
        assert_eq!(shared.view().is_ok(), passes, "{levels}");
    }
}

/// 2^11 children with 2^11 children each, represented by three structs.
#[test]
#[cfg_attr(miri, ignore = "four million structs are visited")]
fn view_rejects_too_many_structs() {
    const WIDE: usize = 1 << 11;
    let [mut inner, mut leaf] = [(); 2].map(|()| fletching::abi::ArrowSchema::zeroed());
    for schema in [&mut inner, &mut leaf] {
        schema.format = c"+s".as_ptr();
        schema.release = Some(mark_schema);
    }
    let mut leaves = vec![&raw mut leaf; WIDE];
    (inner.n_children, inner.children) = (WIDE as i64, leaves.as_mut_ptr());
    let mut list = vec![&raw mut inner; WIDE];
    let schema =
        bare_schema(|raw| (raw.n_children, raw.children) = (WIDE as i64, list.as_mut_ptr()));
    refused(
        schema.share().unwrap().view(),
        "view: the struct or a descendant is one of too many: expected at most 4194304",
    );
}

#[test]
fn views_are_made_and_released_on_many_threads() {
    let rounds = if cfg!(miri) { 2 } else { 100 };
    let log = Log::default();
    let shared = device_array(&log, "a", 4, false).share().unwrap();
    std::thread::scope(|scope| {
        for index in 0..4 {
            let shared = shared.clone();
            scope.spawn(move || {
                for _ in 0..rounds {
                    let mut view: DeviceArray = shared.view().unwrap();
                    let child = view.take_child(index).unwrap();
                    let column = shared.column(3 - index).unwrap();
                    drop(view);
                    assert_eq!(child.length() + column.length(), 2);
                }
            });
        }
    });
    log.expect(&[]);
    drop(shared);
    assert_eq!(log.lines().last().unwrap(), "event");
}

/// An object of the type `Arc<dyn Send + Sync>` is not mistaken for the object of a view: the view
/// of an array over it keeps the array.
#[test]
fn view_over_type_erased_object_keeps_array() {
    type Object = Arc<dyn Send + Sync>;
    let values = Arc::new([7_i64, 8]);
    let object: Object = Arc::<[i64; 2]>::clone(&values);
    let capacity = ArrayCapacity {
        arrays: 1,
        buffers: 1,
    };
    let mut builder = ArrayBuilder::new(capacity, object).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(2), &[]);
    let child = builder.add_children(Node::ROOT, 1);
    builder.set(child, ArrayValues::of(2), &[values.as_ptr().cast()]);
    let shared = builder.finish().unwrap().share().unwrap();
    let view = shared.view().unwrap();
    assert_eq!(Arc::strong_count(&values), 2);
    drop(shared);
    let child = view.children()[0].unwrap();
    assert_eq!(child.buffers(), [values.as_ptr().cast()]);
    drop(view);
    assert_eq!(Arc::strong_count(&values), 1);
}
