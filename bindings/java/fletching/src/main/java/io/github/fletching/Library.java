// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.util.ArrayList;
import java.util.List;

/** A library that is loaded when it is needed, and never unloaded. */
final class Library {
  private static final String SYSTEM = System.getProperty("os.name");
  private static final boolean WINDOWS = SYSTEM.startsWith("Windows");
  private static final boolean MACOS = SYSTEM.startsWith("Mac");

  final String title;
  private final List<String> names; // in the order in which they are tried
  private final List<Symbol> symbols = new ArrayList<>();
  private String found;
  private volatile boolean loaded;

  /** The names are file names, in the order of the attempts. */
  Library(String title, List<String> linux, List<String> windows, List<String> macos) {
    this.title = title;
    names = WINDOWS ? windows : MACOS ? macos : linux;
  }

  /** libfletching: the path in the environment variable FLETCHING_LIBRARY, else by its names. */
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

  /** A function, which the library may lack: then the operations that need it fail. */
  Symbol symbol(String name, String signature) {
    Symbol symbol = new Symbol(this, name, signature);
    symbols.add(symbol);
    return symbol;
  }

  /**
   * Finds the functions. What did not work is tried again by the next call.
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

  /** One that is loaded is preferred: the handles of one version mean nothing to another. */
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

  /** The loader of the system. Java itself cannot find out what is loaded already. */
  private static final class Loader {
    private static final long LIBRARY = WINDOWS ? C.load("kernel32") : 0;
    private static final long SYMBOL = C.symbol(LIBRARY, WINDOWS ? "GetProcAddress" : "dlsym");
    private static final long OPEN = C.symbol(LIBRARY, WINDOWS ? "LoadLibraryA" : "dlopen");
    private static final long LOADED = WINDOWS ? C.symbol(LIBRARY, "GetModuleHandleA") : OPEN;
    private static final long ERROR = WINDOWS ? 0 : C.symbol(LIBRARY, "dlerror");

    // RTLD_LAZY; with RTLD_NOLOAD, else RTLD_LOCAL: one that is loaded keeps its visibility.
    private static final int FLAGS_LOADED = MACOS ? 0x11 : 5;
    private static final int FLAGS = MACOS ? 5 : 1;

    /** Adds the reason when it returns 0. */
    static long open(String name, boolean isLoaded, List<String> reasons) {
      long text = text(name);
      try {
        if (WINDOWS) {
          reasons.add(name);
          return C.call("aa", isLoaded ? LOADED : OPEN, text);
        }
        // The JVM looks up what it calls for the first time, and that would replace the error: so
        // both calls that get the reason are made before.
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
