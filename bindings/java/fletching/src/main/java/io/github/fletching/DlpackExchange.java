// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static io.github.fletching.Native.POINTER;

import io.github.fletching.abi.DeviceType;
import io.github.fletching.abi.DlpackConstants;
import io.github.fletching.abi.EventPointer;
import io.github.fletching.abi.Offsets;
import io.github.fletching.abi.engine.Handles;
import java.util.Optional;

/**
 * A framework's table of functions, DLPackExchangeAPI. Tables live as long as the process. All
 * methods are thread-safe, unless the framework has restrictions.
 *
 * <p>See "DLPackExchangeAPI" in DLPack.
 */
public final class DlpackExchange {
  private static final int ALIGNMENT = 256; // alignment of DLTensor.data
  private static final long FAILURE = -1;

  private static DlpackExchange own; // null until first used
  // Error messages, allocated with the table because memory may run out later.
  private static long memoryError;
  private static long bufferError;

  private final long table;

  private DlpackExchange(long table) {
    this.table = table;
  }

  /**
   * Finds the table of major version 1: the given table or one of its predecessors.
   *
   * @param first the address in a framework's {@code dlpack_exchange_api} capsule; 0 for NULL
   * @return the table; empty if no table has that version
   */
  public static Optional<DlpackExchange> find(long first) {
    for (long at = first; at != 0; ) {
      long version = at + Fields.EXCHANGE_API_HEADER_VERSION;
      if (C.getInt(version + Fields.VERSION_MAJOR) == DlpackConstants.DLPACK_MAJOR_VERSION) {
        return Optional.of(new DlpackExchange(at));
      }
      at = C.getAddress(at + Fields.EXCHANGE_API_HEADER_PREV_API);
    }
    return Optional.empty();
  }

  /**
   * Allocates a framework tensor with the type, shape and device of the builder. Its elements are
   * uninitialized.
   *
   * @param prototype the description of the tensor
   * @return the tensor
   * @throws FletchingException ENOSYS if the table lacks the function; EINVAL for an invalid shape;
   *     ENOMEM, and EIO with the framework's message
   */
  public Tensor allocate(TensorBuilder prototype) {
    return Events.named("allocate", () -> callAllocator(prototype));
  }

  private Tensor callAllocator(TensorBuilder prototype) {
    long function = function(Fields.EXCHANGE_API_MANAGED_TENSOR_ALLOCATOR);
    if (function == 0) {
      throw lacks("managed_tensor_allocator");
    }
    prototype.check();
    long struct = (Offsets.DL_TENSOR.size(C.target()) + 7) & ~7L;
    long memory = Native.allocate(struct + 16L * prototype.ndim(), "allocate");
    try {
      prototype.write(memory, memory + struct);
      return new AllocationError().call(function, memory);
    } finally {
      C.free(memory);
    }
  }

  /** The error reported by a framework. Only the first report counts. */
  private static final class AllocationError {
    static final long SET =
        C.stub(
            "set_error",
            "vaaa",
            0,
            (context, kind, text, d) -> {
              Handles.find(AllocationError.class, context).set(kind, text);
              return 0;
            });

    private FletchingException error;

    private void set(long kind, long text) {
      if (error != null) {
        return;
      }
      String shown = line(kind);
      error =
          new FletchingException(
              shown.equals("MemoryError") ? FletchingException.ENOMEM : FletchingException.EIO,
              "managed_tensor_allocator: " + shown + ": " + line(text));
    }

    private static String line(long text) {
      return Native.printable(text).replace('\n', ' ').replace('\t', ' ');
    }

    Tensor call(long function, long prototype) {
      Slot slot = Slot.take(Kind.TENSOR); // before the call: a tensor without a slot would leak
      long handle = Handles.add(this);
      int result;
      try {
        result = (int) C.call("iaaaa", function, prototype, slot.address, handle, SET);
      } finally {
        Handles.remove(handle);
      }
      if (result != 0) {
        Kind.TENSOR.markReleased(slot.address); // the pointer, if any, is not owned
      }
      Handover.IMPORT.validate(Kind.TENSOR, slot.address);
      Tensor tensor = new Tensor(Kind.TENSOR, slot);
      if (error == null && !tensor.isReleased()) {
        return tensor;
      }
      tensor.close();
      throw error != null
          ? error
          : new FletchingException(
              FletchingException.EIO,
              "managed_tensor_allocator: expected a tensor, got the result " + result);
    }
  }

  /**
   * The framework's current work stream, for use with tensors from the functions without
   * synchronization. On a device type without events, the result disables ordering.
   *
   * @param type the type of the device
   * @param id the device id within the type
   * @return the stream
   * @throws FletchingException ENOSYS if the table lacks the function; ENOTSUP on a device whose
   *     streams are not CUDA or ROCm streams; EIO if the function fails; for host-readable memory,
   *     ENOENT if the CUDA library, which is queried for the current context, is not found
   */
  public ConsumerStream currentWorkStream(DeviceType type, int id) {
    return Events.named("currentWorkStream", () -> workStream(type, id));
  }

  private ConsumerStream workStream(DeviceType type, int id) {
    long function = function(Fields.EXCHANGE_API_CURRENT_WORK_STREAM);
    if (function == 0) {
      throw lacks("current_work_stream");
    }
    if (type.eventPointer().orElse(null) == EventPointer.NONE) {
      return ConsumerStream.unordered();
    }
    if (!ConsumerStream.hasStreams(type)) {
      throw FletchingException.unsupported(
          "current_work_stream: not supported on "
              + type
              + ": expected CUDA or ROCm; hint: wait for the framework's work, and pass no stream");
    }
    long out = Native.allocate(POINTER, "currentWorkStream");
    try {
      int result = (int) C.call("iiia", function, type.value(), id, out);
      if (result != 0) {
        throw new FletchingException(
            FletchingException.EIO,
            "current_work_stream: expected a stream, got the result " + result);
      }
      long device = TensorImport.deviceOfStreams(type, id);
      return ConsumerStream.on(DeviceStream.of(type, C.getAddress(out)).onDevice(device));
    } finally {
      C.free(out);
    }
  }

  private long function(long field) {
    return C.getAddress(table + field);
  }

  private static FletchingException lacks(String function) {
    return new FletchingException(
        FletchingException.ENOSYS, "exchange: the table lacks " + function);
  }

  /**
   * The address of the table.
   *
   * @return the address
   */
  public long address() {
    return table;
  }

  // --- The table of this library

  /**
   * This library's table. Its allocator creates CPU tensors with memory aligned to 256 bytes. The
   * CPU has no work stream. The functions for Python objects fail. The table is valid until {@link
   * Owner#shutdown}.
   *
   * @return the table
   * @throws FletchingException ENOMEM
   */
  public static synchronized DlpackExchange ofJava() {
    own = own == null ? new DlpackExchange(make()) : own;
    return own;
  }

  private static long make() {
    memoryError = newText("MemoryError");
    bufferError = newText("BufferError");
    long made = Native.allocate(Offsets.DL_PACK_EXCHANGE_API.size(C.target()), "exchange");
    long version = made + Fields.EXCHANGE_API_HEADER + Fields.EXCHANGE_API_HEADER_VERSION;
    C.putInt(version + Fields.VERSION_MAJOR, (int) DlpackConstants.DLPACK_MAJOR_VERSION);
    C.putInt(version + Fields.VERSION_MINOR, (int) DlpackConstants.DLPACK_MINOR_VERSION);
    C.putAddress(
        made + Fields.EXCHANGE_API_MANAGED_TENSOR_ALLOCATOR,
        C.stub("managed_tensor_allocator", "iaaaa", FAILURE, DlpackExchange::allocateHere));
    long noPython = C.stub("managed_tensor_py_object", "iaa", FAILURE, (a, b, c, d) -> FAILURE);
    C.putAddress(made + Fields.EXCHANGE_API_MANAGED_TENSOR_FROM_PY_OBJECT_NO_SYNC, noPython);
    C.putAddress(made + Fields.EXCHANGE_API_MANAGED_TENSOR_TO_PY_OBJECT_NO_SYNC, noPython);
    C.putAddress(
        made + Fields.EXCHANGE_API_CURRENT_WORK_STREAM,
        C.stub("current_work_stream", "iiia", FAILURE, DlpackExchange::workStreamHere));
    return made;
  }

  private static long newText(String text) {
    long address = Native.newText(text);
    if (address == 0) {
      throw FletchingException.noMemory("exchange");
    }
    return address;
  }

  private static long workStreamHere(long type, long id, long out, long unused) {
    if ((int) type != DeviceType.CPU.value() || out == 0) {
      return FAILURE;
    }
    C.putAddress(out, 0);
    return 0;
  }

  private static long allocateHere(long prototype, long out, long context, long setError) {
    try {
      C.putAddress(out, 0);
      allocateLike(prototype).moveTo(out);
      return 0;
    } catch (Throwable thrown) {
      report(FletchingException.of(thrown), context, setError);
      return FAILURE;
    }
  }

  private static void report(FletchingException error, long context, long setError) {
    if (setError == 0) {
      return;
    }
    long kind = error.errno() == FletchingException.ENOMEM ? memoryError : bufferError;
    long text = Native.newText(error.getMessage());
    C.call("vaaa", setError, context, kind, text == 0 ? kind : text);
    C.free(text);
  }

  private static Tensor allocateLike(long prototype) {
    TensorBuilder like = TensorBuilder.like(prototype);
    long elements = like.check();
    if (!like.deviceType().equals(DeviceType.CPU)) {
      throw FletchingException.unsupported(
          "DLTensor.device: not supported: expected the CPU, got " + like.deviceType());
    }
    long bytes = like.countBytes(elements);
    if (bytes == 0) {
      return like.build(null);
    }
    long memory =
        Long.compareUnsigned(bytes, Long.MAX_VALUE - ALIGNMENT) <= 0
            ? C.allocate(bytes + ALIGNMENT)
            : 0;
    if (memory == 0) {
      throw FletchingException.noMemory("tensor");
    }
    AutoCloseable free = () -> C.free(memory);
    try {
      return like.data(memory + ALIGNMENT - memory % ALIGNMENT).build(free);
    } catch (Throwable thrown) {
      C.free(memory);
      throw thrown;
    }
  }
}
