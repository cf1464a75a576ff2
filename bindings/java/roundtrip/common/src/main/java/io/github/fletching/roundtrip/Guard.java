// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.nio.charset.StandardCharsets;

/** The border to C: nothing that is thrown crosses it. */
final class Guard {
  private Guard() {}

  /** Work that C asked for. */
  interface Body {
    void run();
  }

  /** What became of it: 0, or an errno value and a text. */
  static final class Outcome {
    final int errno;
    final byte[] text;

    private Outcome(int errno, byte[] text) {
      this.errno = errno;
      this.text = text;
    }

    String message() {
      return new String(text, StandardCharsets.UTF_8);
    }
  }

  static Outcome run(Body body) {
    try {
      body.run();
      return new Outcome(0, new byte[0]);
    } catch (TransitException e) {
      return new Outcome(e.errno(), e.text());
    } catch (Throwable e) {
      return new Outcome(TransitException.EIO, e.toString().getBytes(StandardCharsets.UTF_8));
    }
  }

  /** For callbacks that cannot say that they failed. */
  static void log(String callback, Throwable thrown) {
    try {
      System.err.println(callback + " threw " + thrown);
    } catch (Throwable ignored) {
      // There is nobody left to tell.
    }
  }
}
