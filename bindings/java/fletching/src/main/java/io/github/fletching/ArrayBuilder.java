// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.EventPointer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/**
 * Describes an array and everything below it. The builder owns no memory: {@code build} may be
 * called repeatedly.
 *
 * <p>The built structs and their lists of buffers and children share one C allocation. It lives
 * until the last struct is released: the array, or a child that was moved out of it. Not
 * thread-safe.
 *
 * <p>See "Release callback semantics for producers" in the Arrow C data interface.
 */
public final class ArrayBuilder {
  private final long length;
  private long nullCount;
  private long offset;
  private long[] buffers = {};
  private List<ByteBuffer> kept = List.of();
  private final List<ArrayBuilder> children = new ArrayList<>();
  private ArrayBuilder dictionary;

  /**
   * Creates a builder for an array without nulls.
   *
   * @param length the number of values
   */
  public ArrayBuilder(long length) {
    this.length = length;
  }

  /**
   * Sets the number of nulls; -1 if unknown.
   *
   * @param count the number of nulls
   * @return this builder
   */
  public ArrayBuilder nullCount(long count) {
    nullCount = count;
    return this;
  }

  /**
   * Sets the index of the first value in every buffer.
   *
   * @param first the index of the first value
   * @return this builder
   */
  public ArrayBuilder offset(long first) {
    offset = first;
    return this;
  }

  /**
   * Sets the device addresses of all buffers; 0 for a missing buffer. The memory must belong to the
   * object passed to {@code build}, or live at least as long. The builder does not know the type:
   * even without values, give a variable-size type an offsets buffer with one zero, because some
   * readers reject 0.
   *
   * @param addresses the addresses, in the order of the type's buffers
   * @return this builder
   */
  public ArrayBuilder buffers(long... addresses) {
    buffers = addresses.clone();
    kept = List.of();
    return this;
  }

  /**
   * Sets all buffers: each is a direct buffer, or null for a missing buffer. A buffer begins at its
   * position: flip it after writing values. The buffers stay reachable until the release; their
   * contents are not read.
   *
   * @param direct the buffers
   * @return this builder
   * @throws IllegalArgumentException for a heap buffer, and for a buffer without native byte order,
   *     which consumers expect; the default of {@code ByteBuffer.allocateDirect} is big-endian
   */
  public ArrayBuilder buffers(ByteBuffer... direct) {
    long[] addresses = new long[direct.length];
    List<ByteBuffer> all = new ArrayList<>();
    for (int i = 0; i < direct.length; i++) {
      if (direct[i] == null) {
        continue;
      }
      addresses[i] = addressOf("buffer " + i, direct[i]);
      all.add(direct[i]);
    }
    buffers = addresses;
    kept = all;
    return this;
  }

  /** Returns the address of a buffer's first byte. Rejects buffers that consumers cannot read. */
  static long addressOf(String what, ByteBuffer direct) {
    if (!direct.isDirect()) {
      throw new IllegalArgumentException(what + ": on the heap: expected a direct buffer");
    }
    if (direct.order() != ByteOrder.nativeOrder()) {
      throw new IllegalArgumentException(
          what
              + ": byte order "
              + direct.order()
              + ": expected ByteOrder.nativeOrder(); hint: set the order before the values, and"
              + " again after slice or duplicate");
    }
    return C.addressOf(direct.slice());
  }

  /**
   * Adds a child.
   *
   * @param child the builder of the child
   * @return this builder
   */
  public ArrayBuilder child(ArrayBuilder child) {
    children.add(child);
    return this;
  }

  /**
   * Sets the dictionary's values.
   *
   * @param values the values of the dictionary
   * @return this builder
   */
  public ArrayBuilder dictionary(ArrayBuilder values) {
    dictionary = values;
    return this;
  }

  /**
   * Builds the array. The object is kept until the last struct is released. If it is AutoCloseable,
   * it is closed then, on the releasing thread, and exceptions are logged.
   *
   * @param object the object, which may be null
   * @return the array
   * @throws FletchingException EINVAL for a length, offset or null count out of range, more than
   *     256 levels, 2^22 structs or 2^31-1 buffers; ENOMEM. The caller then still owns the object.
   */
  public Array build(Object object) {
    return new Array(fill(Kind.ARRAY, object));
  }

  /**
   * Builds the array; overload for a lambda as the object.
   *
   * @param object the object, which may be null
   * @return the array
   */
  public Array build(AutoCloseable object) {
    return build((Object) object);
  }

  /**
   * Builds a device array. The event is 0 or has the event type of the device type: usually the
   * address of the handle, valid until the object is closed.
   *
   * @param type the type of the device
   * @param deviceId the number of the device
   * @param syncEvent the address of the event, 0 for none
   * @param object the object, which may be null
   * @return the device array
   * @throws FletchingException as {@link #build}; EINVAL also for an event on a device type without
   *     events
   */
  public DeviceArray buildOn(DeviceType type, long deviceId, long syncEvent, Object object) {
    if (type.eventPointer().orElse(null) == EventPointer.NONE && syncEvent != 0) {
      throw FletchingException.invalid(
          "ArrayBuilder: sync_event not NULL: expected NULL, because the device type has no event");
    }
    Slot slot = fill(Kind.DEVICE_ARRAY, object);
    C.putLong(slot.address + Fields.DEVICE_ARRAY_DEVICE_ID, deviceId);
    C.putInt(slot.address + Fields.DEVICE_ARRAY_DEVICE_TYPE, type.value());
    C.putAddress(slot.address + Fields.DEVICE_ARRAY_SYNC_EVENT, syncEvent);
    return new DeviceArray(slot);
  }

  /**
   * Builds a device array; overload for a lambda as the object.
   *
   * @param type the type of the device
   * @param deviceId the number of the device
   * @param syncEvent the address of the event, 0 for none
   * @param object the object, which may be null
   * @return the device array
   */
  public DeviceArray buildOn(DeviceType type, long deviceId, long syncEvent, AutoCloseable object) {
    return buildOn(type, deviceId, syncEvent, (Object) object);
  }

  private Slot fill(Kind kind, Object object) {
    Count count = new Count();
    String problem = check(count, 0);
    if (problem != null) {
      throw FletchingException.invalid("ArrayBuilder: " + problem);
    }
    return Owner.filled(
        kind,
        address -> {
          Block block = new Block(kind, count.structs, (int) count.buffers, 0, object);
          block.kept = count.kept;
          write(address, block);
        });
  }

  private static final class Count {
    int structs;
    long buffers;
    final List<ByteBuffer> kept = new ArrayList<>();
  }

  private String check(Count count, int depth) {
    count.structs++;
    count.buffers += buffers.length;
    count.kept.addAll(kept);
    String excess = Tree.excess(depth, count.structs);
    if (excess != null) {
      return excess;
    }
    if (count.buffers > Integer.MAX_VALUE) {
      return "too many buffers: expected at most " + Integer.MAX_VALUE;
    }
    if (length < 0 || offset < 0 || nullCount < -1 || nullCount > length) {
      return "length, offset or null_count out of range: expected 0 or more, null_count -1 to"
          + " length";
    }
    for (ArrayBuilder child : children) {
      String problem = child.check(count, depth + 1);
      if (problem != null) {
        return problem;
      }
    }
    return dictionary == null ? null : dictionary.check(count, depth + 1);
  }

  /** Fills a zeroed struct and the structs below it. */
  private void write(long array, Block block) {
    C.putLong(array + Fields.ARRAY_LENGTH, length);
    C.putLong(array + Fields.ARRAY_NULL_COUNT, nullCount);
    C.putLong(array + Fields.ARRAY_OFFSET, offset);
    C.putLong(array + Fields.ARRAY_N_BUFFERS, buffers.length);
    C.putAddress(array + Fields.ARRAY_BUFFERS, block.addAddresses(buffers));
    block.adopt(Kind.ARRAY, array);
    long child = block.addChildren(array, children.size());
    for (ArrayBuilder next : children) {
      next.write(child, block);
      child += Kind.ARRAY.size;
    }
    if (dictionary != null) {
      dictionary.write(block.addDictionary(array), block);
    }
  }
}
