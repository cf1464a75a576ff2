// SPDX-License-Identifier: Apache-2.0

//! Extension types: the two keys of the metadata that make one, and the parameters of
//! arrow.fixed_shape_tensor. Texts: C data interface, "Extension types"; "Canonical extension types".

use serde_json::Value;

use crate::error::{printable, Error};
use crate::owner::Schema;

pub(super) const NAME_KEY: &str = "ARROW:extension:name";
pub(super) const PARAMETERS_KEY: &str = "ARROW:extension:metadata";

/// Booleans of one byte each. Its storage is int8.
pub(super) const BOOL8: &str = "arrow.bool8";
/// Tensors of one shape. Its storage is a fixed-size list of all their elements.
pub(super) const FIXED_SHAPE_TENSOR: &str = "arrow.fixed_shape_tensor";

/// The extension type of a field: its name, empty for none, and its parameters.
pub(super) fn extension(schema: &Schema) -> Result<(&[u8], &[u8]), Error> {
    let pairs = match schema.metadata() {
        Ok(pairs) => pairs,
        Err(error) => bail!(EINVAL, "ArrowSchema.{error}"),
    };
    let text = |key: &str| pairs.get(key.as_bytes()).unwrap_or_default();
    Ok((text(NAME_KEY), text(PARAMETERS_KEY)))
}

/// The parameters of arrow.fixed_shape_tensor.
pub(super) struct TensorShape {
    /// As the elements lie in memory, the last varying fastest.
    pub(super) shape: Vec<i64>,
    /// Which of `shape` each dimension of the logical tensor is; each once.
    pub(super) permutation: Vec<usize>,
}

impl TensorShape {
    pub(super) fn parse(parameters: &[u8]) -> Result<Self, Error> {
        let Some(parsed) = Self::read(parameters) else {
            bail!(
                EINVAL,
                "{PARAMETERS_KEY} of {FIXED_SHAPE_TENSOR}: malformed: expected the form \
                 {{\"shape\":[2,3],\"permutation\":[1,0]}}, got '{}'",
                printable(parameters)
            )
        };
        Ok(parsed)
    }

    fn read(parameters: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(parameters).ok()?;
        let sizes = value.get("shape")?.as_array()?.iter();
        let shape: Option<Vec<i64>> = sizes
            .map(|size| size.as_i64().filter(|size| *size >= 0))
            .collect();
        let shape = shape.filter(|shape| !shape.is_empty())?;
        let permutation: Vec<usize> = match value.get("permutation") {
            None | Some(Value::Null) => (0..shape.len()).collect(),
            Some(axes) => serde_json::from_value(axes.clone()).ok()?,
        };
        let mut axes = permutation.clone();
        axes.sort_unstable();
        axes.into_iter()
            .eq(0..shape.len())
            .then_some(Self { shape, permutation })
    }

    pub(super) fn to_json(&self) -> String {
        let in_order = self.permutation.iter().copied().eq(0..self.shape.len());
        let permutation = match in_order {
            true => String::new(),
            false => format!(",\"permutation\":{:?}", self.permutation),
        };
        format!("{{\"shape\":{:?}{permutation}}}", self.shape).replace(' ', "")
    }
}
