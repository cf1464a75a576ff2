// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.function.BooleanSupplier;

/** Runtime whose answers are set by the test. */
class ScriptedVendor extends Vendor {
  private final BooleanSupplier answer;

  ScriptedVendor(BooleanSupplier answer) {
    super(null);
    this.answer = answer;
  }

  @Override
  boolean hasPassed(Recorded recorded) {
    return answer.getAsBoolean();
  }

  @Override
  boolean isLost(DeviceStream stream) {
    return false;
  }

  @Override
  void settle(Recorded recorded) {}

  @Override
  void runAtOrigin(Recorded recorded, Runnable body) {
    body.run();
  }

  @Override
  void finish(DeviceStream stream) {}

  @Override
  DeviceStream resolve(DeviceStream stream) {
    return stream;
  }

  @Override
  void record(Recorded recorded, DeviceStream stream) {}

  @Override
  void destroy(Recorded recorded) {}

  @Override
  FletchingException error(String function, int code) {
    return new FletchingException(code, function);
  }
}
