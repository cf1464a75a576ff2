// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.lang.reflect.Method;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;

/** Runs a test, or each test of a class, on a {@link LibraryCopy} with the counting engine. */
@Target({ElementType.METHOD, ElementType.TYPE})
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(OnLibraryCopy.Runner.class)
public @interface OnLibraryCopy {
  /** Calls the method on the copied class instead of the test's class. */
  final class Runner implements InvocationInterceptor {
    @Override
    public void interceptTestMethod(
        Invocation<Void> invocation,
        ReflectiveInvocationContext<Method> test,
        ExtensionContext context) {
      invocation.skip();
      LibraryCopy.run(test.getTargetClass(), test.getExecutable().getName());
    }
  }
}
