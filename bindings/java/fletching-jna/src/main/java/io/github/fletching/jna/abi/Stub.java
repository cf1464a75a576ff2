// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.jna.abi;

import com.sun.jna.CallbackProxy;
import com.sun.jna.CallbackThreadInitializer;
import io.github.fletching.abi.engine.Failures;

/** A C function that runs Java code. Catches every exception, because JNA would return 0 to C. */
final class Stub implements CallbackProxy {
  /**
   * Attaches a foreign thread as a daemon at its first call, and detaches it when it ends:
   * detaching after every call would cost more than the calls.
   */
  static final CallbackThreadInitializer FOREIGN_THREADS =
      new CallbackThreadInitializer(true, false, "fletching-callback");

  /** The function body, called with the arguments from C. */
  interface Body {
    Object run(Object[] arguments);
  }

  /** A function body without a result. */
  interface VoidBody {
    void run(Object[] arguments);
  }

  private final String name;
  private final Class<?> result;
  private final Object failure;
  private final Body body;
  private final Class<?>[] arguments;

  Stub(String name, Class<?> result, Object failure, Body body, Class<?>... arguments) {
    this.name = name;
    this.result = result;
    this.failure = failure;
    this.body = body;
    this.arguments = arguments;
  }

  @Override
  public Object callback(Object[] arguments) {
    try {
      return body.run(arguments);
    } catch (Throwable thrown) {
      Failures.log(name, thrown);
      return failure;
    }
  }

  @Override
  public Class<?>[] getParameterTypes() {
    return arguments.clone();
  }

  @Override
  public Class<?> getReturnType() {
    return result;
  }
}
