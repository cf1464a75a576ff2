// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** The calls from a producer to a consumer's handler. */
final class ForeignHandler {
  private final long handler;

  /** Throws EINVAL if a callback is NULL. */
  ForeignHandler(long handler) {
    require(handler, "on_schema", Callback.HANDLER_ON_SCHEMA);
    require(handler, "on_next_task", Callback.HANDLER_ON_NEXT_TASK);
    require(handler, "on_error", Callback.HANDLER_ON_ERROR);
    require(handler, "release", Callback.HANDLER_RELEASE);
    this.handler = Handover.EXPORT.validatedHandler(handler);
  }

  void setProducer(long producer) {
    C.putAddress(handler + Fields.HANDLER_PRODUCER, producer);
  }

  private static void require(long handler, String name, Callback callback) {
    if (callback.in(handler) == 0) {
      throw FletchingException.invalid("handler." + name + ": NULL: expected a callback");
    }
  }

  int onSchema(long schema) {
    return (int) Callback.HANDLER_ON_SCHEMA.call(handler, schema);
  }

  int onNextTask(long task, long metadata) {
    return (int) Callback.HANDLER_ON_NEXT_TASK.call(handler, task, metadata);
  }

  void onError(FletchingException error) {
    long text = Native.newText(error.getMessage());
    Callback.HANDLER_ON_ERROR.call(handler, error.errno(), text, 0);
    C.free(text);
  }

  void release() {
    Callback.HANDLER_RELEASE.call(handler);
  }
}
