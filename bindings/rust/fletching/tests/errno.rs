// SPDX-License-Identifier: Apache-2.0

//! The errno values of `fletching-abi` equal those of the target's C library.

use fletching::abi::errno;

macro_rules! assert_numbers {
    ($($name:ident)*) => {
        $(assert_eq!(errno::$name, libc::$name, stringify!($name));)*
    };
}

#[test]
fn numbers_match_libc() {
    assert_numbers!(EPERM ENOENT EINTR EIO ECHILD EAGAIN ENOMEM EACCES EBUSY ENODEV EINVAL ENOSPC);
    assert_numbers!(EPIPE EDOM ERANGE EDEADLK ENOSYS EPROTO EBADMSG EOVERFLOW ENOTSUP ETIMEDOUT);
    assert_numbers!(ECANCELED);
}

#[test]
fn name_returns_none_for_unknown_number() {
    assert_eq!(errno::name(errno::ENOSYS), Some("ENOSYS"));
    assert_eq!(errno::name(0), None);
}
