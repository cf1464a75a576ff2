// SPDX-License-Identifier: Apache-2.0

//! The errno values of the target: from its C library, or from the specification if it has none.

#![allow(unused_imports, reason = "some features need more of them than others")]

#[cfg(not(unix))]
pub(crate) use fletching_abi::errno::*;
#[cfg(unix)]
pub(crate) use libc::{
    EAGAIN, EBUSY, ECANCELED, ECHILD, EINVAL, EIO, ENOENT, ENOMEM, ENOSYS, ENOTSUP, ERANGE,
};
