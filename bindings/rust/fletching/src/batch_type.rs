// SPDX-License-Identifier: Apache-2.0

//! The type of a stream, for comparison with its batches.

#[cfg(feature = "_arrow")]
use std::ffi::CString;

use fletching_abi::ArrowArray;

use crate::error::Error;
use crate::owner::{Owner, Schema};
use crate::raw::{Base, Nested};
use crate::tree::walk;

/// The parts of a schema that determine the type, and the names for messages. Metadata and flags
/// are not compared.
#[derive(Debug)]
pub(crate) struct BatchType {
    #[cfg(feature = "_arrow")]
    format: CString,
    name: String,
    children: Vec<BatchType>,
    dictionary: Option<Box<BatchType>>,
}

/// Compares one field, without its children and dictionary.
type Here<'a, B> = &'a dyn Fn(&BatchType, &Owner<B>) -> Result<(), String>;

/// The names of the fields that enclose a difference, innermost first, and the difference.
struct Mismatch(Vec<String>, String);

impl Mismatch {
    fn below(mut self, name: &str) -> Self {
        self.0.push(name.to_owned());
        self
    }

    fn text(mut self) -> String {
        self.0.reverse();
        match &self.0[..] {
            [] => self.1,
            path => format!("field {:?}: {}", path.join("."), self.1),
        }
    }
}

impl BatchType {
    /// Returns the type of a schema. Errors: EINVAL if the schema or a descendant is released, or
    /// has children or levels that [`Shared::column`](crate::Shared::column) rejects.
    pub(crate) fn of(schema: &Schema) -> Result<Self, Error> {
        let root = std::ptr::from_ref(schema.as_raw()).cast_mut();
        // SAFETY: guaranteed by the contract of `Owner::from_raw`; the walk only reads.
        unsafe {
            walk("schema", root, &mut |node| match (*node).is_released() {
                true => Err("is released or moved out"),
                false => Ok(()),
            })
        }?;
        Ok(Self::copy(schema))
    }

    /// Copies a schema that was checked by `walk`.
    fn copy(schema: &Schema) -> Self {
        Self {
            #[cfg(feature = "_arrow")]
            format: schema.format().to_owned(),
            name: schema.name().to_string_lossy().into_owned(),
            children: schema
                .children()
                .iter()
                .flatten()
                .map(|child| Self::copy(child))
                .collect(),
            dictionary: schema
                .dictionary()
                .map(|values| Box::new(Self::copy(values))),
        }
    }

    /// Errors: the field whose format, children or dictionary differ.
    #[cfg(feature = "_arrow")]
    pub(crate) fn check_type(&self, schema: &Schema) -> Result<(), String> {
        let same_format = |of: &Self, schema: &Schema| match schema.format() {
            format if format == &*of.format => Ok(()),
            format => Err(format!("expected format {:?}, got {format:?}", of.format)),
        };
        self.compare(schema, &same_format).map_err(Mismatch::text)
    }

    /// Errors: the field whose children or dictionary differ. Arrays have no formats to compare.
    pub(crate) fn check_shape<R>(&self, array: &Owner<R>) -> Result<(), String>
    where
        R: Nested<Base = ArrowArray>,
    {
        self.compare(array.base(), &|_, _| Ok(()))
            .map_err(Mismatch::text)
    }

    fn compare<B: Base + Nested<Base = B>>(
        &self,
        got: &Owner<B>,
        here: Here<'_, B>,
    ) -> Result<(), Mismatch> {
        self.compare_node(got, here)
            .map_err(|why| Mismatch(Vec::new(), why))?;
        for (child, got) in self.children.iter().zip(got.children()) {
            let got = got.ok_or_else(|| Mismatch(Vec::new(), "NULL: expected a struct".into()));
            got.and_then(|got| child.compare(got, here))
                .map_err(|found| found.below(&child.name))?;
        }
        match (&self.dictionary, got.dictionary()) {
            (Some(values), Some(got)) => values
                .compare(got, here)
                .map_err(|found| found.below("dictionary")),
            _ => Ok(()),
        }
    }

    fn compare_node<B: Base + Nested<Base = B>>(
        &self,
        got: &Owner<B>,
        here: Here<'_, B>,
    ) -> Result<(), String> {
        if got.is_released() {
            return Err("released or moved out: expected a live struct".into());
        }
        here(self, got)?;
        let (expected, listed) = (self.children.len(), got.children().len());
        let (_, count) = got.as_raw().base().children();
        if (listed, count) != (expected, expected as i64) {
            return Err(format!("expected {expected} children, got {count}"));
        }
        match (self.dictionary.is_some(), got.dictionary().is_some()) {
            (true, false) => Err("expected a dictionary, got none".into()),
            (false, true) => Err("expected no dictionary, got one".into()),
            _ => Ok(()),
        }
    }
}
