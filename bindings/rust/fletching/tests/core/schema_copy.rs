// SPDX-License-Identifier: Apache-2.0

//! Builders copied from a schema: their contents, and rejected input.

use std::ptr;

use fletching::abi::{ArrowSchema, ARROW_FLAG_DICTIONARY_ORDERED};
use fletching::{Schema, SchemaBuilder};

use crate::foreign::{bare_schema, refused};

fn copy(schema: &Schema) -> Result<Schema, fletching::Error> {
    SchemaBuilder::from_schema(schema)?.build()
}

/// The contents of a schema and its descendants.
fn describe(schema: &Schema) -> String {
    let children = schema.children().iter();
    let below: String = children.map(|child| describe(child.unwrap())).collect();
    let dictionary = schema.dictionary().map(describe).unwrap_or_default();
    let texts = (schema.format(), schema.name(), schema.flags());
    let metadata = schema.metadata().unwrap();
    format!("{texts:?} {metadata:?} [{below}] <{dictionary}>")
}

#[test]
fn copy_equals_schema() {
    let words = SchemaBuilder::new("u").metadata("d", "e");
    let item = SchemaBuilder::new("c")
        .name("item")
        .flags(ARROW_FLAG_DICTIONARY_ORDERED)
        .dictionary(words.child(SchemaBuilder::new("n")));
    let schema = SchemaBuilder::new("+s")
        .metadata("k", "v")
        .metadata("", "w")
        .child(SchemaBuilder::new("i").name("key"))
        .child(SchemaBuilder::new("+l").name("lists").child(item))
        .build()
        .unwrap();
    let expected = describe(&schema);
    let copied = copy(&schema).unwrap();
    drop(schema);
    assert_eq!(describe(&copied), expected);
}

#[test]
fn copy_rejects_malformed_schema() {
    let because = |why: &str| format!("SchemaBuilder::from_schema: {why}");
    let malformed = |why: &str| because(&format!("the struct or a descendant {why}"));
    refused(
        copy(&Schema::default()),
        &malformed("is released or moved out"),
    );
    let utf8 = "invalid utf-8 sequence of 1 bytes from index 1";
    let format = bare_schema(|schema| schema.format = c"i\xff".as_ptr());
    refused(copy(&format), &because(&format!("format: {utf8}")));
    let name = bare_schema(|schema| schema.name = c"n\xff".as_ptr());
    refused(copy(&name), &because(&format!("name: {utf8}")));
    let count = (-1_i32).to_ne_bytes();
    let metadata = bare_schema(|schema| schema.metadata = count.as_ptr().cast());
    assert!(copy(&metadata).is_err());
    let list = [ptr::null_mut::<ArrowSchema>()];
    let childless = bare_schema(|schema| {
        schema.n_children = 1;
        schema.children = list.as_ptr().cast_mut();
    });
    refused(copy(&childless), &malformed("is NULL"));
}

#[test]
fn copy_accepts_up_to_256_levels() {
    let innermost = SchemaBuilder::new("i");
    let nested = (1..256).fold(innermost, |inner, _| SchemaBuilder::new("+l").child(inner));
    let schema = nested.build().unwrap();
    assert_eq!(describe(&copy(&schema).unwrap()), describe(&schema));
    // A schema that is its own dictionary is infinitely deep.
    let endless = Box::into_raw(Box::new(bare_schema(|_| {}).into_raw()));
    // SAFETY: the schema lives until the end of the test.
    unsafe { (*endless).dictionary = endless };
    let too_deep = bare_schema(|schema| schema.dictionary = endless);
    refused(
        copy(&too_deep),
        "SchemaBuilder::from_schema: the struct or a descendant is nested too deep: expected at most 256 \
         levels",
    );
    drop(too_deep);
    // SAFETY: it is no longer referenced.
    drop(unsafe { Box::from_raw(endless) });
}
