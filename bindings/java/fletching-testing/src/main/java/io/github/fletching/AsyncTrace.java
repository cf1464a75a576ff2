// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import com.google.gson.Gson;
import com.google.gson.annotations.SerializedName;
import io.github.fletching.testing.NativeLibraries;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** A trace of tests/traces/README.md. */
final class AsyncTrace {
  String name;
  List<Step> steps;

  @SerializedName("finally")
  End end;

  /** A call of the side under test, or a notification. */
  static final class Call {
    String call;
    String notify;
    Integer task;
    Boolean out;
    Integer code;
    Long n;

    /** The form in which calls and notifications are compared. */
    @Override
    public String toString() {
      return (notify != null ? "notify " + notify : call)
          + (task != null ? " " + task : "")
          + (out != null && !out ? " drop" : "")
          + (code != null ? " " + code : "")
          + (n != null ? " " + n : "");
    }
  }

  static final class Step {
    String event;
    String within;
    String beside;
    String state;
    long n;
    int task;
    int errno;
    List<Call> calls;
    List<Call> notifications;
    Integer result;
    Boolean returns;

    @SerializedName("then_returns")
    String thenReturns;

    List<String> expected() {
      List<String> all = new ArrayList<>();
      for (List<Call> some : Arrays.asList(calls, notifications)) {
        if (some != null) {
          some.forEach(call -> all.add(call.toString()));
        }
      }
      return all;
    }
  }

  static final class End {
    Map<String, Integer> calls;
    Integer code;
    String schema;
    List<String> tasks;
  }

  private static final class File {
    List<AsyncTrace> traces;
  }

  static List<AsyncTrace> read(String side) {
    Path path = NativeLibraries.repository().resolve("build/java/traces/" + side + ".json");
    try {
      return new Gson().fromJson(Files.readString(path), File.class).traces;
    } catch (IOException e) {
      throw new IllegalStateException(
          path + " cannot be read: run `fletching traces --output build/java/traces`", e);
    }
  }
}
