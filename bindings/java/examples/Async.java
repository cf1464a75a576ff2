// SPDX-License-Identifier: Apache-2.0

// Sends batches to a consumer's handler. The consumer requests two batches, then one after each.
// Prints: a batch of 3

import io.github.fletching.*;
import io.github.fletching.abi.DeviceType;
import java.util.List;
import java.util.concurrent.Flow;

record Printer(Flow.Subscription[] subscription) implements Flow.Subscriber<DeviceArray> {
  public void onSubscribe(Flow.Subscription given) {
    (subscription[0] = given).request(2);
  }

  public void onNext(DeviceArray batch) {
    System.out.println("a batch of " + batch.length());
    batch.close();
    subscription[0].request(1);
  }

  public void onError(Throwable error) {}

  public void onComplete() {}
}

final class Async {
  public static void main(String[] arguments) {
    var batches = List.of(1, 2, 3).stream().map(n -> new ArrayBuilder(n).buffers(0, 0).build(null));
    var devices = batches.map(Array::toDevice).iterator();
    try (var stream = new AsyncDeviceStream();
        Schema schema = new SchemaBuilder("i").build()) {
      stream.subscribe(new Printer(new Flow.Subscription[1]));
      long handler = stream.handlerAddress(); // the other side can be any library
      var pool = java.util.concurrent.ForkJoinPool.commonPool();
      var sent = AsyncDeviceStreams.send(schema, DeviceType.CPU, devices, pool, handler);
      sent.toCompletableFuture().join();
    }
  }
}
