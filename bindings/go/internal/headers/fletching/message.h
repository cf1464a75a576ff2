// SPDX-License-Identifier: Apache-2.0
//
// An error message across a C interface: memory of the caller, written by the callee.
#ifndef FLETCHING_MESSAGE_H
#define FLETCHING_MESSAGE_H

/// One line of UTF-8, NUL-terminated, cut at a character boundary when it is too long. Empty when
/// there was no error. Owned by the caller; wherever a function accepts one, NULL means that the
/// caller does not read it.
struct FletchingMessage {
  char text[1024];
};

#endif  // FLETCHING_MESSAGE_H
