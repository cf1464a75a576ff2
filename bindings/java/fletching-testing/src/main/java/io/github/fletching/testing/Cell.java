// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing;

import static java.nio.file.StandardOpenOption.APPEND;
import static java.nio.file.StandardOpenOption.CREATE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;

/** One cell of the matrix that tests/roundtrip/README.md defines. */
final class Cell {
  private final Map<String, Object> values = new LinkedHashMap<>();

  /** Creates a cell for a struct. */
  Cell(String language, String struct, String direction) {
    values.put("language", language);
    values.put("backend", "none");
    values.put("struct", struct);
    values.put("direction", direction);
    values.put("status", "real");
    values.put("releases", 0);
  }

  /** Appends the cell to the file that FLETCHING_CELLS names, if it is set. */
  void write(long asserted, String problem) {
    values.put("reason", problem == null ? "" : problem);
    values.put("asserted", asserted);
    values.put("ok", problem == null);
    String file = System.getenv("FLETCHING_CELLS");
    if (file == null || file.isEmpty()) {
      return;
    }
    try {
      Files.writeString(Path.of(file), json() + "\n", CREATE, APPEND);
    } catch (IOException e) {
      throw new UncheckedIOException("FLETCHING_CELLS names " + file, e);
    }
  }

  private String json() {
    StringBuilder json = new StringBuilder("{");
    values.forEach(
        (key, value) -> {
          json.append(json.length() > 1 ? ", " : "").append(quoted(key)).append(": ");
          json.append(value instanceof String ? quoted((String) value) : value.toString());
        });
    return json.append("}").toString();
  }

  private static String quoted(String text) {
    StringBuilder quoted = new StringBuilder("\"");
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        quoted.append('\\').append(c);
      } else if (c < ' ') {
        quoted.append(String.format("\\u%04x", (int) c));
      } else {
        quoted.append(c);
      }
    }
    return quoted.append('"').toString();
  }
}
