// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.testing.CountingEngine;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/** A consumer on the counting engine, with failing allocations for tasks and batches. */
public final class AsyncOutOfMemory {
  private static final int BLOCK = 64;
  private static final long SLAB = 64L * Kind.DEVICE_ARRAY.size; // a multiple of 16

  private AsyncOutOfMemory() {}

  /** Prints the report. */
  public static void main(String[] arguments) {
    System.out.println(report());
  }

  /**
   * Returns a report of the calls the producer gets and makes, and of the application's results.
   */
  public static String report() {
    return unheard() + "; " + untaken() + "; " + unread() + "; lost " + lost();
  }

  /**
   * Returns the number of blocks that are neither freed nor reusable after rejected and canceled
   * streams.
   */
  private static int lost() {
    refuse();
    int before = inUse();
    refuse();
    return inUse() - before;
  }

  private static int inUse() {
    int[] unused = new int[1];
    without(BLOCK, AsyncAbi::takeBlock, AsyncAbi::putBlock, blocks -> unused[0] = blocks.size());
    return CountingEngine.live() - unused[0];
  }

  private static void refuse() {
    for (String how : List.of("taken", "cancelled", "refused")) {
      AsyncHandler core = new AsyncHandler();
      core.request(2);
      if (how.equals("refused")) {
        core.taskCheck =
            metadata -> {
              throw new FletchingException(7, "no");
            };
      }
      AsyncProducerPeer peer = new AsyncProducerPeer(null, core.expose());
      peer.schema();
      for (int row = 1; row <= 3; row++) { // the last one was not requested
        peer.task(row);
        if (how.equals("taken") && row < 3) {
          core.take(0).close();
        } else if (how.equals("cancelled")) {
          core.cancel(new IllegalStateException());
        }
      }
      end(peer, core);
    }
    sendWithoutRoomForMetadata();
  }

  private static void sendWithoutRoomForMetadata() {
    Metadata metadata = Metadata.EMPTY.with("key", "a value of the stream");
    AsyncConsumerPeer consumer = new AsyncConsumerPeer();
    CountingEngine.refuse(metadata.encode().length);
    try {
      new AsyncSending<>(
          consumer.handler, DeviceType.CPU, metadata, consumer, Function.<AsyncBatch>identity());
    } catch (FletchingException e) {
      if (e.errno() != FletchingException.ENOMEM || consumer.producer() != 0) {
        throw e;
      }
    }
    CountingEngine.refuse(-1);
    consumer.close();
  }

  /**
   * The allocation of the second task's copy fails: the task is rejected and the first is dropped.
   */
  private static String unheard() {
    AsyncHandler core = new AsyncHandler();
    core.request(2);
    AsyncProducerPeer peer = new AsyncProducerPeer(null, core.expose());
    peer.schema();
    peer.task(1);
    int[] code = new int[1];
    DeviceArray batch = AsyncRows.rowsOf(2);
    without(
        BLOCK,
        AsyncAbi::takeBlock,
        AsyncAbi::putBlock,
        blocks -> {
          AsyncAbi.putBlock(blocks.remove(0)); // the peer's struct
          code[0] = peer.task(2, batch, 0);
        });
    String outcome = core.outcome().getMessage();
    return end(peer, core) + ", code " + code[0] + ", " + batch + ", " + outcome;
  }

  /** The allocation for a batch that is passed on fails: its subscriber gets the error. */
  private static String untaken() {
    AsyncDeviceStream stream = new AsyncDeviceStream();
    AsyncProducerPeer peer = new AsyncProducerPeer(stream);
    AsyncRows rows = new AsyncRows(2, 0);
    stream.subscribe(rows);
    peer.schema();
    DeviceArray batch = AsyncRows.rowsOf(1);
    without(SLAB, () -> Slot.take(Kind.DEVICE_ARRAY), Slot::free, slots -> peer.task(1, batch, 0));
    peer.release();
    peer.close();
    return peer.calls() + ", " + rows.error.getMessage();
  }

  /**
   * The allocations for the batches that the release would extract fail: the batches are dropped.
   */
  private static String unread() {
    AsyncHandler core = new AsyncHandler();
    core.request(2);
    AsyncProducerPeer peer = new AsyncProducerPeer(null, core.expose());
    peer.schema();
    peer.task(1);
    peer.task(2);
    peer.end();
    without(SLAB, () -> Slot.take(Kind.DEVICE_ARRAY), Slot::free, slots -> peer.release());
    String outcome = (core.take(0) == null) + ", " + core.outcome().getMessage();
    return end(peer, core) + ", " + outcome;
  }

  private static String end(AsyncProducerPeer peer, AsyncHandler core) {
    peer.release();
    core.close();
    peer.close();
    return peer.calls();
  }

  /** Runs the body while all memory blocks of this size are in use. */
  private static <T> void without(
      long size, Supplier<T> take, Consumer<T> giveBack, Consumer<List<T>> body) {
    List<T> taken = new ArrayList<>();
    CountingEngine.refuse(size);
    try {
      while (true) {
        taken.add(take.get());
      }
    } catch (FletchingException e) { // no free block is left
      body.accept(taken);
    }
    CountingEngine.refuse(-1);
    taken.forEach(giveBack);
  }
}
