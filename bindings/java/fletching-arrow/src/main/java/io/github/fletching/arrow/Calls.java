// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.FletchingException;
import io.github.fletching.Owner;
import java.util.List;
import java.util.function.Supplier;
import org.apache.arrow.memory.OutOfMemoryException;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;

/** Calls of arrow-java, whose exceptions become FletchingExceptions. */
final class Calls {
  private static final int ENOMEM = 12;
  private static final int EINVAL = 22;

  private Calls() {}

  static <T> T guarded(String operation, Supplier<T> body) {
    try {
      return body.get();
    } catch (FletchingException e) {
      throw e;
    } catch (RuntimeException e) {
      int errno = e instanceof OutOfMemoryException ? ENOMEM : EINVAL;
      String problem = e.getMessage() == null ? e.toString() : e.getMessage();
      throw new FletchingException(errno, operation + ": arrow-java: " + problem, e);
    }
  }

  /** The same; closes what the result would own when there is none. */
  static <T> T guarded(String operation, Runnable close, Supplier<T> body) {
    boolean done = false;
    try {
      T result = guarded(operation, body);
      done = true;
      return result;
    } finally {
      if (!done) {
        close.run();
      }
    }
  }

  static <T extends Owner> T live(String operation, T owner) {
    if (owner.isReleased()) {
      throw new IllegalStateException(operation + ": closed or moved: expected a live struct");
    }
    return owner;
  }

  /** Without one of them arrow-java throws in the middle of an export, and forgets the rest. */
  static void checkDictionaries(
      String operation, List<Field> fields, DictionaryProvider dictionaries) {
    for (Field field : fields) {
      checkDictionaries(operation, field.getChildren(), dictionaries);
      DictionaryEncoding encoding = field.getDictionary();
      Dictionary found =
          encoding == null || dictionaries == null ? null : dictionaries.lookup(encoding.getId());
      if (found != null) {
        checkDictionaries(operation, found.getVector().getField().getChildren(), dictionaries);
      } else if (encoding != null) {
        throw invalid(
            operation,
            "field "
                + field.getName()
                + ": dictionary "
                + encoding.getId()
                + ": not in the provider");
      }
    }
  }

  static FletchingException invalid(String operation, String problem) {
    return new FletchingException(EINVAL, operation + ": " + problem);
  }
}
