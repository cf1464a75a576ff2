// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Describes a schema and everything below it. The builder owns no memory: {@code build} may be
 * called repeatedly. Format strings are not parsed. Not thread-safe.
 *
 * <p>See "The ArrowSchema structure" in the Arrow C data interface.
 */
public final class SchemaBuilder {
  private String format;
  private String name = "";
  private long flags;
  private Metadata metadata = Metadata.EMPTY;
  private final List<SchemaBuilder> children = new ArrayList<>();
  private SchemaBuilder dictionary;

  /**
   * Creates a builder with a format string; for a dictionary-encoded type, the format of the
   * indices.
   *
   * @param format the format string
   */
  public SchemaBuilder(String format) {
    this.format = format;
  }

  /**
   * Replaces the format string.
   *
   * @param text the format string
   * @return this builder
   */
  public SchemaBuilder format(String text) {
    format = text;
    return this;
  }

  /**
   * Sets the field name, empty by default. It is never exported as NULL, which some readers reject.
   *
   * @param text the name
   * @return this builder
   */
  public SchemaBuilder name(String text) {
    name = text;
    return this;
  }

  /**
   * Sets the ARROW_FLAG_ bits. A nullable field has ARROW_FLAG_NULLABLE.
   *
   * @param bits the flags
   * @return this builder
   */
  public SchemaBuilder flags(long bits) {
    flags = bits;
    return this;
  }

  /**
   * Sets the metadata. Metadata without pairs is exported as NULL.
   *
   * @param pairs the metadata
   * @return this builder
   */
  public SchemaBuilder metadata(Metadata pairs) {
    metadata = pairs;
    return this;
  }

  /**
   * Adds the type of a child.
   *
   * @param child the builder of the child's type
   * @return this builder
   */
  public SchemaBuilder child(SchemaBuilder child) {
    children.add(child);
    return this;
  }

  /**
   * Sets the type of the dictionary's values.
   *
   * @param values the type of the values
   * @return this builder
   */
  public SchemaBuilder dictionary(SchemaBuilder values) {
    dictionary = values;
    return this;
  }

  /**
   * Builds the schema, with copies of the strings, in one C allocation.
   *
   * @return the schema
   * @throws FletchingException EINVAL for an empty format, a format or name that contains a NUL or
   *     a lone surrogate, metadata that cannot be encoded, and more than 256 levels or 2^22
   *     structs; the message names the child. ENOMEM
   */
  public Schema build() {
    Texts texts = new Texts();
    collect(texts, 0, "SchemaBuilder: ");
    return new Schema(
        Owner.filled(
            Kind.SCHEMA,
            address -> {
              Block block = new Block(Kind.SCHEMA, texts.structs, 0, texts.size, null);
              texts.next = 0;
              write(address, block, texts);
            }));
  }

  /** The strings in the order of writing; null for NULL. */
  private static final class Texts {
    final List<byte[]> all = new ArrayList<>();
    long size;
    int structs;
    int next;

    void add(byte[] text) {
      all.add(text);
      size += text == null ? 0 : Block.padded(text.length);
    }
  }

  private void collect(Texts texts, int depth, String where) {
    texts.structs++;
    String problem = problem(texts.structs, depth);
    if (problem != null) {
      throw FletchingException.invalid(where + problem);
    }
    texts.add(terminated(format));
    texts.add(terminated(name));
    texts.add(metadata.size() == 0 ? null : metadata.encode());
    for (int i = 0; i < children.size(); i++) {
      children.get(i).collect(texts, depth + 1, where + "child " + i + ": ");
    }
    if (dictionary != null) {
      dictionary.collect(texts, depth + 1, where + "dictionary: ");
    }
  }

  private String problem(int structs, int depth) {
    String excess = Tree.excess(depth, structs);
    if (excess != null) {
      return excess;
    }
    if (format.isEmpty()) {
      return "format: empty: expected a format string";
    }
    String problem = problem("format", format);
    return problem != null ? problem : problem("name", name);
  }

  private static String problem(String what, String text) {
    if (text.indexOf('\0') >= 0) {
      return what + ": NUL character: expected text without it";
    }
    return Metadata.isUnicode(text) ? null : what + ": lone surrogate: expected Unicode text";
  }

  private static byte[] terminated(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return Arrays.copyOf(bytes, bytes.length + 1);
  }

  /** Fills a zeroed struct and the structs below it. */
  private void write(long schema, Block block, Texts texts) {
    for (long field :
        new long[] {Fields.SCHEMA_FORMAT, Fields.SCHEMA_NAME, Fields.SCHEMA_METADATA}) {
      byte[] text = texts.all.get(texts.next++);
      C.putAddress(schema + field, text == null ? 0 : block.addBytes(text));
    }
    C.putLong(schema + Fields.SCHEMA_FLAGS, flags);
    block.adopt(Kind.SCHEMA, schema);
    long child = block.addChildren(schema, children.size());
    for (SchemaBuilder next : children) {
      next.write(child, block, texts);
      child += Kind.SCHEMA.size;
    }
    if (dictionary != null) {
      dictionary.write(block.addDictionary(schema), block, texts);
    }
  }
}
