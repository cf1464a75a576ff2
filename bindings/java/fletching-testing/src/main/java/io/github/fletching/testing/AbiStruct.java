// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Pointer;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One struct as one flavor of the binding declares it. Values are the bits of a field at the
 * field's width, zero-extended; paths and elements are named as in the oracle.
 */
public abstract class AbiStruct {
  final String name;
  final long size;
  final long align;
  final List<String> fields = new ArrayList<>();
  final Map<String, Place> places = new LinkedHashMap<>();
  final List<Leaf> leaves = new ArrayList<>();
  final List<CallbackField> callbacks = new ArrayList<>();

  /** Creates a struct without fields. */
  protected AbiStruct(String name, long size, long align) {
    this.name = name;
    this.size = size;
    this.align = align;
  }

  /** Returns the C name. */
  public final String name() {
    return name;
  }

  /** The offset and size of a field, or of a field in an embedded struct. */
  public static final class Place {
    final long offset;
    final long size;

    /** Offset and size are in bytes. */
    public Place(long offset, long size) {
      this.offset = offset;
      this.size = size;
    }
  }

  /** The accessors of a value. */
  public interface Way {
    /** Reads the value from the struct at {@code object}. */
    long read(Pointer object);

    /** Writes the value to the struct at {@code object}. */
    void write(Pointer object, long bits);
  }

  /** One value of the struct. */
  public static final class Leaf {
    final String path;
    final int element;
    final Way way;

    /** The element is the index in an array, or 0. */
    public Leaf(String path, int element, Way way) {
      this.path = path;
      this.element = element;
      this.way = way;
    }
  }

  /** One callback of the struct. */
  public abstract static class CallbackField {
    final String name;

    /** Creates a callback field; {@code name} is the field's C name. */
    protected CallbackField(String name) {
      this.name = name;
    }

    /** Returns the signature as the flavor declares it, with pointers as objects. */
    protected abstract MethodType type();

    /**
     * Installs a callback of the flavor in the struct at {@code object}. The callback passes its
     * arguments to {@code call}. Returns an object that must stay reachable until C has called the
     * callback.
     */
    protected abstract Object install(Pointer object, Recorder call);

    /** Calls the function in the struct at {@code object}. Returns 0 for void. */
    protected abstract long invoke(Pointer object, long[] arguments);
  }

  /** Adds a direct field. */
  protected final void addField(String field, Place place) {
    fields.add(field);
    places.put(field, place);
  }

  /** Adds a value. */
  protected final void addLeaf(Leaf leaf, Place place) {
    leaves.add(leaf);
    places.put(leaf.path, place);
  }

  /** Adds a callback. */
  protected final void addCallback(CallbackField callback) {
    callbacks.add(callback);
  }

  /** The body of a flavor's callback when C calls it. */
  public static final class Recorder {
    private final Oracle oracle;
    private final String struct;
    private final String callback;
    private Throwable thrown;

    Recorder(Oracle oracle, String struct, String callback) {
      this.oracle = oracle;
      this.struct = struct;
      this.callback = callback;
    }

    /** Records the arguments and returns the callback's result. */
    public long record(long... seen) {
      try {
        for (int i = 0; i < seen.length; i++) {
          oracle.sawArgument(struct, callback, i, seen[i]);
        }
        return oracle.expectedResult();
      } catch (Throwable e) {
        thrown = e;
        return 0;
      }
    }

    String problem() {
      return thrown == null ? null : struct + "." + callback + ": " + thrown;
    }
  }
}
