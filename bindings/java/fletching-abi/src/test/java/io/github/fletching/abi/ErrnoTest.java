// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** The errno values of the running system, and of exceptions. */
class ErrnoTest {
  @Test
  @EnabledOnOs(OS.LINUX)
  void constantsMatchLinux() {
    assertEquals(2, Errno.ENOENT);
    assertEquals(5, Errno.EIO);
    assertEquals(12, Errno.ENOMEM);
    assertEquals(16, Errno.EBUSY);
    assertEquals(22, Errno.EINVAL);
    assertEquals(34, Errno.ERANGE);
    assertEquals(125, Errno.ECANCELED);
    assertEquals(11, Errno.EAGAIN);
    assertEquals(38, Errno.ENOSYS);
    assertEquals(95, Errno.ENOTSUP);
  }

  @Test
  void nameReturnsConstantOrNumber() {
    assertEquals("ECANCELED", Errno.name(Errno.ECANCELED));
    assertEquals("errno 4711", Errno.name(4711));
  }

  @Test
  void ofMapsExceptionToErrno() {
    assertEquals(Errno.ENOSYS, Errno.of(new UnsupportedOperationException()));
    assertEquals(Errno.ENOMEM, Errno.of(new OutOfMemoryError()));
    assertEquals(Errno.EINVAL, Errno.of(new NumberFormatException("a subclass")));
    assertEquals(Errno.ECANCELED, Errno.of(new CancellationException()));
    assertEquals(Errno.EIO, Errno.of(new IllegalStateException()));
    assertEquals(Errno.EIO, Errno.of(null));
  }
}
