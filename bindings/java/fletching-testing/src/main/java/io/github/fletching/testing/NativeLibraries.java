// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import com.sun.jna.Library;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** The native libraries that the repository builds. */
public final class NativeLibraries {
  private static final int RTLD_NOW = 2;

  private NativeLibraries() {}

  /** Loads {@code libfletching_<name>} through JNA. */
  public static <T extends Library> T load(String name, Class<T> type) {
    Path path = find(System.mapLibraryName("fletching_" + name));
    try {
      return Native.load(path.toString(), type, Map.of(Library.OPTION_STRING_ENCODING, "UTF-8"));
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException(
          path + " cannot be loaded; run `make` in the repository: " + e.getMessage(), e);
    }
  }

  /** Loads a file from that folder, so that the tested code finds the library by name. */
  public static NativeLibrary open(String file) {
    return NativeLibrary.getInstance(
        find(file).toString(), Map.of(Library.OPTION_OPEN_FLAGS, RTLD_NOW));
  }

  private static Path find(String file) {
    Path path = folder().resolve(file);
    if (!Files.exists(path)) {
      throw new IllegalStateException(path + " is missing; run `make` in the repository");
    }
    return path;
  }

  /** Returns FLETCHING_LIB_DIR, or build/lib in the repository that contains the current folder. */
  public static Path folder() {
    String named = System.getenv("FLETCHING_LIB_DIR");
    if (named != null && !named.isEmpty()) {
      return Path.of(named).toAbsolutePath();
    }
    return repository().resolve("build/lib");
  }

  /** Returns the root of the repository that contains the current folder. */
  public static Path repository() {
    Path here = Path.of("").toAbsolutePath();
    for (Path folder = here; folder != null; folder = folder.getParent()) {
      if (Files.exists(folder.resolve("spec/project.yaml"))) {
        return folder;
      }
    }
    throw new IllegalStateException(
        here + " is not in the repository; name the folder of its libraries in FLETCHING_LIB_DIR");
  }
}
