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
  private final long number; // of the batch, from 0
  private DeviceArray array; // null when it is not made yet

  /** Moves the array in, or closes it. Errors: EINVAL. */
  AsyncTask(AsyncSending<?> sending, AsyncBatch batch, long number) {
    this.sending = sending;
    this.number = number;
    maker = batch.maker;
    metadata = batch.metadata.size() == 0 ? null : batch.metadata.encode();
    array = batch.array == null ? null : sending.moved(batch.array, number);
  }

  /** Calls on_next_task. A task that was refused and not extracted is closed. */
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

  /** The callback: of several calls one finds the task. */
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
    array.moveTo(out);
  }

  /** Releases what was not moved out, of a task that was not delivered. */
  void discard() {
    Exported.discard(array);
  }

  /** The end of a task that was delivered. */
  void close() {
    discard();
    sending.taskClosed();
  }
}
