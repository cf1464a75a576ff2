// SPDX-License-Identifier: Apache-2.0

//! The checks of a description. Each returns the value found, or `None` if the rule is satisfied.

use super::description::Interface;
use super::tables::{
    Check, IRRELEVANT, MASK_SINCE, MAX_MASKS, REFUSED_STREAMS, STREAM_SINCE, VERSION,
};
use super::typestr::Typestr;

/// An array during the checks.
pub(super) struct Checked<'a> {
    says: &'a Interface,
    /// The number of masks between the checked array and this one.
    depth: usize,
    typestr: Option<Typestr>,
}

impl<'a> Checked<'a> {
    pub(super) fn new(says: &'a Interface, depth: usize) -> Self {
        Self {
            says,
            depth,
            typestr: Typestr::parse(&says.typestr),
        }
    }

    fn is_version_known(&self) -> bool {
        (0..=VERSION).contains(&self.says.version)
    }

    /// The version whose rules apply to the array.
    pub(super) fn version(&self) -> i64 {
        match self.is_version_known() {
            true => self.says.version,
            false => VERSION,
        }
    }

    pub(super) fn mask(&self) -> Option<&'a Interface> {
        let mask = self.says.mask.as_deref();
        mask.filter(|_| self.version() >= MASK_SINCE)
    }

    fn has_negative(&self) -> bool {
        self.says.shape.iter().any(|size| *size < 0)
    }

    fn has_elements(&self) -> bool {
        !self.has_negative() && !self.says.shape.contains(&0)
    }

    /// Returns 0 for a malformed type string.
    fn item_bytes(&self) -> u64 {
        self.typestr.as_ref().map_or(0, Typestr::item_bytes)
    }

    pub(super) fn find(&self, check: Check) -> Option<String> {
        match check {
            Check::ShapeSizes => self.shape_sizes(),
            Check::TypestrGrammar => self.typestr_grammar(),
            Check::TypestrOrder => self.typestr_order(),
            Check::TypestrSize => self.typestr_size(),
            Check::DataPointer => self.data_pointer(),
            Check::DataZeroSize => self.data_zero_size(),
            Check::DataExtent => self.data_extent(),
            Check::VersionKnown => self.version_known(),
            Check::VersionKeys => self.version_keys(),
            Check::StridesLength => self.strides_length(),
            Check::MaskShape => self.mask_shape(),
            Check::MaskNesting => self.mask_nesting(),
            Check::StreamZero => self.stream_zero(),
            Check::StreamHandle => self.stream_handle(),
        }
    }

    fn shape_sizes(&self) -> Option<String> {
        let negative = self.says.shape.iter().find(|size| **size < 0)?;
        Some(negative.to_string())
    }

    fn typestr_grammar(&self) -> Option<String> {
        self.typestr.is_none().then(|| self.quote())
    }

    fn typestr_order(&self) -> Option<String> {
        let parsed = self.typestr.as_ref()?;
        let has_order = parsed.kind.is_ordered && parsed.item_bytes() > 1;
        (parsed.order == IRRELEVANT && has_order).then(|| self.quote())
    }

    fn typestr_size(&self) -> Option<String> {
        let parsed = self.typestr.as_ref()?;
        let (number, sizes) = (parsed.number?, parsed.kind.sizes);
        (!sizes.is_empty() && !sizes.contains(&number)).then(|| self.quote())
    }

    fn data_pointer(&self) -> Option<String> {
        let is_missing = self.says.pointer == 0 && self.has_elements() && self.item_bytes() > 0;
        is_missing.then(|| "0".into())
    }

    fn data_zero_size(&self) -> Option<String> {
        let is_empty = !self.has_negative() && !self.has_elements();
        (self.says.pointer != 0 && is_empty).then(|| self.says.pointer.to_string())
    }

    fn data_extent(&self) -> Option<String> {
        if self.says.pointer == 0 || !self.has_elements() || self.item_bytes() == 0 {
            return None;
        }
        let is_inside = self.reach().is_some_and(|(before, after)| {
            let first = u128::from(self.says.pointer);
            before <= first && after <= (1 << 64) - first
        });
        (!is_inside).then(|| "elements outside of the address space".into())
    }

    /// The number of bytes before the first element, and from the first element on. `None` if they
    /// exceed 128 bits.
    fn reach(&self) -> Option<(u128, u128)> {
        let sizes = self
            .says
            .shape
            .iter()
            .map(|size| size.unsigned_abs().into());
        let (mut before, mut after) = (0u128, u128::from(self.item_bytes()));
        match &self.says.strides {
            None => {
                for size in sizes {
                    after = after.checked_mul(size)?;
                }
            }
            // A wrong number of strides is reported by another rule.
            Some(strides) if strides.len() != self.says.shape.len() => {}
            Some(strides) => {
                for (size, stride) in sizes.zip(strides) {
                    // Below 2^126: the size is below 2^63, and the stride at most 2^63.
                    let reach = (size - 1) * u128::from(stride.unsigned_abs());
                    let side = match stride {
                        ..0 => &mut before,
                        _ => &mut after,
                    };
                    *side = side.checked_add(reach)?;
                }
            }
        }
        Some((before, after))
    }

    fn version_known(&self) -> Option<String> {
        (!self.is_version_known()).then(|| self.says.version.to_string())
    }

    fn version_keys(&self) -> Option<String> {
        let version = self.version();
        let has_mask = self.says.mask.is_some() && MASK_SINCE > version;
        let has_stream = self.says.stream.is_some() && STREAM_SINCE > version;
        let newer = match (has_mask, has_stream) {
            (false, false) => return None,
            (true, false) => "mask",
            (false, true) => "stream",
            (true, true) => "mask, stream",
        };
        Some(format!("{newer} in version {version}"))
    }

    fn strides_length(&self) -> Option<String> {
        let (strides, dimensions) = (self.says.strides.as_ref()?.len(), self.says.shape.len());
        (strides != dimensions).then(|| format!("{strides} strides, {dimensions} dimensions"))
    }

    fn mask_shape(&self) -> Option<String> {
        let mask = self.mask().filter(|_| self.depth < MAX_MASKS)?;
        let (inner, whole) = (&mask.shape, &self.says.shape);
        let mut pairs = inner.iter().rev().zip(whole.iter().rev());
        let broadcasts =
            inner.len() <= whole.len() && pairs.all(|(size, of)| *size == 1 || size == of);
        (!broadcasts).then(|| {
            let [inner, whole] = [show_shape(inner), show_shape(whole)];
            format!("a mask of {inner} for {whole}")
        })
    }

    fn mask_nesting(&self) -> Option<String> {
        let is_too_deep = self.depth >= MAX_MASKS && self.mask().is_some();
        is_too_deep.then(|| format!("more than {MAX_MASKS} masks within each other"))
    }

    fn stream_zero(&self) -> Option<String> {
        let stream = self.says.stream?;
        REFUSED_STREAMS
            .contains(&stream)
            .then(|| stream.to_string())
    }

    fn stream_handle(&self) -> Option<String> {
        let stream = self.says.stream?;
        (stream < 0).then(|| stream.to_string())
    }

    /// The beginning of the type string in printable ASCII.
    fn quote(&self) -> String {
        let text = &self.says.typestr;
        let shown = text.chars().take(40).map(|c| match c {
            ' '..='~' => c,
            _ => '?',
        });
        let end = if text.chars().count() > 40 {
            "...'"
        } else {
            "'"
        };
        format!("'{}{end}", shown.collect::<String>())
    }
}

fn show_shape(shape: &[i64]) -> String {
    let sizes: Vec<String> = shape.iter().take(8).map(i64::to_string).collect();
    let end = if shape.len() > 8 { ", ...)" } else { ")" };
    format!("shape ({}{end}", sizes.join(", "))
}
