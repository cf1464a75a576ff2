// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The objects behind private_data. A handle is a number and not an address: one that was used
 * before is noticed. Where pointers have 32 bits, handles repeat after 4 billion. Any thread.
 */
public final class Handles {
  private static final Map<Long, Object> OBJECTS = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();

  private Handles() {}

  /**
   * Keeps an object reachable until its handle is removed.
   *
   * @param object the object
   * @return the handle, which is not 0
   */
  public static long add(Object object) {
    long handle = LAST.incrementAndGet();
    OBJECTS.put(handle, object);
    return handle;
  }

  /**
   * Returns the object of a handle.
   *
   * @param <T> the type of the object
   * @param type the class of the object
   * @param handle the handle; any number is allowed
   * @return the object
   * @throws IllegalStateException if the handle has no object of that type
   */
  public static <T> T find(Class<T> type, long handle) {
    return checked(type, OBJECTS.get(handle), handle);
  }

  /**
   * Returns the object of a handle, and forgets it: of two calls one throws.
   *
   * @param <T> the type of the object
   * @param type the class of the object
   * @param handle the handle; any number is allowed
   * @return the object
   * @throws IllegalStateException if the handle has no object of that type
   */
  public static <T> T take(Class<T> type, long handle) {
    find(type, handle);
    return checked(type, OBJECTS.remove(handle), handle);
  }

  /**
   * Returns the object of a handle, and forgets it.
   *
   * @param <T> the type of the object
   * @param type the class of the object
   * @param handle the handle; any number is allowed
   * @return the object; null if the handle has no object of that type
   */
  public static <T> T poll(Class<T> type, long handle) {
    return type.isInstance(OBJECTS.get(handle)) ? type.cast(OBJECTS.remove(handle)) : null;
  }

  /**
   * Forgets the object of a handle, if there is one.
   *
   * @param handle the handle; any number is allowed
   */
  public static void remove(long handle) {
    OBJECTS.remove(handle);
  }

  /**
   * How many objects are reachable through handles.
   *
   * @return the number of objects, of the whole process
   */
  public static int count() {
    return OBJECTS.size();
  }

  private static <T> T checked(Class<T> type, Object object, long handle) {
    if (!type.isInstance(object)) {
      throw new IllegalStateException(
          "private_data: invalid handle " + handle + ": expected a struct that is not released");
    }
    return type.cast(object);
  }
}
