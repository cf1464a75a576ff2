// SPDX-License-Identifier: Apache-2.0
//
// An error message across a C interface: the caller's memory, written by the callee.
#ifndef FLETCHING_MESSAGE_H
#define FLETCHING_MESSAGE_H

/// One line of UTF-8, NUL-terminated, truncated at a character boundary if too long. Empty if there
/// is no error. Owned by the caller, which may pass NULL instead.
///
/// Does not name the failed function. The C++ library and the bindings add the operation in their
/// own spelling ("wait_on: ", "WaitOn: ").
struct FletchingMessage {
  char text[1024];
};

#endif  // FLETCHING_MESSAGE_H
