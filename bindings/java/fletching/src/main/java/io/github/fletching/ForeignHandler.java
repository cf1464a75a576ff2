// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** The calls of a producer to the handler of a consumer. */
final class ForeignHandler {
  /** The code of a callback that is NULL, which no other has. */
  static final int MISSING = Integer.MIN_VALUE;

  private final long handler;

  ForeignHandler(long handler) {
    this.handler = handler;
  }

  int onSchema(long schema) {
    long function = Callback.HANDLER_ON_SCHEMA.in(handler);
    return function == 0 ? MISSING : (int) C.call("iaa", function, handler, schema);
  }

  int onNextTask(long task, long metadata) {
    long function = Callback.HANDLER_ON_NEXT_TASK.in(handler);
    return function == 0 ? MISSING : (int) C.call("iaaa", function, handler, task, metadata);
  }

  void onError(FletchingException error) {
    long function = Callback.HANDLER_ON_ERROR.in(handler);
    if (function != 0) {
      long text = Native.newText(error.getMessage());
      C.call("vaiaa", function, handler, error.errno(), text, 0);
      C.free(text);
    }
  }

  void release() {
    long function = C.getAddress(handler + Fields.HANDLER_RELEASE);
    if (function != 0) {
      C.run(function, handler);
    }
  }
}
