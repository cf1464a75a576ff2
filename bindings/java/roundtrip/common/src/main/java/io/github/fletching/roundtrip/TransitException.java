// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.nio.charset.StandardCharsets;

/** What becomes an errno value and a text in C. */
final class TransitException extends RuntimeException {
  static final int EIO = 5;
  static final int EINVAL = 22;
  static final int EBADMSG = 74;

  private static final long serialVersionUID = 1;

  private final int errno;
  private final byte[] text; // as it came from C, if it did

  TransitException(int errno, String message) {
    this(errno, message.getBytes(StandardCharsets.UTF_8));
  }

  /** With a text of foreign code, which is handed on as it is, UTF-8 or not. */
  TransitException(int errno, byte[] text) {
    super(new String(text, StandardCharsets.UTF_8));
    this.errno = errno;
    this.text = text;
  }

  int errno() {
    return errno;
  }

  byte[] text() {
    return text;
  }
}
