// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** CUDA through the driver API, with the contexts that event operations need. */
final class Cuda extends CapturingVendor {
  static final Cuda INSTANCE = new Cuda();

  private Cuda() {
    super(CudaTable.LIBRARY, CapturingCalls.CUDA);
  }

  @Override
  long handleOf(DeviceStream stream) {
    return stream.handle();
  }

  @Override
  void requireScopes() {
    CudaTable.CU_CTX_GET_CURRENT.require();
    CudaTable.CU_CTX_PUSH_CURRENT.require();
    CudaTable.CU_CTX_POP_CURRENT.require();
  }

  /** Checks recording only: a driver that does not support the wait flag rejects it. */
  @Override
  void requireExternalEvents(boolean isRecord) {
    if (isRecord && !CudaTable.CU_EVENT_RECORD_WITH_FLAGS.exists()) {
      throw FletchingException.unsupported(
          library.title
              + ": no cuEventRecordWithFlags in this driver: expected CUDA 11.1 or later for an"
              + " event of a captured stream");
    }
  }

  @Override
  String textOf(Symbol function, int code) {
    if (!function.exists()) {
      return "";
    }
    try (Cell out = new Cell()) {
      int failed = (int) function.call(code, out.address);
      return failed != 0 ? "" : Native.printable(C.getAddress(out.address));
    }
  }

  @Override
  Scope newScope(Cell out) {
    return new CudaScope(out);
  }

  @Override
  boolean isNoneCurrent() {
    try (Cell out = new Cell()) {
      library.load();
      check(CudaTable.CU_CTX_GET_CURRENT, out.address);
      return C.getAddress(out.address) == 0;
    }
  }

  /**
   * A context that is current for the calling thread until the scope is closed. The scope never
   * creates a context. Closing it restores the thread's context stack and the reference count of
   * the primary context.
   */
  private final class CudaScope extends Scope {
    private long current;
    private boolean isPushed;
    private int retained = -1; // device of the retained primary context

    CudaScope(Cell out) {
      super(out);
    }

    private void enter(long context) {
      checkHere(CudaTable.CU_CTX_GET_CURRENT, out.address);
      current = context;
      if (C.getAddress(out.address) != context) {
        int code = (int) CudaTable.CU_CTX_PUSH_CURRENT.call(context);
        isPushed = code == 0;
        checkResult(CudaTable.CU_CTX_PUSH_CURRENT, code);
      }
    }

    private boolean isPrimaryActive(int device) {
      checkHere(CudaTable.CU_DEVICE_PRIMARY_CTX_GET_STATE, device, out.address + 8, out.address);
      return C.getInt(out.address) != 0;
    }

    /** Retains an active primary context. {@code release} drops the reference. */
    private long retain(int device) {
      CudaTable.CU_DEVICE_PRIMARY_CTX_RELEASE.require();
      int code = (int) CudaTable.CU_DEVICE_PRIMARY_CTX_RETAIN.call(out.address, device);
      retained = code == 0 ? device : -1;
      checkResult(CudaTable.CU_DEVICE_PRIMARY_CTX_RETAIN, code);
      return C.getAddress(out.address);
    }

    private void release() {
      if (retained >= 0) {
        int device = retained;
        retained = -1;
        check(CudaTable.CU_DEVICE_PRIMARY_CTX_RELEASE, device);
      }
    }

    private void pop() {
      if (!isPushed) {
        return;
      }
      isPushed = false;
      // Other code may have popped or destroyed the context: then it is not on top.
      int asked = (int) CudaTable.CU_CTX_GET_CURRENT.call(out.address);
      if (asked == 0 && C.getAddress(out.address) != current) {
        return;
      }
      int code = (int) CudaTable.CU_CTX_POP_CURRENT.call(out.address);
      // The call may report an earlier error and still pop. Pop again only if this scope's context
      // is still on top, so that the caller's context stays.
      if (code != 0
          && CudaTable.CU_CTX_GET_CURRENT.call(out.address) == 0
          && C.getAddress(out.address) == current) {
        CudaTable.CU_CTX_POP_CURRENT.call(out.address);
      }
      check(CudaTable.CU_CTX_POP_CURRENT.name, code);
      check(CudaTable.CU_CTX_GET_CURRENT.name, asked);
    }

    @Override
    void leave() {
      try {
        pop();
      } catch (FletchingException first) {
        releaseAfter(first);
      }
      release();
    }

    /** Releases the primary context, and reports the first failure. */
    private void releaseAfter(FletchingException first) {
      try {
        release();
      } catch (FletchingException second) {
        first.addSuppressed(second);
      }
      throw first;
    }

    @Override
    void enterStream(DeviceStream stream) {
      if (Long.compareUnsigned(stream.handle(), LAST_DEFAULT) <= 0) {
        enterDefault(stream);
        return;
      }
      int code = (int) CudaTable.CU_STREAM_GET_CTX.call(stream.handle(), out.address);
      if (code == CudaTable.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
        throw refusal(CAPTURE_INVALIDATED);
      }
      checkResult(CudaTable.CU_STREAM_GET_CTX, code);
      enter(C.getAddress(out.address));
    }

    private long getCurrent() {
      checkHere(CudaTable.CU_CTX_GET_CURRENT, out.address);
      return C.getAddress(out.address);
    }

    private int getDevice() {
      checkHere(CudaTable.CU_CTX_GET_DEVICE, out.address);
      return C.getInt(out.address);
    }

    private void enterDefault(DeviceStream stream) {
      if (stream.origin == null) {
        enterDevice(stream.deviceId());
      } else if (!enterOrigin(stream.origin)) {
        isLost = true;
        throw FletchingException.invalid(
            "default stream: its CUDA context was destroyed: expected a live context");
      }
    }

    /**
     * Enters the current context if it belongs to the device, and otherwise the primary context.
     * Every context matches device -1.
     */
    private void enterDevice(long deviceId) {
      long own = getCurrent();
      if (own != 0) {
        enter(own);
        if (deviceId < 0 || getDevice() == deviceId) {
          return;
        }
        pop();
      }
      enterPrimary(deviceId);
    }

    /**
     * Uses the current context, or if there is none, the device's primary context if it is active.
     */
    @Override
    void enterAny(long deviceId) {
      current = getCurrent();
      if (current == 0) {
        enterPrimary(deviceId);
      }
    }

    private void enterPrimary(long deviceId) {
      if (deviceId < 0 || deviceId > Integer.MAX_VALUE) {
        throw FletchingException.invalid(
            "device_id: not a CUDA device ordinal: expected 0 to 2147483647, got "
                + deviceId
                + "; hint: name the device of a default stream, or make its context current");
      }
      checkHere(CudaTable.CU_DEVICE_GET, out.address, deviceId);
      int device = C.getInt(out.address);
      if (!isPrimaryActive(device)) {
        throw FletchingException.invalid(
            "CUDA context: none of device "
                + device
                + " is current on this thread, and its primary context is not active; hint: make"
                + " the array's context current");
      }
      enter(retain(device));
    }

    private long id(long context) {
      checkHere(CudaTable.CU_CTX_GET_ID, context, out.address);
      return C.getLong(out.address);
    }

    @Override
    void getOrigin(Origin origin) {
      origin.context = current;
      origin.contextId = CudaTable.CU_CTX_GET_ID.exists() ? id(current) : 0;
      origin.device = getDevice();
      if (retained == origin.device) {
        origin.isPrimary = true;
      } else if (isPrimaryActive(origin.device)) {
        origin.isPrimary = retain(origin.device) == current;
        release();
      }
    }

    /**
     * Whether the event's context, and with it the event, still exists. A primary context stays
     * alive until the scope is closed, unless it is reset.
     *
     * <p>For a primary context, the driver always reports whether it is active, and the id of the
     * active one. Any other context can only be queried by its handle: the driver returns
     * CUDA_ERROR_CONTEXT_IS_DESTROYED for a destroyed one, but does not guarantee it. Without
     * cuCtxGetId, before CUDA 12.0, a primary context that was reset and is active again counts as
     * the same.
     */
    private boolean isThere(Origin origin) {
      if (origin.isPrimary
          && (!isPrimaryActive(origin.device) || retain(origin.device) != origin.context)) {
        return false;
      }
      if (!CudaTable.CU_CTX_GET_ID.exists()) {
        return true;
      }
      int code = (int) CudaTable.CU_CTX_GET_ID.call(origin.context, out.address);
      if (code == CudaTable.CUDA_ERROR_CONTEXT_IS_DESTROYED
          || code == CudaTable.CUDA_ERROR_INVALID_CONTEXT) {
        return false;
      }
      checkResult(CudaTable.CU_CTX_GET_ID, code);
      return C.getLong(out.address) == origin.contextId;
    }

    @Override
    boolean enterOrigin(Origin origin) {
      // The query succeeds even if the current context was destroyed elsewhere.
      boolean isCurrent =
          origin.contextId != 0
              && CudaTable.CU_CTX_GET_ID.call(0, out.address) == 0
              && C.getLong(out.address) == origin.contextId;
      if (isCurrent) {
        current = origin.context;
        return true;
      }
      if (!isThere(origin)) {
        return false;
      }
      enter(origin.context);
      return true;
    }

    @Override
    void enterPlace(Origin origin) {
      enterOrigin(origin);
    }

    @Override
    DeviceStream resolve(DeviceStream stream) {
      Origin origin = new Origin();
      getOrigin(origin);
      return stream.resolved(CudaTable.CU_STREAM_LEGACY, origin.device, origin);
    }
  }
}
