// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.FletchingException;
import io.github.fletching.Metadata;
import io.github.fletching.Schema;
import io.github.fletching.SchemaView;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.arrow.vector.dictionary.Dictionary;
import org.apache.arrow.vector.dictionary.DictionaryProvider;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.DictionaryEncoding;
import org.apache.arrow.vector.types.pojo.Field;

/** Checks for properties of a field that arrow-java drops silently, in either direction. */
final class Fields {
  private static final int MOST_LEVELS = 64; // the limit of arrow-java

  private final String operation;
  private final DictionaryProvider dictionaries; // may be null

  private Fields(String operation, DictionaryProvider dictionaries) {
    this.operation = operation;
    this.dictionaries = dictionaries;
  }

  // --- Paths

  /** Returns the field names on the path to a child, with the index for a child without a name. */
  static String path(String parent, int index, String name) {
    String own = name == null || name.isEmpty() ? "[" + index + "]" : name;
    return parent.isEmpty() ? own : parent + "." + own;
  }

  static String dictionaryPath(String parent) {
    return path(parent, 0, "dictionary");
  }

  static String title(String path) {
    return path.isEmpty() ? "top level" : "field \"" + path + "\"";
  }

  private FletchingException invalid(String path, String problem) {
    return Calls.invalid(operation, title(path) + ": " + problem);
  }

  // --- Import

  /** Returns a copy of a schema after checking that arrow-java can import it unchanged. */
  static Schema importable(String operation, Schema schema, DictionaryProvider dictionaries) {
    Calls.live(operation, schema);
    return Calls.named(
        operation,
        () -> {
          schema.check();
          new Fields(operation, dictionaries).check(schema.view(), schema.name());
          return schema.view().toBuilder().build();
        });
  }

  private void check(SchemaView schema, String path) {
    checkMetadata(schema, path);
    String format = schema.format();
    if (format.startsWith("d:") && (format.endsWith(",32") || format.endsWith(",64"))) {
      throw invalid(
          path,
          "format: not supported by arrow-java: expected a decimal of 128 or 256 bits, got "
              + format);
    }
    Unions.checkImport(operation, schema, path);
    for (int i = 0; i < schema.childCount(); i++) {
      check(schema.child(i), path(path, i, schema.child(i).name()));
    }
    if (!schema.dictionary().isReleased()) {
      if (dictionaries == null) {
        throw invalid(path, "dictionary: expected a provider for it, got null");
      }
      check(schema.dictionary(), dictionaryPath(path));
    }
  }

  private void checkMetadata(SchemaView schema, String path) {
    Metadata metadata = Calls.named(operation + ": " + title(path), schema::metadata);
    Set<String> keys = new HashSet<>();
    for (int i = 0; i < metadata.size(); i++) {
      String key = decoded(metadata.key(i));
      if (key == null) {
        throw invalid(path, "metadata: key " + i + ": expected UTF-8");
      }
      if (decoded(metadata.value(i)) == null) {
        throw invalid(path, "metadata: value of \"" + key + "\": expected UTF-8");
      }
      if (!keys.add(key)) {
        throw invalid(
            path, "metadata: key \"" + key + "\" twice: arrow-java has one value for each");
      }
    }
  }

  private static String decoded(byte[] bytes) {
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      return null;
    }
  }

  // --- Export

  /** Rejects fields that arrow-java exports only in part. */
  static void checkExport(String operation, List<Field> fields, DictionaryProvider dictionaries) {
    new Fields(operation, dictionaries).check(fields, "", 0);
  }

  private void check(List<Field> fields, String parent, int level) {
    for (int i = 0; i < fields.size(); i++) {
      check(fields.get(i), path(parent, i, fields.get(i).getName()), level);
    }
  }

  private void check(Field field, String path, int level) {
    if (level > MOST_LEVELS) {
      throw invalid(path, "nested too deep: expected at most " + MOST_LEVELS + " levels");
    }
    checkText(path, "name", field.getName());
    if (field.getType() instanceof ArrowType.Timestamp) {
      checkText(path, "time zone", ((ArrowType.Timestamp) field.getType()).getTimezone());
    }
    checkMetadata(operation, title(path), field.getMetadata());
    check(field.getChildren(), path, level + 1);
    DictionaryEncoding encoding = field.getDictionary();
    if (encoding != null) {
      Dictionary found = dictionaries == null ? null : dictionaries.lookup(encoding.getId());
      if (found == null) {
        throw invalid(path, "dictionary " + encoding.getId() + ": not in the provider");
      }
      check(found.getVector().getField(), dictionaryPath(path), level + 1);
    }
  }

  private void checkText(String path, String what, String text) {
    if (text != null && text.indexOf('\0') >= 0) {
      throw invalid(path, what + ": NUL character: expected text without it");
    }
    checkUnicode(operation, title(path) + ": " + what, text);
  }

  /** Metadata strings have lengths, so they may contain NUL. */
  static void checkMetadata(String operation, String where, Map<String, String> metadata) {
    metadata.forEach(
        (key, value) -> {
          checkUnicode(operation, where + ": metadata: key \"" + key + "\"", key);
          checkUnicode(operation, where + ": metadata: value of \"" + key + "\"", value);
        });
  }

  private static void checkUnicode(String operation, String what, String text) {
    if (text != null && !StandardCharsets.UTF_8.newEncoder().canEncode(text)) {
      throw Calls.invalid(operation, what + ": lone surrogate: expected Unicode text");
    }
  }
}
