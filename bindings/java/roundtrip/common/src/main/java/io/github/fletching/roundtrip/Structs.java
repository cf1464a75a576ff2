// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.util.function.LongConsumer;
import java.util.function.ToLongFunction;

/**
 * The structs as one flavor of the binding sees them: every function here goes through the flavor's
 * accessors and callbacks. A struct is its address, and so is every pointer; 0 is NULL.
 */
public abstract class Structs {
  /** The flavor in the cells, such as {@code java-jna}. */
  public final String language;

  /** The size of an ArrowDeviceArray. */
  public final long deviceArraySize;

  final Schema schema = new Schema();
  final Array array = new Array();
  final Stream stream = new Stream();

  /** The flavor fills the structs in. */
  protected Structs(String language, long deviceArraySize) {
    this.language = language;
    this.deviceArraySize = deviceArraySize;
  }

  /** Zeroed memory of C's; throws OutOfMemoryError. */
  protected abstract long allocate(long size);

  /** Frees what {@link #allocate} gave. */
  protected abstract void free(long address);

  /** The address of {@code array} in an ArrowDeviceArray. */
  protected abstract long arrayOf(long deviceArray);

  /** Sets {@code reserved} of an ArrowDeviceArray to zero. */
  protected abstract void clearReserved(long deviceArray);

  /** Reads a field of the struct at an address. */
  public interface Reader {
    /** Reads it. */
    long of(long struct);
  }

  /** Reads and writes a field of the struct at an address. */
  public interface Field extends Reader {
    /** Writes it. */
    void set(long struct, long value);
  }

  /** A callback with one argument behind self that returns an errno value. */
  public interface Filler {
    /** Fills {@code out}. */
    int fill(long self, long out);
  }

  // The names are those of C. A call goes through the function pointer in the struct. A "new" makes
  // a function for C, which may be called until the process ends.

  /** What ArrowSchema and ArrowArray have in common. */
  static class Node {
    String name;
    long size;
    Reader childCount;
    Field children;
    Field dictionary;
    Field release;
    LongConsumer callRelease;
    ToLongFunction<LongConsumer> newRelease;
    Field privateData;
  }

  /** ArrowSchema. */
  static final class Schema extends Node {
    Reader format;
    Reader fieldName;
    Reader metadata;
    Reader flags;
  }

  /** ArrowArray. */
  static final class Array extends Node {
    Reader length;
    Reader nullCount;
    Reader offset;
    Reader bufferCount;
    Reader buffers;
  }

  /** ArrowDeviceArrayStream. */
  static final class Stream {
    long size;
    Field getSchema;
    Filler callGetSchema;
    ToLongFunction<Filler> newGetSchema;
    Field getNext;
    Filler callGetNext;
    ToLongFunction<Filler> newGetNext;
    Field getLastError;
    Reader callGetLastError;
    ToLongFunction<Reader> newGetLastError;
    Field release;
    LongConsumer callRelease;
    ToLongFunction<LongConsumer> newRelease;
    Field privateData;
  }
}
