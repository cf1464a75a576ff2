// SPDX-License-Identifier: Apache-2.0

//! Views of a shared struct. Each view keeps the struct alive.

use std::sync::Arc;

use crate::block::Block;
use crate::chain::Shown;
use crate::error::Error;
use crate::owner::Owner;
use crate::raw::{Base, Nested};
use crate::shared::Shared;
use crate::tree::{children_of, walk};

impl<R: Nested> Shared<R> {
    /// Returns child `index` as a separate struct. The child of a device array has the parent's
    /// device and event.
    ///
    /// Errors: EINVAL if there is no such child, or if it or a descendant was already moved out or
    /// is malformed: NULL, a schema without a format, `n_children` negative, above 2^22 or without
    /// a list, more than 256 levels, more than 2^22 structs.
    pub fn column(&self, index: usize) -> Result<Owner<R>, Error> {
        // SAFETY: guaranteed by the contract of `Owner::from_raw`.
        let children = unsafe { children_of(self.as_raw().base()) };
        let Some(child) = children.get(index).copied() else {
            return Err(Error::invalid(format!(
                "column: child {index}: no such child: expected an index below {}",
                children.len()
            )));
        };
        self.view_of(child)
    }

    /// Returns the whole struct as a separate one. Errors: as for [`column`](Self::column).
    pub fn view(&self) -> Result<Owner<R>, Error> {
        self.view_of(std::ptr::from_ref(self.as_raw().base()).cast_mut())
    }

    fn view_of(&self, shown: *mut R::Base) -> Result<Owner<R>, Error> {
        let root = self.as_raw().base();
        let (mut structs, mut as_made) = (0, true);
        // SAFETY: guaranteed by the contract of `Owner::from_raw`; the walk and the copy only read.
        unsafe {
            walk("view", shown, &mut |node: *mut R::Base| {
                structs += 1;
                as_made &= (*node).private_data() == root.private_data();
                (*node).what_is_missing()
            })?;
            // A view of a view shares the original owner directly, so that the release of nested
            // views needs no recursion.
            let view: Option<*mut Block<_, Shown>> = Block::of(root).filter(|_| as_made);
            let object = match view {
                Some(view) => (*Block::object(view)).clone(),
                None => Shown {
                    share: Arc::<Owner<R>>::clone(&self.0),
                    data: root.our_data(),
                },
            };
            let block = Block::new(structs - 1, 0, object);
            let block = block.ok_or_else(|| Error::new(crate::errno::ENOMEM, "view: no memory"))?;
            Block::set_shares(block, structs);
            let (first, pointers, _) = Block::parts(block);
            let mut used = 0;
            let mut copier = Copier {
                block,
                first,
                pointers,
                used: &mut used,
            };
            Ok(Owner::new(self.as_raw().around(copier.copy(&*shown))))
        }
    }
}

struct Copier<'a, B, T> {
    block: *mut Block<B, T>,
    first: *mut B,
    pointers: *mut *mut B,
    used: &'a mut usize,
}

impl<B: Base, T: Send + 'static> Copier<'_, B, T> {
    /// # Safety
    ///
    /// The block has room for `shown` and its descendants, which were walked.
    unsafe fn copy(&mut self, shown: &B) -> B {
        let mut copied = shown.copy_fields();
        Block::join(self.block, &mut copied);
        // SAFETY: the caller guarantees that the block has room, and that the descendants are
        // valid.
        unsafe {
            let children = children_of(shown);
            if !children.is_empty() {
                let list = self.pointers.add(*self.used);
                let structs = self.first.add(*self.used);
                *self.used += children.len();
                for (index, child) in children.iter().enumerate() {
                    list.add(index).write(structs.add(index));
                    let child = self.copy(&**child);
                    structs.add(index).write(child);
                }
                copied.set_children(list);
            }
            if let Some(dictionary) = shown.dictionary().as_ref() {
                let place = self.first.add(*self.used);
                *self.used += 1;
                let dictionary = self.copy(dictionary);
                place.write(dictionary);
                copied.set_dictionary(place);
            }
        }
        copied
    }
}
