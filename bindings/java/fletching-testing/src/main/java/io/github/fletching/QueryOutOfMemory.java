// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import io.github.fletching.abi.DeviceType;
import java.lang.reflect.Field;
import java.util.ArrayList;

/** In a copy of the library, one allocation fails on the thread that queries events. */
final class QueryOutOfMemory {
  private static volatile Thread asking; // the thread whose allocation failed
  private static volatile boolean closed;

  private QueryOutOfMemory() {}

  /** Reports the outcome for an array whose allocation fails, and for the next array. */
  static String report() throws ReflectiveOperationException {
    String refused = "";
    Field instance = Reaper.class.getDeclaredField("INSTANCE");
    Field incoming = Reaper.class.getDeclaredField("incoming");
    instance.setAccessible(true);
    incoming.setAccessible(true);
    incoming.set(instance.get(null), new FailingList());
    AutoCloseable object = () -> closed = true;
    DeviceArray array = new ArrayBuilder(1).buildOn(DeviceType.CUDA, 0, 0, object);
    Vendor vendor = new ScriptedVendor(() -> true);
    Slot slot = array.takeSlot("releaseAfter");
    Reaper.Deferred entry = new Reaper.Deferred(vendor, new Recorded(vendor), null, slot);
    try {
      Reaper.add(entry);
    } catch (OutOfMemoryError e) {
      refused = e.getMessage();
    }
    Reaper.add(entry);
    while (!closed && (asking == null || asking.getState() != Thread.State.TERMINATED)) {
      Thread.onSpinWait();
    }
    return refused + (closed ? ", released" : ", the thread has ended");
  }

  /** List whose first add and first copy throw OutOfMemoryError. */
  private static final class FailingList extends ArrayList<Object> {
    private static final long serialVersionUID = 1;

    private boolean refused;

    private void refuse() {
      if (!refused) {
        refused = true;
        throw new OutOfMemoryError("no room");
      }
    }

    @Override
    public boolean add(Object each) {
      refuse();
      return super.add(each);
    }

    @Override
    public Object[] toArray() {
      if (asking == null) {
        asking = Thread.currentThread();
        throw new OutOfMemoryError("on purpose");
      }
      return super.toArray();
    }
  }
}
