// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import com.sun.jna.Library;
import com.sun.jna.Pointer;
import com.sun.jna.ptr.LongByReference;
import com.sun.jna.ptr.PointerByReference;
import io.github.fletching.FletchingException;
import io.github.fletching.abi.Offsets;
import io.github.fletching.testing.NativeLibraries;
import io.github.fletching.testing.Producer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;

/**
 * Java as the host of the chain: an array behind a shut gate passes the languages that
 * FLETCHING_CHAIN names, such as "cpp go rust", then Java, then the first of them again, and is
 * compared at the end (tests/roundtrip/chain.h).
 */
final class Chain {
  private final Ends ends = NativeLibraries.load("chain", Ends.class);
  private final Map<String, Hop> hops = new LinkedHashMap<>();

  // The names are C's: JNA looks them up. Addresses are a long.
  interface Ends extends Library {
    int FletchingChainBegin(
        String backend,
        String name,
        PointerByReference chain,
        long schema,
        long array,
        Pointer message);

    int FletchingChainEnd(
        Pointer chain, long schema, long array, LongByReference asserted, Pointer message);
  }

  /** The library of a language: tests/roundtrip/transit.h. */
  interface Hop extends Library {
    int FletchingTransitArray(
        long schema, long array, long outSchema, long outArray, Pointer message, long capacity);

    long FletchingTransitExported();

    long FletchingTransitReleased();
  }

  Chain() {
    String named = Objects.requireNonNullElse(System.getenv("FLETCHING_CHAIN"), "").trim();
    if (named.isEmpty()) {
      throw new IllegalStateException("FLETCHING_CHAIN: names no language: expected \"cpp ...\"");
    }
    for (String language : named.split("\\s+")) {
      hops.put(language, NativeLibraries.load("transit_" + language, Hop.class));
    }
  }

  void run(String backend, String name, Checks checks) {
    Map<String, Long> before = new LinkedHashMap<>();
    hops.forEach((language, hop) -> before.put(language, hop.FletchingTransitExported()));
    Rooms.with(
        Offsets.ARROW_SCHEMA,
        schema ->
            Rooms.with(
                Offsets.ARROW_DEVICE_ARRAY,
                array -> checks.compared("chain", run(backend, name, schema, array))));
    hops.forEach(
        (language, hop) -> {
          long exported = hop.FletchingTransitExported();
          checks.require(exported > before.get(language), language + " exported nothing");
          long released = hop.FletchingTransitReleased();
          checks.equal("the number of releases in " + language, released, exported);
        });
  }

  /** Returns the number of comparisons. The chain is ended after an error too. */
  private long run(String backend, String name, long schema, long array) {
    PointerByReference chain = new PointerByReference();
    Producer.call("chain", m -> ends.FletchingChainBegin(backend, name, chain, schema, array, m));
    LongByReference asserted = new LongByReference();
    RuntimeException first = null;
    try {
      sendThroughAll(schema, array);
    } catch (RuntimeException e) {
      first = e;
    }
    try {
      Producer.call(
          "chain", m -> ends.FletchingChainEnd(chain.getValue(), schema, array, asserted, m));
    } catch (FletchingException e) {
      first = first == null ? e : first;
    }
    if (first != null) {
      throw first;
    }
    return asserted.getValue();
  }

  private void sendThroughAll(long schema, long array) {
    hops.forEach((language, hop) -> send(language, hop, schema, array));
    passThrough(
        schema,
        array,
        (outSchema, outArray) -> {
          String problem = Transit.transit(schema, array, outSchema, outArray);
          if (problem != null) {
            throw new IllegalStateException("java: " + problem);
          }
        });
    Map.Entry<String, Hop> first = hops.entrySet().iterator().next();
    send(first.getKey(), first.getValue(), schema, array);
  }

  private static void send(String language, Hop hop, long schema, long array) {
    passThrough(
        schema,
        array,
        (outSchema, outArray) ->
            Producer.call(
                language,
                m ->
                    hop.FletchingTransitArray(
                        schema, array, outSchema, outArray, m, Producer.MESSAGE_SIZE)));
  }

  private interface Step {
    void run(long outSchema, long outArray);
  }

  /** Both are moved in, and replaced by the result. */
  private static void passThrough(long schema, long array, Step step) {
    Rooms.with(
        Offsets.ARROW_SCHEMA,
        outSchema ->
            Rooms.with(
                Offsets.ARROW_DEVICE_ARRAY,
                outArray -> {
                  step.run(outSchema, outArray);
                  Rooms.move(Offsets.ARROW_SCHEMA, outSchema, schema);
                  Rooms.move(Offsets.ARROW_DEVICE_ARRAY, outArray, array);
                }));
  }
}
