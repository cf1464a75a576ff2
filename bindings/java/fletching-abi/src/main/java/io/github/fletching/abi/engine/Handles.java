// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi.engine;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The objects behind private_data. Handles are numbers, not addresses, so that a stale handle is
 * detected. With 32-bit pointers only the first 2^32 - 1 handles can be found. Thread-safe.
 */
public final class Handles {
  private static final Map<Long, Object> OBJECTS = new ConcurrentHashMap<>();
  private static final AtomicLong LAST = new AtomicLong();

  private Handles() {}

  /**
   * Keeps an object reachable until its handle is removed.
   *
   * @param object the object that the handle stands for
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
   * Removes a handle and returns its object. A second call throws.
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
   * Removes a handle and returns its object.
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
   * Removes a handle. Unknown handles are ignored.
   *
   * @param handle the handle; any number is allowed
   */
  public static void remove(long handle) {
    OBJECTS.remove(handle);
  }

  /**
   * The number of registered objects.
   *
   * @return the number of objects in the whole process
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
