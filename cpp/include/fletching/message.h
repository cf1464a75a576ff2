// SPDX-License-Identifier: Apache-2.0
//
// An error message across a C interface: the caller's memory, written by the callee.
#ifndef FLETCHING_MESSAGE_H
#define FLETCHING_MESSAGE_H

/// One line of UTF-8, NUL-terminated, truncated at a character boundary if too long. Empty if there
/// is no error. Owned by the caller, which may pass NULL instead.
///
/// The text says what is wrong, not which function failed: the caller puts its own name for the
/// operation in front, as the C++ library and the bindings do ("wait_on: ", "WaitOn: ").
struct FletchingMessage {
  char text[1024];
};

#endif  // FLETCHING_MESSAGE_H
