// SPDX-License-Identifier: Apache-2.0

//! Built schemas: their contents, their ownership, and rejected input.

use std::ffi::CStr;

use fletching::abi::{ArrowSchema, ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_NULLABLE};
use fletching::{Schema, SchemaBuilder};

use crate::foreign::refused;

fn field(format: &str) -> SchemaBuilder {
    SchemaBuilder::new(format)
}

fn batch() -> Schema {
    let values = field("u").metadata("d", "e");
    let item = field("c")
        .name("item")
        .flags(ARROW_FLAG_DICTIONARY_ORDERED)
        .dictionary(values);
    field("+s")
        .flags(0)
        .metadata("k", "v")
        .metadata("", *b"binary\0value")
        .child(field("i").name("key"))
        .child(field("+l").name("lists").child(item))
        .build()
        .unwrap()
}

/// A schema with an error in a deep descendant.
fn around(inner: SchemaBuilder) -> SchemaBuilder {
    field("+s")
        .child(field("i"))
        .child(field("+l").child(inner))
}

#[test]
fn schema_has_fields_of_builder() {
    let schema = batch();
    assert_eq!((schema.format(), schema.flags()), (c"+s", 0));
    let metadata: Vec<_> = schema.metadata().unwrap().iter().collect();
    assert_eq!(metadata, [(&b"k"[..], &b"v"[..]), (b"", b"binary\0value")]);
    let [Some(key), Some(lists)] = schema.children() else {
        panic!("{schema:?}");
    };
    assert_eq!((key.name(), key.flags()), (c"key", ARROW_FLAG_NULLABLE));
    assert_eq!((lists.format(), lists.name()), (c"+l", c"lists"));
    let item = lists.children()[0].unwrap();
    assert_eq!(
        (item.name(), item.flags()),
        (c"item", ARROW_FLAG_DICTIONARY_ORDERED)
    );
    let values = item.dictionary().unwrap();
    assert_eq!(values.format(), c"u");
    assert_eq!(values.metadata().unwrap().get(b"d"), Some(&b"e"[..]));
}

#[test]
fn child_outlives_parent() {
    let mut schema = batch();
    let mut lists = schema.take_child(1).unwrap();
    drop(schema);
    let mut item = lists.take_child(0).unwrap();
    drop(lists);
    assert_eq!(item.name(), c"item");
    let values = item.take_dictionary().unwrap();
    drop(item);
    assert_eq!(values.metadata().unwrap().get(b"d"), Some(&b"e"[..]));
}

/// Returns the error of copying a schema whose second child `spoil` has corrupted.
fn copy_error(spoil: impl FnOnce(*mut ArrowSchema)) -> String {
    let schema = batch();
    // SAFETY: the test owns the schema, which is valid or rejected. The child is restored
    // afterwards.
    let error = unsafe {
        let child = *schema.as_raw().children.add(1);
        let sound = std::ptr::read(child);
        spoil(child);
        let error = SchemaBuilder::from_schema(&schema).map(drop).unwrap_err();
        child.write(sound);
        error
    };
    let prefix = "SchemaBuilder::from_schema: the struct or a descendant ";
    let text = error.message();
    text.strip_prefix(prefix).expect(text).to_owned()
}

#[test]
fn from_schema_rejects_malformed_schema() {
    // SAFETY: in all four cases, the child is restored.
    let why = copy_error(|child| unsafe { (*child).format = std::ptr::null() });
    assert_eq!(why, "has format NULL");
    // SAFETY: as above.
    let why = copy_error(|child| unsafe { (*child).n_children = -1 });
    let expected = "has n_children out of range: expected 0 to 4194304, got -1";
    assert_eq!(why, expected);
    // The child is its own child twice: 2^256 structs.
    let mut list = [std::ptr::null_mut::<ArrowSchema>(); 2];
    let pointer = list.as_mut_ptr();
    // SAFETY: as above; the list outlives the copy.
    let why = copy_error(|child| unsafe {
        pointer.cast::<[*mut ArrowSchema; 2]>().write([child; 2]);
        ((*child).children, (*child).n_children) = (pointer, 2);
    });
    assert_eq!(why, "is nested too deep: expected at most 256 levels");
    // SAFETY: as above.
    let why = copy_error(|child| unsafe { (*child).release = None });
    assert_eq!(why, "is released or moved out");
    let error = SchemaBuilder::from_schema(&Schema::default()).map(drop);
    assert!(error.unwrap_err().message().ends_with(&why));
}

#[test]
fn build_rejects_more_than_256_levels() {
    let nested = |levels| (1..levels).fold(field("i"), |inner, _| field("+l").child(inner));
    assert!(nested(256).build().is_ok());
    let error = nested(257).build().unwrap_err();
    let expected = "child 0: nested too deep: expected at most 256 levels";
    assert!(error.message().ends_with(expected), "{error}");
    let nested = (1..257).fold(field("i"), |inner, _| field("i").dictionary(inner));
    assert!(nested.build().is_err());
    // A rejected builder is dropped without recursion.
    let levels = if cfg!(miri) { 300 } else { 1 << 20 };
    let nested = (1..levels).fold(field("i"), |inner, level| match level % 2 {
        0 => field("+l").child(inner),
        _ => field("i").dictionary(inner),
    });
    assert!(nested.build().is_err());
}

#[test]
fn rule_schema_format_set() {
    let empty = "format: empty: expected a format string";
    refused(field("").build(), &format!("SchemaBuilder: {empty}"));
    refused(
        around(field("")).build(),
        &format!("SchemaBuilder: child 1: child 0: {empty}"),
    );
    refused(
        field("c").dictionary(field("")).build(),
        &format!("SchemaBuilder: dictionary: {empty}"),
    );
}

/// `String` guarantees UTF-8.
#[test]
fn rule_schema_format_utf8() {
    refused(
        field("i\0").build(),
        "SchemaBuilder: format: NUL character: expected text without it",
    );
    let schema = field("tsu:é").build().unwrap();
    assert_eq!(schema.format().to_str(), Ok("tsu:é"));
}

#[test]
fn rule_schema_name_utf8() {
    refused(
        around(field("i").name("a\0b")).build(),
        "SchemaBuilder: child 1: child 0: name: NUL character: expected text without it",
    );
    assert_eq!(
        field("i").name("é").build().unwrap().name().to_str(),
        Ok("é")
    );
}

#[test]
fn empty_name_is_not_null() {
    let schema = field("+s").child(field("i").dictionary(field("u")));
    let schema = schema.build().unwrap();
    let child = schema.children()[0].unwrap();
    for named in [&schema, child, child.dictionary().unwrap()] {
        assert!(!named.as_raw().name.is_null());
        assert_eq!(named.name(), c"");
    }
}

#[test]
fn missing_parts_are_null_or_zero() {
    let schema = field("i").flags(0).build().unwrap();
    let raw = schema.as_raw();
    assert!(raw.metadata.is_null() && raw.children.is_null() && raw.dictionary.is_null());
    assert_eq!((raw.flags, raw.n_children), (0, 0));
    assert!(raw.release.is_some());
}

#[test]
fn clone_copies_every_part_in_order() {
    let original = field("+s")
        .name("root")
        .flags(4)
        .metadata("k", "v")
        .child(field("i").name("a").dictionary(field("u").name("values")))
        .child(field("+s").name("b").child(field("c")).child(field("s")))
        .child(field("l").name("c"));
    let copy = original.clone();
    let text = format!("{copy:?}");
    assert_eq!(text, format!("{original:?}"));
    assert!(text.starts_with(
        r#"SchemaBuilder { format: "+s", name: "root", flags: 4, metadata: [("k", "v")], children: ["#
    ));
    let schema = copy.build().unwrap();
    let names = schema.children().iter().flatten().map(|child| child.name());
    assert_eq!(names.collect::<Vec<_>>(), [c"a", c"b", c"c"]);
    let [Some(first), Some(second), _] = schema.children() else {
        panic!("{text}")
    };
    assert_eq!(first.dictionary().unwrap().format(), c"u");
    assert_eq!(second.children()[1].unwrap().format(), c"s");
}

#[test]
fn clone_and_debug_handle_deep_nesting() {
    let levels = if cfg!(miri) { 300 } else { 1 << 17 };
    let nested = (1..levels).fold(field("i"), |inner, level| match level % 2 {
        0 => field("+l").child(inner),
        _ => field("i").dictionary(inner),
    });
    let copy = nested.clone();
    drop(nested);
    let text = format!("{copy:?}");
    assert_eq!(text.matches("SchemaBuilder").count(), 256);
    assert!(text.contains("[..]") || text.contains("Some(..)"));
}

#[test]
fn build_copies_texts() {
    let mut name = String::from("a name that is longer than most");
    let schema = field("i").name(&*name).build().unwrap();
    name.clear();
    let copied: &CStr = schema.name();
    assert_eq!(copied, c"a name that is longer than most");
}
