// SPDX-License-Identifier: Apache-2.0

//! Checks before arrow-rs is called: schemas, counts, sizes, and arrays without rows.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use crate::arrow::{
    from_array, from_arrays, from_field, from_reader, from_record_batch, to_array, to_field,
    to_record_batch, Arrays,
};
use arrow_array::types::Int8Type;
use arrow_array::{
    Array as _, ArrayRef, DictionaryArray, Int32Array, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_schema::{DataType, Field, TimeUnit};
use fletching::abi::{ArrowArray, ArrowSchema};
use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayStream, ArrayValues, Error, Node, Schema,
    SchemaBuilder,
};
use libc::EINVAL;

use crate::arrays::checked;

fn converted(schema: &Schema, array: Array) -> Result<ArrayRef, Error> {
    // SAFETY: a rejected array is not read, and the others match their schema.
    unsafe { to_array(schema, array, checked()) }.map(|there| there.array)
}

fn schema_of(format: &str) -> SchemaBuilder {
    let item = || SchemaBuilder::new("i").name("item");
    // arrow-rs requires that neither is nullable.
    let key = || item().name("key").flags(0);
    let entries = || {
        SchemaBuilder::new("+s")
            .name("entries")
            .flags(0)
            .child(key())
    };
    let schema = SchemaBuilder::new(format);
    match format {
        "+m" => schema.child(entries().child(item())),
        "+r" => schema
            .child(key().name("run_ends"))
            .child(item().name("values")),
        "+s" | "+l" | "+L" | "+vl" | "+vL" => schema.child(item()),
        _ if format.starts_with("+w:") || format.starts_with("+u") => schema.child(item()),
        _ => schema,
    }
}

/// Makes an array of the schema in which every buffer is NULL.
fn without_buffers(schema: &SchemaBuilder, buffers: &[usize], values: ArrayValues) -> Array {
    let schema = schema.clone().build().unwrap();
    let capacity = ArrayCapacity {
        arrays: 16,
        buffers: 64,
    };
    let mut builder = ArrayBuilder::new(capacity, ()).unwrap();
    let mut left = buffers.iter();
    let mut fill = vec![(Node::ROOT, &schema)];
    while let Some((node, schema)) = fill.pop() {
        let list = vec![ptr::null::<c_void>(); *left.next().unwrap()];
        builder.set(node, values, &list);
        let children = schema.children();
        let first = builder.add_children(node, children.len());
        for (index, child) in children.iter().enumerate().rev() {
            fill.push((first.sibling(index), child.unwrap()));
        }
        if let Some(dictionary) = schema.dictionary() {
            fill.push((builder.add_dictionary(node), dictionary));
        }
    }
    builder.finish().unwrap()
}

/// Each format with the numbers of buffers of its array and of the descendants.
const SHAPES: &[(&str, &[usize])] = &[
    ("n", &[0]),
    ("b", &[2]),
    ("l", &[2]),
    ("tdm", &[2]),
    ("w:3", &[2]),
    ("w:0", &[2]),
    ("d:9,2", &[2]),
    ("d:9,-2,256", &[2]),
    ("u", &[3]),
    ("U", &[3]),
    ("z", &[3]),
    ("Z", &[3]),
    ("vu", &[3]),
    ("vz", &[3]),
    ("+l", &[2, 2]),
    ("+L", &[2, 2]),
    ("+w:2", &[1, 2]),
    ("+w:0", &[1, 2]),
    ("+s", &[1, 2]),
    ("+m", &[2, 1, 2, 2]),
    ("+us:4", &[1, 2]),
    ("+ud:4", &[2, 2]),
    ("+r", &[0, 2, 2]),
];

#[test]
fn empty_arrays_without_offsets_are_accepted() {
    for (format, buffers) in SHAPES {
        let schema = schema_of(format);
        let array = without_buffers(&schema, buffers, ArrayValues::of(0));
        let there = converted(&schema.build().unwrap(), array);
        assert_eq!(
            there
                .unwrap_or_else(|error| panic!("{format}: {error}"))
                .len(),
            0
        );
    }
}

#[test]
fn empty_arrays_with_offset_are_accepted() {
    for (format, buffers) in SHAPES {
        let schema = schema_of(format);
        let mut raw = without_buffers(&schema, buffers, ArrayValues::of(0)).into_raw();
        raw.offset = i64::MAX / 4096;
        if ["+s", "+us:4", "+w:2", "+r"].contains(format) {
            raw.offset = 0; // their children would need that length
        }
        // SAFETY: the array comes from the builder.
        let array = unsafe { Array::from_raw(raw) };
        let there = converted(&schema.build().unwrap(), array);
        assert_eq!(
            there
                .unwrap_or_else(|error| panic!("{format}: {error}"))
                .len(),
            0
        );
    }
}

/// A list column whose items have no rows: only the offsets below the root are NULL.
#[test]
fn null_child_offsets_are_accepted() {
    let offsets = Box::new([0i32, 0, 0]);
    let first = offsets.as_ptr().cast();
    let capacity = ArrayCapacity {
        arrays: 1,
        buffers: 5,
    };
    let mut builder = ArrayBuilder::new(capacity, offsets).unwrap();
    builder.set(Node::ROOT, ArrayValues::of(2), &[ptr::null(), first]);
    let child = builder.add_children(Node::ROOT, 1);
    builder.set(child, ArrayValues::of(0), &[ptr::null(); 3]);
    let schema = SchemaBuilder::new("+l").child(SchemaBuilder::new("u"));
    let there = converted(&schema.build().unwrap(), builder.finish().unwrap()).unwrap();
    assert_eq!((there.len(), there.null_count()), (2, 0));
}

#[test]
fn wrong_buffer_counts_are_rejected() {
    for (format, buffers) in SHAPES {
        for count in [0, 1, 2, 3, 4] {
            let is_view = ["vu", "vz"].contains(format);
            if count == buffers[0] || (is_view && count > 3) {
                continue;
            }
            let schema = schema_of(format);
            let counts = [&[count], &buffers[1..]].concat();
            let array = without_buffers(&schema, &counts, ArrayValues::of(0));
            let error = converted(&schema.build().unwrap(), array).unwrap_err();
            let text = error.message();
            assert_eq!(error.code(), EINVAL, "{format}: {text}");
            assert!(
                text.starts_with("ArrowArray.n_buffers: "),
                "{format}: {text}"
            );
            assert!(text.contains(&format!("got {count}")), "{format}: {text}");
            let is_old = format.starts_with("+u") && count == buffers[0] + 1;
            assert_eq!(
                text.contains("union layout before Arrow 1.0"),
                is_old,
                "{text}"
            );
        }
    }
}

/// Returns the error for a batch of one column that `change` has corrupted. arrow-rs releases an
/// array through its private data, so the counts need not be restored.
fn spoiled(column: ArrayRef, change: impl FnOnce(&mut ArrowArray)) -> String {
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let (schema, array) = from_record_batch(&batch).unwrap();
    // SAFETY: the array has one child, which is only used here.
    change(unsafe { &mut **array.as_raw().children });
    // SAFETY: a rejected array is not read.
    let error = unsafe { to_record_batch(&schema, array, checked()) }.unwrap_err();
    assert_eq!(error.code(), EINVAL, "{error}");
    error.message().to_string()
}

#[test]
fn unknown_null_count_without_bitmap_means_no_nulls() {
    let column: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let (schema, array) = from_record_batch(&batch).unwrap();
    // SAFETY: the array has one child, which is only used here.
    unsafe { (**array.as_raw().children).null_count = -1 };
    // SAFETY: the buffers come from arrow-rs.
    let back = unsafe { to_record_batch(&schema, array, checked()) }.unwrap();
    assert_eq!(back.column(0).null_count(), 0);
    assert_eq!(back, batch);
}

#[test]
fn errors_name_path_of_descendant() {
    let starts = |what: &str, change: fn(&mut ArrowArray)| {
        let text = spoiled(Arc::new(Int32Array::from(vec![1, 2])), change);
        let expected = format!("ArrowArray.children[0]{what}");
        assert!(text.starts_with(&expected), "{text}");
    };
    starts(".length: negative", |child| child.length = -1);
    starts(".length: too small", |child| child.length = 1);
    starts(".offset: negative", |child| child.offset = -1);
    starts(": too large", |child| child.offset = i64::MAX - 2);
    starts(": too large", |child| child.length = i64::MAX);
    starts(".null_count: out of range", |child| child.null_count = 3);
    starts(".null_count: out of range", |child| child.null_count = -2);
    starts(".buffers[0]: NULL", |child| child.null_count = 1);
    starts(".buffers: NULL", |child| child.buffers = ptr::null_mut());
    let words: DictionaryArray<Int8Type> = vec!["a", "b"].into_iter().collect();
    let mut taken = ptr::null_mut();
    let text = spoiled(Arc::new(words), |child| {
        taken = std::mem::replace(&mut child.dictionary, ptr::null_mut());
    });
    assert!(
        text.starts_with("ArrowArray.children[0].dictionary: NULL"),
        "{text}"
    );
    assert!(!taken.is_null());
}

#[test]
fn wrong_child_count_is_rejected() {
    let schema = SchemaBuilder::new("+s").child(SchemaBuilder::new("i"));
    let array = without_buffers(&schema, &[1, 2], ArrayValues::of(0));
    let schema = schema.child(SchemaBuilder::new("i"));
    let error = converted(&schema.build().unwrap(), array).unwrap_err();
    assert!(
        error.message().starts_with("ArrowArray.n_children: wrong"),
        "{error}"
    );
}

#[test]
fn null_count_of_type_without_bitmap_is_rejected() {
    for (format, buffers) in [
        ("+us:4", &[1, 2][..]),
        ("+ud:4", &[2, 2]),
        ("+r", &[0, 2, 2]),
    ] {
        for (null_count, refused) in [(1, true), (0, false), (-1, false)] {
            let schema = schema_of(format);
            let mut raw = without_buffers(&schema, buffers, ArrayValues::of(0)).into_raw();
            raw.null_count = null_count;
            raw.length = null_count.max(0);
            // SAFETY: the array comes from the builder.
            let array = unsafe { Array::from_raw(raw) };
            let there = converted(&schema.build().unwrap(), array);
            assert_eq!(there.is_err(), refused, "{format}: {null_count}");
            if let Err(error) = there {
                assert!(
                    error.message().starts_with("ArrowArray.null_count: "),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn null_map_entries_keys_and_run_ends_are_rejected() {
    static BITS: u64 = 0;
    let map = &[2, 1, 2, 2][..];
    let places = [
        ("+m", map, 1, "ArrowArray.children[0].null_count: "),
        (
            "+m",
            map,
            0,
            "ArrowArray.children[0].children[0].null_count: ",
        ),
        ("+r", &[0, 2, 2], 0, "ArrowArray.children[0].null_count: "),
    ];
    for (format, buffers, entries, place) in places {
        let schema = schema_of(format);
        let array = without_buffers(&schema, buffers, ArrayValues::of(0));
        // SAFETY: the structs come from the builder and are only used here.
        unsafe {
            let mut parent = array.as_raw();
            if format == "+m" {
                let node = &mut **parent.children;
                *node.buffers = (&raw const BITS).cast();
                (node.length, node.null_count) = (1, entries);
                parent = node;
            }
            for index in 0..2 {
                let node = &mut **parent.children.add(index);
                std::slice::from_raw_parts_mut(node.buffers, 2).fill((&raw const BITS).cast());
                (node.length, node.null_count) = (1, 1 - index as i64);
            }
        }
        let error = converted(&schema.build().unwrap(), array).unwrap_err();
        assert_eq!(error.code(), EINVAL);
        assert!(error.message().starts_with(place), "{error}");
    }
}

#[test]
fn malformed_format_error_names_field() {
    let formats = [
        "",
        "?",
        "d:",
        "d:9",
        "d:0,2",
        "d:39,2",
        "d:10,2,32",
        "d:19,2,64",
        "d:77,2,256",
        "d:5,1,8",
        "d:5,1,128,",
        "d:+5,1",
        "d:5,128",
        "d:5,-129",
        "d:5, 1",
        "w:",
        "w:-1",
        "w:+1",
        "w:2147483648",
        "+w:-1",
        "+w:",
        "ts",
        "tss",
        "tsx:",
        "tss:\"UTC\"",
        "tsn:'UTC'",
        "+ud:0,0",
        "+us:128",
        "+us:-1",
        "+ud:x",
        "+ud:0,",
        "+us:0,1",
    ];
    for format in formats {
        let field = if format.starts_with('+') {
            schema_of(format)
        } else {
            SchemaBuilder::new(if format.is_empty() { "i" } else { format })
        };
        let schema = SchemaBuilder::new("+s").child(
            SchemaBuilder::new("+l")
                .name("a")
                .child(field.name("items")),
        );
        let schema = schema.build().unwrap();
        if format.is_empty() {
            // The builder rejects an empty format.
            // SAFETY: the structs come from the builder, and the text is static.
            unsafe { (**(**schema.as_raw().children).children).format = c"".as_ptr() };
        }
        let error = to_field(&schema).unwrap_err();
        assert_eq!(error.code(), EINVAL, "{format}: {error}");
        let text = error.message();
        assert!(text.starts_with("field \"a.items\": "), "{format}: {text}");
    }
}

#[test]
fn negative_decimal_scale_is_kept() {
    let field = to_field(&SchemaBuilder::new("d:9,-3").build().unwrap()).unwrap();
    assert_eq!(field.data_type(), &DataType::Decimal128(9, -3));
}

#[test]
fn wrong_schema_children_are_rejected() {
    let int = || SchemaBuilder::new("i");
    let schemas = [
        int().child(int()),
        SchemaBuilder::new("+l"),
        SchemaBuilder::new("+l").child(int()).child(int()),
        SchemaBuilder::new("+m").child(int()),
        SchemaBuilder::new("+m").child(SchemaBuilder::new("+s").child(int())),
        SchemaBuilder::new("+r").child(int()),
        SchemaBuilder::new("+r")
            .child(SchemaBuilder::new("c"))
            .child(int()),
        SchemaBuilder::new("+us:1,2").child(int()),
        SchemaBuilder::new("f").dictionary(int()),
    ];
    for schema in schemas {
        let schema = SchemaBuilder::new("+s").child(schema.name("a"));
        let error = to_field(&schema.build().unwrap()).unwrap_err();
        assert_eq!(error.code(), EINVAL);
        assert!(error.message().starts_with("field \"a"), "{error}");
    }
}

/// Makes a struct of one field "a" whose schema the test modifies.
fn batch_schema(field: SchemaBuilder, change: impl FnOnce(&mut ArrowSchema)) -> Schema {
    let schema = SchemaBuilder::new("+s").child(field.name("a"));
    let schema = schema.build().unwrap();
    // SAFETY: the child comes from the builder and is only used here.
    change(unsafe { &mut **schema.as_raw().children });
    schema
}

#[test]
fn non_utf8_text_error_names_field() {
    let int = || SchemaBuilder::new("i");
    let refused = |schema: &Schema, expected: &str| {
        let error = to_field(schema).unwrap_err();
        assert_eq!((error.code(), error.message()), (EINVAL, expected));
    };
    let name = c"b\xff".as_ptr();
    let schema = batch_schema(int(), |field| field.name = name);
    refused(
        &schema,
        r#"field "b\xff": name: not UTF-8: expected UTF-8 (rule schema.name-utf8)"#,
    );
    let format = c"i\xff".as_ptr();
    let schema = batch_schema(int(), |field| field.format = format);
    refused(
        &schema,
        r#"field "a": format: not UTF-8: expected UTF-8 (rule schema.format-utf8)"#,
    );
    let schema = batch_schema(int().metadata("k", b"v\xff"), |_| ());
    refused(
        &schema,
        r#"field "a": metadata: value of key "k" is not UTF-8: arrow-rs keeps text only"#,
    );
    let schema = batch_schema(int().metadata(b"k\xff", "v"), |_| ());
    refused(
        &schema,
        r#"field "a": metadata: key "k\xff" is not UTF-8: arrow-rs keeps text only"#,
    );
}

#[test]
fn unsupported_metadata_error_names_field() {
    let int = || SchemaBuilder::new("i");
    let refused = |field: SchemaBuilder, expected: &str| {
        let error = to_field(&batch_schema(field, |_| ())).unwrap_err();
        assert_eq!(error.code(), EINVAL);
        assert!(error.message().starts_with(expected), "{error}");
    };
    refused(
        int().metadata("k", "1").metadata("k", "2"),
        r#"field "a": metadata: key "k" occurs twice"#,
    );
    refused(
        int().dictionary(SchemaBuilder::new("u").metadata("k", "v")),
        r#"field "a": dictionary: metadata: arrow-rs keeps none of a dictionary, got key "k""#,
    );
    let ordered = SchemaBuilder::new("c")
        .flags(1)
        .dictionary(SchemaBuilder::new("u"));
    refused(
        int().dictionary(ordered),
        r#"field "a": dictionary: flags: "#,
    );
}

fn ordered_words() -> Field {
    let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8));
    Field::new("words", words, false).with_dict_is_ordered(true)
}

#[test]
fn flags_and_metadata_round_trip() {
    let metadata = HashMap::from([("k".to_string(), "v".to_string())]);
    let entries = DataType::Struct(
        vec![
            Field::new("keys", DataType::Utf8, false),
            ordered_words().with_name("values"),
        ]
        .into(),
    );
    let map = DataType::Map(Arc::new(Field::new("entries", entries, false)), true);
    let list = DataType::List(Arc::new(ordered_words().with_name("item")));
    let all = vec![
        ordered_words().with_metadata(metadata.clone()),
        Field::new("map", map, true),
        Field::new("list", list, false).with_metadata(metadata),
    ];
    let field = Field::new("", DataType::Struct(all.into()), true);
    let schema = from_field(&field).unwrap();
    let flags: Vec<_> = schema
        .children()
        .iter()
        .map(|child| child.unwrap().flags())
        .collect();
    assert_eq!(flags, [1, 6, 0]);
    let back = to_field(&schema).unwrap();
    assert_eq!(back, field);
    let order = |field: &Field| match field.data_type() {
        DataType::Struct(fields) => fields[0].dict_is_ordered(),
        _ => None,
    };
    assert_eq!(order(&back), Some(true));
    assert_eq!(format!("{back:?}"), format!("{field:?}"));
}

#[test]
fn standalone_array_is_nullable() {
    let (schema, _) = from_array(&Int32Array::from(vec![Some(1), None])).unwrap();
    assert_eq!(schema.flags(), 2);
}

#[test]
fn nul_in_text_error_names_field() {
    let named = |name: &str| Field::new(name, DataType::Int32, true);
    let refused = |error: Error, expected: &str| {
        assert_eq!(error.code(), EINVAL);
        assert!(error.message().starts_with(expected), "{error}");
    };
    let expected = r#"field "a.b\x00c": name: U+0000 inside"#;
    let inner = DataType::Struct(vec![named("x"), named("b\0c")].into());
    refused(
        from_field(&Field::new("a", inner.clone(), true)).unwrap_err(),
        expected,
    );
    let words = DataType::Dictionary(Box::new(DataType::Int8), Box::new(inner.clone()));
    let dictionary = from_field(&Field::new("a", words, true));
    refused(dictionary.unwrap_err(), expected);
    let none: [Result<ArrayRef, _>; 0] = [];
    refused(
        from_arrays(&Field::new("a", inner, true), none).unwrap_err(),
        expected,
    );
    let zone = DataType::Timestamp(TimeUnit::Second, Some("U\0C".into()));
    let zone = from_field(&Field::new("a", zone, true)).unwrap_err();
    refused(zone, r#"field "a": time zone: U+0000 inside"#);

    let column: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    let schema = Arc::new(arrow_schema::Schema::new(vec![Field::new(
        "b\0c",
        DataType::Utf8,
        true,
    )]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![column]).unwrap();
    let expected = r#"field "b\x00c": name: U+0000 inside"#;
    refused(from_record_batch(&batch).unwrap_err(), expected);
    refused(
        from_array(&arrow_array::StructArray::from(batch.clone())).unwrap_err(),
        expected,
    );
    let reader = RecordBatchIterator::new([Ok(batch)], schema);
    refused(from_reader(reader).unwrap_err(), expected);
}

#[test]
fn stream_checks_schema_and_arrays() {
    let schema = || SchemaBuilder::new("l");
    let array = without_buffers(&schema(), &[3], ArrayValues::of(0));
    let stream = ArrayStream::from_batches(schema().build().unwrap(), [Ok(array)]).unwrap();
    // SAFETY: the array is rejected.
    let mut arrays = unsafe { Arrays::new(stream.into_iter(), checked()) }.unwrap();
    let error = Error::from(arrays.next().unwrap().unwrap_err());
    assert!(
        error.message().starts_with("ArrowArray.n_buffers: "),
        "{error}"
    );
    let schema = SchemaBuilder::new("d:5,1,8").build().unwrap();
    let stream = ArrayStream::from_batches(schema, []).unwrap();
    // SAFETY: there are no arrays.
    let error = unsafe { Arrays::new(stream.into_iter(), checked()) }.unwrap_err();
    assert!(error.message().starts_with("schema: format: "), "{error}");
}
