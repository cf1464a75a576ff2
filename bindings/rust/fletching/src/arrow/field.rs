// SPDX-License-Identifier: Apache-2.0

//! Schemas and fields. arrow-rs parses and writes the formats. Strings are checked here, because
//! arrow-rs panics on some and drops others.

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::fmt;

use super::arrow_array::ffi::FFI_ArrowSchema;
use super::arrow_schema::{DataType, Field, UnionFields, UnionMode};
use fletching_abi::{
    ArrowSchema, ARROW_FLAG_DICTIONARY_ORDERED, ARROW_FLAG_MAP_KEYS_SORTED, ARROW_FLAG_NULLABLE,
};

use super::check_alive;
use crate::error::{guarded, printable, Error};
use crate::owner::Schema;

/// A field in the tree, as the names from the root to the field.
#[derive(Clone, Copy)]
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    name: &'a [u8],
    index: usize,
}

impl<'a> Path<'a> {
    fn root(name: &'a [u8]) -> Self {
        Self {
            parent: None,
            name,
            index: 0,
        }
    }

    fn child(&'a self, index: usize, name: &'a [u8]) -> Self {
        Self {
            parent: Some(self),
            name,
            index,
        }
    }

    #[cold]
    fn error(&self, what: impl fmt::Display) -> Error {
        Error::invalid(format!("{self}: {what}"))
    }

    fn names(&self) -> String {
        let above = self.parent.map(Path::names).unwrap_or_default();
        let name = match (self.name, self.parent) {
            (b"", Some(_)) => format!("[{}]", self.index),
            (name, _) => printable(name),
        };
        let dot = if above.is_empty() || name.is_empty() {
            ""
        } else {
            "."
        };
        above + dot + &name
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            names if names.is_empty() => f.write_str("schema"),
            names => write!(f, "field \"{names}\""),
        }
    }
}

/// The child fields of a type. Empty for a dictionary-encoded type; see its value type.
pub(super) fn fields_below(data_type: &DataType) -> Vec<&Field> {
    use DataType as D;
    match data_type {
        D::List(of) | D::LargeList(of) | D::FixedSizeList(of, _) | D::Map(of, _) => vec![of],
        D::ListView(of) | D::LargeListView(of) => vec![of],
        D::Struct(fields) => fields.iter().map(|field| &**field).collect(),
        D::Union(fields, _) => fields.iter().map(|(_, field)| &**field).collect(),
        D::RunEndEncoded(ends, values) => vec![ends, values],
        _ => Vec::new(),
    }
}

// --- To arrow-rs --------------------------------------------------------------------------------

/// Converts a schema to a field, with its flags and metadata.
///
/// Errors: EINVAL, with the path of the field, for a schema that is released or malformed, for a
/// name or metadata that is not UTF-8, and for metadata that arrow-rs cannot represent: duplicate
/// keys, and the metadata and order of a dictionary's values. Returns arrow-rs's error for a type
/// that this version of arrow-rs does not support.
pub fn to_field(schema: &Schema) -> Result<Field, Error> {
    check_alive("schema", schema)?;
    guarded(|| read(schema, &Path::root(schema.name().to_bytes())))
}

fn read(schema: &Schema, path: &Path<'_>) -> Result<Field, Error> {
    let name = utf8(path, "name", schema.name())?;
    let own = data_type(schema, path)?;
    let data_type = match schema.dictionary() {
        None => own,
        Some(_) if !own.is_dictionary_key_type() => {
            let what = "format: wrong for the indices of a dictionary: expected an integer";
            return Err(path.error(format_args!("{what}, got {own}")));
        }
        Some(values) => DataType::Dictionary(Box::new(own), Box::new(values_of(values, path)?)),
    };
    let has = |flag| schema.flags() & flag != 0;
    Ok(Field::new(name, data_type, has(ARROW_FLAG_NULLABLE))
        .with_dict_is_ordered(has(ARROW_FLAG_DICTIONARY_ORDERED))
        .with_metadata(metadata(schema, path)?))
}

/// The type of a dictionary's values. A `DataType` cannot represent their metadata and order.
fn values_of(values: &Schema, path: &Path<'_>) -> Result<DataType, Error> {
    let field = read(values, path)?;
    let lost = match field.metadata().keys().next() {
        Some(key) => format!("metadata: arrow-rs keeps none of a dictionary, got key {key:?}"),
        None if field.dict_is_ordered() == Some(true) => {
            "flags: arrow-rs keeps no order of a dictionary in a dictionary: expected no \
             ARROW_FLAG_DICTIONARY_ORDERED"
                .into()
        }
        None => return Ok(field.data_type().clone()),
    };
    Err(path.error(format_args!("dictionary: {lost}")))
}

fn utf8<'a>(path: &Path<'_>, what: &str, text: &'a CStr) -> Result<&'a str, Error> {
    text.to_str().map_err(|_| {
        let rule = format!("schema.{what}-utf8");
        Error::broken_rule(&rule, &format!("{path}: {what}: not UTF-8: expected UTF-8"))
    })
}

fn metadata(schema: &Schema, path: &Path<'_>) -> Result<HashMap<String, String>, Error> {
    let pairs = schema.metadata().map_err(|error| path.error(error))?;
    let mut map = HashMap::with_capacity(pairs.len().min(64));
    for (key, value) in pairs.iter() {
        let shown = || printable(key);
        let text = |what: &str, bytes: &[u8]| {
            String::from_utf8(bytes.to_vec()).map_err(|_| {
                let key = shown();
                path.error(format_args!(
                    "metadata: {what}key \"{key}\" is not UTF-8: arrow-rs keeps text only"
                ))
            })
        };
        if map
            .insert(text("", key)?, text("value of ", value)?)
            .is_some()
        {
            let key = shown();
            return Err(path.error(format_args!(
                "metadata: key \"{key}\" occurs twice: arrow-rs keeps one value of each key"
            )));
        }
    }
    Ok(map)
}

fn data_type(schema: &Schema, path: &Path<'_>) -> Result<DataType, Error> {
    use DataType as D;
    let format = utf8(path, "format", schema.format())?;
    let mut fields = Vec::with_capacity(schema.children().len());
    for (index, child) in schema.children().iter().flatten().enumerate() {
        let path = path.child(index, child.name().to_bytes());
        fields.push(std::sync::Arc::new(read(child, &path)?));
    }
    let got = fields.len();
    let exactly = |count: usize| match got == count {
        true => Ok(()),
        false => Err(path.error(format_args!(
            "n_children: wrong for format \"{format}\": expected {count}, got {got}"
        ))),
    };
    let mut children = fields.into_iter();
    let mut only = || -> Result<_, Error> {
        exactly(1)?;
        Ok(children.next().expect("there is one"))
    };
    Ok(match format {
        "+l" => D::List(only()?),
        "+L" => D::LargeList(only()?),
        "+vl" => D::ListView(only()?),
        "+vL" => D::LargeListView(only()?),
        "+s" => D::Struct(children.collect()),
        "+m" => {
            let entries = only()?;
            if !matches!(entries.data_type(), D::Struct(pair) if pair.len() == 2) {
                let what = "child of a map: expected a struct of two children, got";
                return Err(path.error(format_args!("{what} {}", entries.data_type())));
            }
            D::Map(entries, schema.flags() & ARROW_FLAG_MAP_KEYS_SORTED != 0)
        }
        "+r" => {
            exactly(2)?;
            let [ends, values] = [(); 2].map(|()| children.next().expect("there are two"));
            if !matches!(ends.data_type(), D::Int16 | D::Int32 | D::Int64) {
                let what = "run ends: expected integers of 16, 32 or 64 bits, got";
                return Err(path.error(format_args!("{what} {}", ends.data_type())));
            }
            D::RunEndEncoded(ends, values)
        }
        _ if format.starts_with("+w:") => {
            let size = number(&format[3..]).filter(|size| *size >= 0);
            let size = size.ok_or_else(|| malformed(path, format))?;
            D::FixedSizeList(only()?, size)
        }
        _ if format.starts_with("+us:") || format.starts_with("+ud:") => {
            let ids = type_ids(&format[4..]).ok_or_else(|| malformed(path, format))?;
            exactly(ids.len())?;
            let mode = match format.as_bytes()[2] {
                b's' => UnionMode::Sparse,
                _ => UnionMode::Dense,
            };
            D::Union(ids.into_iter().zip(children).collect::<UnionFields>(), mode)
        }
        _ => {
            exactly(0)?;
            leaf(schema, format, path)?
        }
    })
}

#[cold]
fn malformed(path: &Path<'_>, format: &str) -> Error {
    let format = printable(format.as_bytes());
    Error::broken_rule(
        "format.known",
        &format!(
            "{path}: format: malformed: expected one of the published formats, got \"{format}\""
        ),
    )
}

/// Parses a type without children that this version of arrow-rs supports.
fn leaf(schema: &Schema, format: &str, path: &Path<'_>) -> Result<DataType, Error> {
    let is_sound = match format.split_once(':') {
        Some(("d", rest)) => is_decimal(rest),
        Some(("w", size)) => number(size).is_some_and(|size| size >= 0),
        Some(("tss" | "tsm" | "tsu" | "tsn", zone)) => !zone.starts_with(['"', '\'']),
        _ => true,
    };
    if !is_sound {
        return Err(malformed(path, format));
    }
    let alone = ArrowSchema {
        format: schema.as_raw().format,
        ..ArrowSchema::zeroed()
    };
    // SAFETY: both types are the struct of the interface, which is only read.
    let alone = unsafe { &*(&raw const alone).cast::<FFI_ArrowSchema>() };
    DataType::try_from(alone).map_err(|error| {
        let message = format!("{path}: format: {error}");
        Error::with_source(Error::from(error).code(), message, malformed(path, format))
    })
}

/// Parses digits with an optional minus sign.
fn number(text: &str) -> Option<i32> {
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Whether the text is like "19,10" or "19,10,128".
fn is_decimal(text: &str) -> bool {
    let parts: Option<Vec<i32>> = text.split(',').map(number).collect();
    let Some([precision, scale, width @ ..]) = parts.as_deref() else {
        return false;
    };
    let digits = match width {
        [32] => 9,
        [64] => 18,
        [] | [128] => 38,
        [256] => 76,
        _ => return false,
    };
    (1..=digits).contains(precision) && i8::try_from(*scale).is_ok()
}

/// Parses a list like "0,5" without duplicates.
fn type_ids(text: &str) -> Option<Vec<i8>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    let mut seen = HashSet::new();
    let ids = text.split(',').map(|id| {
        let id = number(id).and_then(|id| i8::try_from(id).ok());
        id.filter(|id| *id >= 0 && seen.insert(*id))
    });
    ids.collect()
}

// --- From arrow-rs ------------------------------------------------------------------------------

/// Converts a field to a schema, with its flags and metadata.
///
/// Errors: EINVAL, with the path of the field, for U+0000 in a name or a time zone, which would end
/// a C string; the error of arrow-rs for a type that the C data interface does not have.
pub fn from_field(field: &Field) -> Result<Schema, Error> {
    check_texts(field, &Path::root(field.name().as_bytes()))?;
    let mut schema = guarded(|| Ok(Schema::from(FFI_ArrowSchema::try_from(field)?)))?;
    // SAFETY: arrow-rs made the schema from the field, and no other code has it yet.
    unsafe { set_flags(schema.as_mut_ptr(), field.data_type(), flags_of(field)) };
    Ok(schema)
}

fn flags_of(field: &Field) -> i64 {
    let mut flags = 0;
    if field.is_nullable() {
        flags |= ARROW_FLAG_NULLABLE;
    }
    if field.dict_is_ordered() == Some(true) {
        flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    }
    flags
}

/// Sets ARROW_FLAG_MAP_KEYS_SORTED, which arrow-rs 54 drops, and the other flags.
///
/// # Safety
///
/// `schema` is the only pointer to a schema of the type.
unsafe fn set_flags(schema: *mut ArrowSchema, data_type: &DataType, flags: i64) {
    let is_sorted = matches!(data_type, DataType::Map(_, true));
    let sorted = if is_sorted {
        ARROW_FLAG_MAP_KEYS_SORTED
    } else {
        0
    };
    // SAFETY: the caller guarantees that `schema` is valid and that its children match the type's
    // fields.
    unsafe {
        (*schema).flags = flags | sorted;
        if let DataType::Dictionary(_, values) = data_type {
            set_flags((*schema).dictionary, values, 0);
        }
        for (child, field) in (*schema)
            .children_slice()
            .iter()
            .zip(fields_below(data_type))
        {
            set_flags(*child, field.data_type(), flags_of(field));
        }
    }
}

/// Converts an arrow-rs schema to a struct schema, with its metadata.
pub(super) fn from_schema(schema: &super::arrow_schema::Schema) -> Result<Schema, Error> {
    let root = Field::new("", DataType::Struct(schema.fields().clone()), false);
    from_field(&root.with_metadata(schema.metadata().clone()))
}

fn check_texts(field: &Field, path: &Path<'_>) -> Result<(), Error> {
    let check = |what, text: &str| match text.contains('\0') {
        true => Err(path.error(format_args!(
            "{what}: U+0000 inside: expected text without it"
        ))),
        false => Ok(()),
    };
    check("name", field.name())?;
    let mut data_type = field.data_type();
    while let DataType::Dictionary(_, values) = data_type {
        data_type = values;
    }
    if let DataType::Timestamp(_, Some(zone)) = data_type {
        check("time zone", zone)?;
    }
    for (index, field) in fields_below(data_type).into_iter().enumerate() {
        check_texts(field, &path.child(index, field.name().as_bytes()))?;
    }
    Ok(())
}
