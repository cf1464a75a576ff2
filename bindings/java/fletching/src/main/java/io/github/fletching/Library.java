// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.ArrayList;
import java.util.List;

/** A shared library that is loaded on demand and never unloaded. */
final class Library {
  private static final String SYSTEM = System.getProperty("os.name");
  private static final boolean WINDOWS = SYSTEM.startsWith("Windows");
  private static final boolean MACOS = SYSTEM.startsWith("Mac");

  final String title;
  private final List<String> names; // in the order of attempts
  final List<Symbol> symbols = new ArrayList<>();
  private String found;
  private volatile boolean loaded;

  /** The names are file names, in the order of attempts. */
  Library(String title, List<String> linux, List<String> windows, List<String> macos) {
    this.title = title;
    names = WINDOWS ? windows : MACOS ? macos : linux;
  }

  /** libfletching: the path in the environment variable FLETCHING_LIBRARY, or the default names. */
  static Library fletching(String title) {
    String path = System.getenv("FLETCHING_LIBRARY");
    if (path != null && !path.isEmpty()) {
      return new Library(title, List.of(path), List.of(path), List.of(path));
    }
    return new Library(
        title,
        List.of("libfletching.so.0.1", "libfletching.so"),
        List.of("fletching.dll"),
        List.of("libfletching.0.1.dylib", "libfletching.dylib"));
  }

  /** Declares a function that the library may lack. Operations that need it then fail. */
  Symbol symbol(String name, String signature) {
    Symbol symbol = new Symbol(this, name, signature);
    symbols.add(symbol);
    return symbol;
  }

  /**
   * Loads the library and looks up the functions. After a failure the next call tries again.
   *
   * @throws FletchingException ENOENT, with every name and the reason, if no library is found
   */
  void load() {
    if (loaded) {
      return;
    }
    synchronized (this) {
      if (loaded) {
        return;
      }
      long handle = open();
      for (Symbol symbol : symbols) {
        symbol.address = Loader.find(handle, symbol.name);
      }
      loaded = true;
    }
  }

  /** Prefers a loaded library, because handles of one version are invalid in another. */
  private long open() {
    List<String> reasons = new ArrayList<>();
    for (boolean isLoaded : new boolean[] {true, false}) {
      reasons.clear();
      for (String name : names) {
        long handle = Loader.open(name, isLoaded, reasons);
        if (handle != 0) {
          found = name;
          return handle;
        }
      }
    }
    throw new FletchingException(
        FletchingException.ENOENT,
        names.isEmpty()
            ? title + ": no library for this system"
            : String.format(
                "%s: cannot load %s; hint: install it, or add its folder to the library search path"
                    + " (%s)",
                title, String.join(", ", names), String.join("; ", reasons)));
  }

  FletchingException lacks(String symbol) {
    return new FletchingException(
        FletchingException.ENOSYS,
        title + ": " + found + " has no " + symbol + "; hint: install a newer version");
  }

  /** The system's loader. Java itself cannot determine which libraries are loaded. */
  private static final class Loader {
    private static final long LIBRARY = WINDOWS ? C.load("kernel32") : 0;
    private static final long SYMBOL = C.symbol(LIBRARY, WINDOWS ? "GetProcAddress" : "dlsym");
    private static final long OPEN = C.symbol(LIBRARY, WINDOWS ? "LoadLibraryA" : "dlopen");
    private static final long LOADED = WINDOWS ? C.symbol(LIBRARY, "GetModuleHandleA") : OPEN;
    private static final long ERROR = WINDOWS ? 0 : C.symbol(LIBRARY, "dlerror");

    // RTLD_LAZY; with RTLD_NOLOAD for a loaded library, which keeps its visibility, else
    // RTLD_LOCAL.
    private static final int FLAGS_LOADED = MACOS ? 0x11 : 5;
    private static final int FLAGS = MACOS ? 5 : 1;

    /** Adds the reason if it returns 0. */
    static long open(String name, boolean isLoaded, List<String> reasons) {
      long text = text(name);
      try {
        if (WINDOWS) {
          reasons.add(name);
          return C.call("aa", isLoaded ? LOADED : OPEN, text);
        }
        // The first call of a function makes the JVM look it up, which would overwrite the error.
        // So both functions that read the error are called in advance.
        C.call("a", ERROR);
        C.getByte(text);
        long handle = C.call("aai", OPEN, text, isLoaded ? FLAGS_LOADED : FLAGS);
        String reason = handle != 0 ? "" : Native.printable(C.call("a", ERROR));
        reasons.add(reason.isEmpty() ? name : reason);
        return handle;
      } finally {
        C.free(text);
      }
    }

    static long find(long handle, String name) {
      long text = text(name);
      try {
        return C.call("aaa", SYMBOL, handle, text);
      } finally {
        C.free(text);
      }
    }

    private static long text(String text) {
      long address = Native.newText(text);
      if (address == 0) {
        throw FletchingException.noMemory("load " + text);
      }
      return address;
    }
  }
}
