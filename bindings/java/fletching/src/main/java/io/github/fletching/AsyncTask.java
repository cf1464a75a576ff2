// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.engine.Handles;
import java.util.concurrent.Callable;

/** A batch of a producer, from its publisher to the consumer's extract_data. */
final class AsyncTask {
  private final byte[] metadata; // null for none
  private final AsyncSending<?> sending;
  private final Callable<DeviceArray> maker;
  private final long number; // batch number, from 0
  private DeviceArray array; // null until it is made

  /** Moves the array in. Throws EINVAL and closes the array if it does not match the stream. */
  AsyncTask(AsyncSending<?> sending, AsyncBatch batch, long number) {
    this.sending = sending;
    this.number = number;
    maker = batch.maker;
    metadata = batch.metadata.size() == 0 ? null : batch.metadata.encode();
    array = batch.array == null ? null : sending.moved(batch.array, number);
  }

  /** Calls on_next_task. Closes the task if the consumer rejects it without extracting it. */
  int deliver(ForeignHandler handler, long struct) {
    long handle = 0;
    long block = 0;
    int code = FletchingException.ENOMEM;
    try {
      handle = Handles.add(this);
      block = metadata == null ? 0 : AsyncAbi.newBlock(metadata);
      AsyncAbi.installTask(struct, handle);
      code = handler.onNextTask(struct, block);
      return code;
    } finally {
      C.free(block);
      if (code != 0 && (handle == 0 || Handles.poll(AsyncTask.class, handle) != null)) {
        close();
      }
    }
  }

  /** The extract_data callback. Only one call finds the task; others return EINVAL. */
  static int extract(long self, long out) {
    AsyncTask task = Handles.poll(AsyncTask.class, C.getAddress(self + Fields.TASK_PRIVATE_DATA));
    C.putAddress(self + Fields.TASK_PRIVATE_DATA, 0);
    if (task == null) {
      return FletchingException.EINVAL;
    }
    int code = 0;
    try {
      if (out != 0) {
        task.moveTo(out);
      }
    } catch (Throwable thrown) {
      FletchingException error = FletchingException.caught(thrown);
      task.sending.fail(error);
      code = error.errno();
    }
    task.close();
    return code;
  }

  private void moveTo(long out) throws Exception {
    if (array == null) {
      DeviceArray made = maker.call();
      if (made == null) {
        throw FletchingException.invalid("batch: null: expected an array");
      }
      array = sending.moved(made, number);
    }
    array.moveWithin(out);
  }

  /** Releases the array of an undelivered task, unless it was moved out. */
  void discard() {
    Exported.discard(array);
  }

  /** Ends a delivered task. */
  void close() {
    discard();
    sending.taskClosed();
  }
}
