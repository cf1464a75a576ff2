// SPDX-License-Identifier: Apache-2.0

//! Builds a schema and its descendants.

use std::ffi::c_char;
use std::{fmt, ptr};

use fletching_abi::{ArrowSchema, ARROW_FLAG_NULLABLE};

use crate::block::Block;
use crate::error::Error;
use crate::metadata::encode_metadata;
use crate::owner::{Owner, Schema};
use crate::raw::Base;
use crate::tree::{walk, MAX_DEPTH, MAX_STRUCTS};

/// Builds a schema.
///
/// ```
/// use fletching::SchemaBuilder;
///
/// let schema = SchemaBuilder::new("+s")
///     .child(SchemaBuilder::new("i").name("key").flags(0))
///     .child(SchemaBuilder::new("g").name("value").metadata("unit", "m"))
///     .build()?;
/// assert_eq!(schema.children()[1].unwrap().name(), c"value");
/// # Ok::<(), fletching::Error>(())
/// ```
///
/// The schema owns copies of the strings until it and every child that was moved out of it are
/// released. Formats are not interpreted.
///
/// See "The ArrowSchema structure" in the Arrow C data interface.
#[must_use]
pub struct SchemaBuilder {
    format: String,
    name: String,
    flags: i64,
    metadata: Vec<(Vec<u8>, Vec<u8>)>,
    children: Vec<SchemaBuilder>,
    dictionary: Option<Box<SchemaBuilder>>,
}

/// The strings and metadata blocks that the schema points to.
type Texts = Vec<Vec<u8>>;

impl SchemaBuilder {
    /// Makes a nullable field without a name. For a dictionary-encoded type, `format` is the format
    /// of the indices.
    pub fn new(format: impl Into<String>) -> Self {
        Self {
            format: format.into(),
            name: String::new(),
            flags: ARROW_FLAG_NULLABLE,
            metadata: Vec::new(),
            children: Vec::new(),
            dictionary: None,
        }
    }

    /// Copies a schema, so that it can be changed and built.
    ///
    /// Errors: EINVAL if the schema or a descendant is released or malformed, as for
    /// [`Shared::column`](crate::Shared::column), has a format or name that is not UTF-8, or has
    /// malformed metadata.
    pub fn from_schema(schema: &Schema) -> Result<Self, Error> {
        const OPERATION: &str = "SchemaBuilder::from_schema";
        let root = std::ptr::from_ref(schema.as_raw()).cast_mut();
        // SAFETY: guaranteed by the contract of `Owner::from_raw`; the walk only reads.
        unsafe { walk(OPERATION, root, &mut |node| (*node).what_is_missing()) }?;
        Self::copy(schema).map_err(|why| Error::invalid(format!("{OPERATION}: {why}")))
    }

    /// Copies a schema that was checked by `walk`.
    fn copy(schema: &Schema) -> Result<Self, String> {
        let text = |what: &str, text: &std::ffi::CStr| {
            text.to_str()
                .map(String::from)
                .map_err(|error| format!("{what}: {error}"))
        };
        let metadata = schema.metadata().map_err(|error| error.to_string())?;
        let children = schema.children().iter().flatten();
        Ok(Self {
            format: text("format", schema.format())?,
            name: text("name", schema.name())?,
            flags: schema.flags(),
            metadata: metadata
                .iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
            children: children
                .map(|child| Self::copy(child))
                .collect::<Result<_, _>>()?,
            dictionary: schema
                .dictionary()
                .map(Self::copy)
                .transpose()?
                .map(Box::new),
        })
    }

    /// Sets the name of the field. By default it is the empty string, not NULL.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the `ARROW_FLAG_` bits.
    pub fn flags(mut self, flags: i64) -> Self {
        self.flags = flags;
        self
    }

    /// Adds a metadata pair.
    pub fn metadata(mut self, key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        self.metadata.push((key.into(), value.into()));
        self
    }

    /// Adds a child.
    pub fn child(mut self, child: Self) -> Self {
        self.children.push(child);
        self
    }

    /// Sets the type of the dictionary's values.
    pub fn dictionary(mut self, values: Self) -> Self {
        self.dictionary = Some(Box::new(values));
        self
    }

    /// Builds the schema. Errors: EINVAL for an empty format, a NUL character in a format or name,
    /// metadata that cannot be encoded, more than 256 levels, and more than 2^22 structs. The
    /// message names the child.
    pub fn build(self) -> Result<Schema, Error> {
        self.build_at_most(MAX_STRUCTS as usize)
    }

    fn build_at_most(self, structs: usize) -> Result<Schema, Error> {
        let mut texts = Texts::default();
        let mut collected = Vec::new();
        self.collect(&mut texts, &mut collected, structs, 0)
            .map_err(|why| Error::invalid(format!("SchemaBuilder: {why}")))?;
        let count = collected.len();
        let block = Block::new(count, 0, texts);
        let block =
            block.ok_or_else(|| Error::new(crate::errno::ENOMEM, "SchemaBuilder: no memory"))?;
        // SAFETY: the block has room for all structs. Each is complete when it is linked, and the
        // root is moved out.
        unsafe {
            Block::set_shares(block, count);
            let (first, pointers, _) = Block::parts(block);
            for (index, mut schema) in collected.into_iter().enumerate() {
                Block::join(block, &mut schema);
                first.add(index).write(schema);
            }
            self.link(first, pointers, &mut Used::default());
            Ok(Owner::new(std::ptr::read(first)))
        }
    }

    /// Collects the structs, parents before their children, without linking them.
    fn collect(
        &self,
        texts: &mut Texts,
        structs: &mut Vec<ArrowSchema>,
        most: usize,
        depth: usize,
    ) -> Result<(), String> {
        if depth == MAX_DEPTH {
            return Err(format!(
                "nested too deep: expected at most {MAX_DEPTH} levels"
            ));
        }
        if structs.len() == most {
            return Err(format!("one of too many: expected at most {most} structs"));
        }
        if self.format.is_empty() {
            return Err("format: empty: expected a format string".into());
        }
        let mut schema = ArrowSchema::zeroed();
        schema.format = keep(texts, c_text("format", &self.format)?);
        // Some consumers reject a child whose name is NULL.
        schema.name = match &*self.name {
            "" => c"".as_ptr(),
            name => keep(texts, c_text("name", name)?),
        };
        if !self.metadata.is_empty() {
            let pairs = self
                .metadata
                .iter()
                .map(|(key, value)| (&key[..], &value[..]));
            let block = encode_metadata(pairs).map_err(|error| error.to_string())?;
            schema.metadata = keep(texts, block);
        }
        schema.flags = self.flags;
        schema.n_children = self.children.len() as i64;
        structs.push(schema);
        for (index, child) in self.children.iter().enumerate() {
            let collected = child.collect(texts, structs, most, depth + 1);
            collected.map_err(|why| format!("child {index}: {why}"))?;
        }
        let Some(values) = &self.dictionary else {
            return Ok(());
        };
        let collected = values.collect(texts, structs, most, depth + 1);
        collected.map_err(|why| format!("dictionary: {why}"))
    }

    /// Links the next struct and its descendants. The child pointers of one parent are adjacent.
    ///
    /// # Safety
    ///
    /// The structs were collected from `self`, and there is one pointer for each.
    unsafe fn link(
        &self,
        structs: *mut ArrowSchema,
        pointers: *mut *mut ArrowSchema,
        used: &mut Used,
    ) -> *mut ArrowSchema {
        // SAFETY: the caller guarantees one struct and one pointer for each node.
        unsafe {
            let schema = structs.add(used.structs);
            used.structs += 1;
            if !self.children.is_empty() {
                let list = pointers.add(used.pointers);
                used.pointers += self.children.len();
                (*schema).children = list;
                for (index, child) in self.children.iter().enumerate() {
                    list.add(index).write(child.link(structs, pointers, used));
                }
            }
            if let Some(values) = &self.dictionary {
                (*schema).dictionary = values.link(structs, pointers, used);
            }
            schema
        }
    }
}

/// Not recursive, because the depth is unbounded until `build`.
impl Clone for SchemaBuilder {
    fn clone(&self) -> Self {
        let mut found = vec![(self, 0)];
        let mut next = 0;
        while let Some((builder, _)) = found.get(next).copied() {
            let below = builder.children.iter().chain(builder.dictionary.as_deref());
            found.extend(below.map(|below| (below, next)));
            next += 1;
        }
        let alone = |builder: &Self| Self {
            format: builder.format.clone(),
            name: builder.name.clone(),
            flags: builder.flags,
            metadata: builder.metadata.clone(),
            children: Vec::with_capacity(builder.children.len()),
            dictionary: None,
        };
        // In reverse order: a builder is complete when it is moved into its parent.
        let mut copies: Vec<_> = found.iter().map(|(builder, _)| alone(builder)).collect();
        for (builder, parent) in found[1..].iter().rev() {
            let Some(mut copy) = copies.pop() else { break };
            copy.children.reverse();
            let dictionary = found[*parent].0.dictionary.as_deref();
            match dictionary.is_some_and(|values| ptr::eq(values, *builder)) {
                true => copies[*parent].dictionary = Some(Box::new(copy)),
                false => copies[*parent].children.push(copy),
            }
        }
        copies[0].children.reverse();
        copies.swap_remove(0)
    }
}

/// Shows at most the number of levels that a schema may have.
impl fmt::Debug for SchemaBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Levels(self, MAX_DEPTH).fmt(f)
    }
}

/// Shows at most this many levels of a builder.
struct Levels<'a>(&'a SchemaBuilder, usize);

impl fmt::Debug for Levels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(builder, levels) = *self;
        let Some(levels) = levels.checked_sub(1) else {
            return f.write_str("..");
        };
        let below = |builder| Levels(builder, levels);
        let metadata = builder.metadata.iter();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let metadata = metadata.map(|(key, value)| (text(key), text(value)));
        f.debug_struct("SchemaBuilder")
            .field("format", &builder.format)
            .field("name", &builder.name)
            .field("flags", &builder.flags)
            .field("metadata", &metadata.collect::<Vec<_>>())
            .field(
                "children",
                &builder.children.iter().map(below).collect::<Vec<_>>(),
            )
            .field("dictionary", &builder.dictionary.as_deref().map(below))
            .finish()
    }
}

/// Not recursive, as above.
impl Drop for SchemaBuilder {
    fn drop(&mut self) {
        let mut below = std::mem::take(&mut self.children);
        below.extend(self.dictionary.take().map(|values| *values));
        while let Some(mut next) = below.pop() {
            below.append(&mut next.children);
            below.extend(next.dictionary.take().map(|values| *values));
        }
    }
}

/// The parts of a block that are linked.
#[derive(Default)]
struct Used {
    structs: usize,
    pointers: usize,
}

fn c_text(what: &str, text: &str) -> Result<Vec<u8>, String> {
    if text.contains('\0') {
        return Err(format!("{what}: NUL character: expected text without it"));
    }
    Ok([text.as_bytes(), b"\0"].concat())
}

/// Returns the address of the bytes, which stays valid when `texts` moves.
fn keep(texts: &mut Texts, bytes: Vec<u8>) -> *const c_char {
    let address = bytes.as_ptr();
    texts.push(bytes);
    address.cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_rejects_too_many_structs() {
        let field = || SchemaBuilder::new("i");
        let batch = || SchemaBuilder::new("+s").child(field().dictionary(field()));
        assert!(batch().build_at_most(3).is_ok());
        let error = batch().child(field()).build_at_most(3).unwrap_err();
        let expected = "SchemaBuilder: child 1: one of too many: expected at most 3 structs";
        assert_eq!(error.message(), expected);
    }
}
