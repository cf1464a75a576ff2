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
  private final int flags;
  final List<Symbol> symbols = new ArrayList<>();
  private String found;
  private volatile boolean loaded;

  /** A vendor's library. The names are file names, in the order of attempts. */
  Library(String title, List<String> linux, List<String> windows, List<String> macos) {
    this(title, ofSystem(linux, windows, macos), true);
  }

  private Library(String title, List<String> names, boolean isVendor) {
    this.title = title;
    this.names = names;
    flags = flags(SYSTEM, isVendor);
  }

  private static List<String> ofSystem(
      List<String> linux, List<String> windows, List<String> macos) {
    return WINDOWS ? windows : MACOS ? macos : linux;
  }

  /**
   * Returns the flags of LoadLibraryEx or dlopen. Windows drivers are in the system folder; any
   * other folder of the search, such as the current one, could contain a planted library.
   */
  static int flags(String system, boolean isVendor) {
    if (system.startsWith("Windows")) {
      return isVendor ? 0x800 : 0; // LOAD_LIBRARY_SEARCH_SYSTEM32
    }
    return system.startsWith("Mac") ? 5 : 1; // RTLD_LAZY, RTLD_LOCAL
  }

  /** libfletching: the path in the environment variable FLETCHING_LIBRARY, or the default names. */
  static Library fletching(String title) {
    String path = System.getenv("FLETCHING_LIBRARY");
    if (path != null && !path.isEmpty()) {
      return new Library(title, List.of(path), false);
    }
    List<String> names =
        ofSystem(
            List.of("libfletching.so.0.1", "libfletching.so"),
            List.of("fletching.dll"),
            List.of("libfletching.0.1.dylib", "libfletching.dylib"));
    return new Library(title, names, false);
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
        long handle = Loader.open(name, isLoaded, flags, reasons);
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
    private static final long OPEN = C.symbol(LIBRARY, WINDOWS ? "LoadLibraryExA" : "dlopen");
    private static final long LOADED = WINDOWS ? C.symbol(LIBRARY, "GetModuleHandleA") : 0;
    private static final long ERROR = WINDOWS ? 0 : C.symbol(LIBRARY, "dlerror");

    // RTLD_LAZY, RTLD_NOLOAD: a loaded library keeps its visibility.
    private static final int FLAGS_LOADED = MACOS ? 0x11 : 5;

    /** Adds the reason if it returns 0. */
    static long open(String name, boolean isLoaded, int flags, List<String> reasons) {
      long text = text(name);
      try {
        if (WINDOWS) {
          reasons.add(name);
          return isLoaded ? C.call("aa", LOADED, text) : C.call("aaai", OPEN, text, 0, flags);
        }
        // The first call of a function makes the JVM look it up, which would overwrite the error.
        // So both functions that read the error are called in advance.
        C.call("a", ERROR);
        C.getByte(text);
        long handle = C.call("aai", OPEN, text, isLoaded ? FLAGS_LOADED : flags);
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
