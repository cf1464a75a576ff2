// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.testing.CountingEngine;
import io.github.fletching.testing.NativeLibraries;
import io.github.fletching.testing.suite.OnLibraryCopy;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The search for a library and its functions, with copied libraries that are not loaded yet. */
@OnLibraryCopy
class LibraryTest {
  private static final String FUNCTION = "PeerFromDlpack"; // of the copied library
  private static final String MISSING = "fletching_has_no_such_symbol";

  private static String copy() throws IOException {
    Path copy = Files.createTempFile("fletching", ".so");
    copy.toFile().deleteOnExit();
    Path library = NativeLibraries.folder().resolve("libfletching_dlpack_peer.so");
    return Files.write(copy, Files.readAllBytes(library)).toString();
  }

  private static Library library(String... names) {
    List<String> all = List.of(names);
    return new Library("a test", all, all, all);
  }

  private static boolean isLoaded(String path) throws IOException {
    return Files.readString(Path.of("/proc/self/maps")).contains(path);
  }

  private static void assertFails(int code, String text, Runnable operation) {
    FletchingException error = assertThrows(FletchingException.class, operation::run);
    assertEquals(text, error.getMessage());
    assertEquals(code, error.errno());
  }

  /** Expects that the functions are those of this file. */
  private static void assertFound(String path, Symbol missing) {
    String text = "a test: " + path + " has no " + MISSING + "; hint: install a newer version";
    assertFalse(missing.exists());
    assertFails(FletchingException.ENOSYS, text, missing::require);
    assertFails(FletchingException.ENOSYS, text, missing::call);
  }

  @Test
  void firstLibraryIsLoaded() throws IOException {
    String first = copy();
    String second = copy();
    Library library = library("/no/such/library.so", first, second);
    Symbol function = library.symbol(FUNCTION, "la");
    Symbol missing = library.symbol(MISSING, "l");
    library.load();
    assertTrue(function.exists());
    assertFound(first, missing);
    assertTrue(isLoaded(first));
    assertFalse(isLoaded(second));
    long name = Native.newText(FUNCTION);
    assertEquals(0, C.call("aaa", C.symbol(0, "dlsym"), 0, name), "its functions are global");
    C.free(name);
  }

  /** Handles are valid in one library version only. */
  @Test
  void loadedLibraryIsPreferred() throws IOException {
    String first = copy();
    String loaded = NativeLibraries.folder().resolve("libfletching_oracle.so").toString();
    assertNotEquals(0, C.load(loaded));
    Library library = library(first, loaded);
    Symbol missing = library.symbol(MISSING, "l");
    library.load();
    assertFound(loaded, missing);
    assertFalse(isLoaded(first));
  }

  @Test
  void windowsLoadsVendorLibraryFromSystemFolderOnly() {
    assertEquals(0x800, Library.flags("Windows 11", true)); // LOAD_LIBRARY_SEARCH_SYSTEM32
    assertEquals(0, Library.flags("Windows 11", false), "libfletching may be in any folder");
    assertEquals(1, Library.flags("Linux", true));
    assertEquals(5, Library.flags("Mac OS X", true));
  }

  @Test
  void loadWithoutMemoryIsRepeated() throws IOException {
    String path = copy();
    Library library = library(path);
    Symbol function = library.symbol(FUNCTION, "la");
    int live = CountingEngine.live();
    CountingEngine.failAt(1);
    assertFails(FletchingException.ENOMEM, "load " + path + ": no memory", library::load);
    CountingEngine.failAt(3); // after a search for a loaded library, and one for a file
    assertFails(FletchingException.ENOMEM, "load " + FUNCTION + ": no memory", library::load);
    library.load();
    assertTrue(function.exists());
    CountingEngine.failAt(1);
    library.load(); // looks nothing up
    assertEquals(1, CountingEngine.failAt(0));
    assertEquals(live, CountingEngine.live());
  }
}
