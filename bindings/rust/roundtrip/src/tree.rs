// SPDX-License-Identifier: Apache-2.0

//! What ArrowSchema and ArrowArray have in common: children, a dictionary, and a release callback.

use std::ffi::c_void;

use fletching_abi::{ArrowArray, ArrowSchema};

use crate::owned::Release;

/// The fields that every node has.
pub struct Links<T> {
    /// How many children there are.
    pub n_children: i64,
    /// The list of them.
    pub children: *mut *mut T,
    /// The dictionary, or NULL.
    pub dictionary: *mut T,
    /// The callback.
    pub release: Option<unsafe extern "C" fn(*mut T)>,
    /// What stands behind the callback.
    pub private_data: *mut c_void,
}

/// A schema or an array.
pub trait Tree: Release + Sized + 'static {
    /// "schema" or "array"
    const NAME: &'static str;

    /// The common fields.
    fn links(&self) -> Links<Self>;

    /// Replaces the common fields.
    fn set_links(&mut self, links: Links<Self>);
}

macro_rules! impl_tree {
    ($type:ident, $name:literal) => {
        impl Tree for $type {
            const NAME: &'static str = $name;

            fn links(&self) -> Links<Self> {
                Links {
                    n_children: self.n_children,
                    children: self.children,
                    dictionary: self.dictionary,
                    release: self.release,
                    private_data: self.private_data,
                }
            }

            fn set_links(&mut self, links: Links<Self>) {
                self.n_children = links.n_children;
                self.children = links.children;
                self.dictionary = links.dictionary;
                self.release = links.release;
                self.private_data = links.private_data;
            }
        }
    };
}

impl_tree!(ArrowSchema, "schema");
impl_tree!(ArrowArray, "array");
