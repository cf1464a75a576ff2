// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Library;
import com.sun.jna.Native;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** The native libraries that the repository builds. */
public final class NativeLibraries {
  private NativeLibraries() {}

  /** Loads {@code libfletching_<name>} through JNA. */
  public static <T extends Library> T load(String name, Class<T> type) {
    Path path = folder().resolve(System.mapLibraryName("fletching_" + name));
    if (!Files.exists(path)) {
      throw new IllegalStateException(path + " is missing; run `make` in the repository");
    }
    try {
      return Native.load(path.toString(), type, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8"));
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException(
          path + " cannot be loaded; run `make` in the repository: " + e.getMessage(), e);
    }
  }

  /** FLETCHING_LIB_DIR, or build/lib of the repository that holds the current folder. */
  private static Path folder() {
    String named = System.getenv("FLETCHING_LIB_DIR");
    if (named != null && !named.isEmpty()) {
      return Path.of(named).toAbsolutePath();
    }
    Path here = Path.of("").toAbsolutePath();
    for (Path folder = here; folder != null; folder = folder.getParent()) {
      if (Files.exists(folder.resolve("spec/project.yaml"))) {
        return folder.resolve("build/lib");
      }
    }
    throw new IllegalStateException(
        here + " is not in the repository; name the folder of its libraries in FLETCHING_LIB_DIR");
  }
}
