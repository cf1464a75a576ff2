// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.fletching.abi.DeviceType;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Flow;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.reactivestreams.tck.TestEnvironment;
import org.reactivestreams.tck.flow.FlowPublisherVerification;
import org.reactivestreams.tck.flow.FlowSubscriberBlackboxVerification;
import org.testng.ITestResult;
import org.testng.TestListenerAdapter;
import org.testng.TestNG;

/** The Reactive Streams TCK, with a stream as the publisher and a sender as the subscriber. */
@Timeout(300)
class AsyncTckTest {
  // The TCK does not end these streams: finish() does.
  private static final Queue<AsyncDeviceStream> STREAMS = new ConcurrentLinkedQueue<>();
  private static final Queue<AsyncSending<?>> SENDINGS = new ConcurrentLinkedQueue<>();
  private static final Queue<AsyncConsumerPeer> PEERS = new ConcurrentLinkedQueue<>();
  private static final Queue<CompletableFuture<Void>> SENT = new ConcurrentLinkedQueue<>();

  /** Waits up to a minute for expected signals, and 50 ms for signals that must not arrive. */
  private static TestEnvironment environment() {
    return new TestEnvironment(60_000, 50, 50);
  }

  private static AsyncDeviceStream stream(int window) {
    AsyncDeviceStream stream = new AsyncDeviceStream(window);
    STREAMS.add(stream);
    return stream;
  }

  /** Closes each batch, because the TCK does not. */
  private static final class ClosingSubscriber implements Flow.Subscriber<DeviceArray> {
    private final Flow.Subscriber<? super Long> subscriber;

    ClosingSubscriber(Flow.Subscriber<? super Long> subscriber) {
      this.subscriber = Objects.requireNonNull(subscriber);
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
      subscriber.onSubscribe(subscription);
    }

    @Override
    public void onNext(DeviceArray batch) {
      long length = batch.length();
      batch.close();
      subscriber.onNext(length);
    }

    @Override
    public void onError(Throwable thrown) {
      subscriber.onError(thrown);
    }

    @Override
    public void onComplete() {
      subscriber.onComplete();
    }
  }

  /** Stream that forwards its subscriber's requests; its producer reads an iterator. */
  public static class Publisher extends FlowPublisherVerification<Long> {
    private final int window;

    public Publisher() {
      this(0);
    }

    Publisher(int window) {
      super(environment());
      this.window = window;
    }

    @Override
    public Flow.Publisher<Long> createFlowPublisher(long elements) {
      AsyncDeviceStream stream = stream(window);
      SENT.add(
          AsyncDeviceStreams.send(
                  AsyncRows.schema(),
                  DeviceType.CPU,
                  Stream.generate(() -> AsyncRows.rowsOf(1)).limit(elements).iterator(),
                  AsyncDeviceStreams.executor(),
                  stream.handlerAddress())
              .toCompletableFuture());
      return subscriber -> stream.subscribe(new ClosingSubscriber(subscriber));
    }

    @Override
    public Flow.Publisher<Long> createFailedFlowPublisher() {
      AsyncDeviceStream stream = stream(window);
      AsyncForeign.callOnError(stream.handlerAddress(), 71, "disk");
      AsyncForeign.callRelease(stream.handlerAddress());
      return subscriber -> stream.subscribe(new ClosingSubscriber(subscriber));
    }
  }

  /** Stream that requests before its subscriber does. */
  public static class WindowPublisher extends Publisher {
    public WindowPublisher() {
      super(4);
    }
  }

  /** Sender with a consumer that requests where the TCK does. */
  public static class Sender extends FlowSubscriberBlackboxVerification<AsyncBatch> {
    public Sender() {
      super(environment());
    }

    @Override
    public Flow.Subscriber<AsyncBatch> createFlowSubscriber() {
      AsyncConsumerPeer peer = new AsyncConsumerPeer();
      PEERS.add(peer);
      AsyncSending<AsyncBatch> sending =
          new AsyncSending<>(
              peer.handler,
              DeviceType.CPU,
              Metadata.EMPTY,
              AsyncDeviceStreams.executor(),
              batch -> batch);
      SENDINGS.add(sending);
      SENT.add(sending.done);
      sending.open(AsyncRows.schema());
      return sending;
    }

    @Override
    public void triggerFlowRequest(Flow.Subscriber<? super AsyncBatch> subscriber) {
      AsyncForeign.callRequest(((AsyncSending<?>) subscriber).producer, 1);
    }

    @Override
    public AsyncBatch createElement(int element) {
      return AsyncBatch.made(() -> AsyncRows.rowsOf(element));
    }
  }

  @AfterEach
  void finish() {
    STREAMS.forEach(AsyncDeviceStream::close);
    SENDINGS.forEach(AsyncSending::onCancel);
    for (CompletableFuture<Void> sent : SENT) {
      while (!sent.isDone()) {
        PEERS.forEach(AsyncConsumerPeer::dropAll);
      }
    }
    PEERS.forEach(AsyncConsumerPeer::close);
    STREAMS.clear();
    SENDINGS.clear();
    PEERS.clear();
    SENT.clear();
  }

  /**
   * Runs a TCK class. The TCK skips tests with several subscribers, and tests that need the
   * subscription of a sender.
   */
  private static void verify(Class<?> type, int passed, int skipped) {
    TestListenerAdapter results = new TestListenerAdapter();
    TestNG tests = new TestNG(false);
    tests.setVerbose(0);
    tests.setTestClasses(new Class<?>[] {type});
    tests.addListener(results);
    tests.run();
    List<String> failed = new ArrayList<>();
    for (ITestResult result : results.getFailedTests()) {
      failed.add(result.getName() + ": " + result.getThrowable());
    }
    assertEquals(List.of(), failed);
    assertEquals(passed, results.getPassedTests().size());
    assertEquals(skipped, results.getSkippedTests().size());
  }

  @Test
  void publisherPassesTck() {
    verify(Publisher.class, 25, 13);
  }

  @Test
  void publisherWithWindowPassesTck() {
    verify(WindowPublisher.class, 25, 13);
  }

  @Test
  void senderPassesTck() {
    verify(Sender.class, 11, 15);
  }
}
