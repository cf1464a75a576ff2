// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.sun.jna.Callback;
import com.sun.jna.CallbackReference;
import com.sun.jna.Pointer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The arguments of DLPack's set_error. */
class AbiReportTest {
  interface SetError extends Callback {
    void run(Pointer context, String kind, String message);
  }

  @Test
  void reportPassesKindAndText() {
    List<String> calls = new ArrayList<>();
    SetError setError =
        (context, kind, message) ->
            calls.add(Pointer.nativeValue(context) + " " + kind + ": " + message);
    Pointer function = CallbackReference.getFunctionPointer(setError);
    Abi.report(function, new Pointer(5), new OutOfMemoryError("caf\u00e9"));
    Abi.report(null, new Pointer(5), new OutOfMemoryError("no callback"));
    assertEquals(List.of("5 MemoryError: java.lang.OutOfMemoryError: caf\u00e9"), calls);
  }
}
