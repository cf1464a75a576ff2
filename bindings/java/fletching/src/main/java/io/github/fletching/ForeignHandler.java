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
    return call(Callback.HANDLER_ON_SCHEMA, handler, schema);
  }

  int onNextTask(long task, long metadata) {
    return call(Callback.HANDLER_ON_NEXT_TASK, handler, task, metadata);
  }

  void onError(FletchingException error) {
    long text = Native.newText(error.getMessage());
    call(Callback.HANDLER_ON_ERROR, handler, error.errno(), text, 0);
    C.free(text);
  }

  void release() {
    call(Callback.HANDLER_RELEASE, handler);
  }

  private static int call(Callback callback, long... arguments) {
    return callback.in(arguments[0]) == 0 ? MISSING : (int) callback.call(arguments);
  }
}
