// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

/** A read-only view of a schema that an owner keeps alive; see {@link View}. */
public final class SchemaView extends View {
  SchemaView(Owner owner, View parent, long address) {
    super(owner, parent, address);
  }

  /**
   * The format string.
   *
   * @return the format string
   */
  public String format() {
    return read("", schema -> Native.text(C.getAddress(schema + Fields.SCHEMA_FORMAT)));
  }

  /**
   * The name; empty for NULL, which is equivalent. Invalid UTF-8 from a faulty producer reads as
   * U+FFFD.
   *
   * @return the name
   */
  public String name() {
    return read("", schema -> Native.text(C.getAddress(schema + Fields.SCHEMA_NAME)));
  }

  /**
   * The ARROW_FLAG_ bits.
   *
   * @return the flags
   */
  public long flags() {
    return readLong(Fields.SCHEMA_FLAGS, 0);
  }

  /**
   * A copy of the metadata.
   *
   * @return the metadata
   * @throws FletchingException EINVAL for a negative count or length, and for more than 2^31-1
   *     bytes in total; ENOMEM
   */
  public Metadata metadata() {
    return read(
        Metadata.EMPTY, schema -> Metadata.at(C.getAddress(schema + Fields.SCHEMA_METADATA)));
  }

  /**
   * See {@link ArrayView#child}.
   *
   * @param index the index, from 0
   * @return the child
   */
  public SchemaView child(int index) {
    return new SchemaView(owner, this, childAddress(index));
  }

  /**
   * The type of the dictionary's values. The view reads as a released struct if the schema has no
   * dictionary.
   *
   * @return the dictionary's type
   */
  public SchemaView dictionary() {
    return new SchemaView(owner, this, dictionaryAddress());
  }

  /**
   * Copies the schema to a builder.
   *
   * @return the builder
   * @throws FletchingException EINVAL if the schema is released, its format or name is not UTF-8,
   *     its metadata cannot be read, or it is malformed as for {@link Shared#column}
   */
  public SchemaBuilder toBuilder() {
    if (isReleased()) {
      throw cannotCopy("schema is released: expected a live schema");
    }
    read(0, schema -> Tree.count("toBuilder", Kind.SCHEMA, schema));
    return copy(name());
  }

  private SchemaBuilder copy(String path) {
    SchemaBuilder copy =
        new SchemaBuilder(strict(path, "format", Fields.SCHEMA_FORMAT))
            .name(strict(path, "name", Fields.SCHEMA_NAME))
            .flags(flags());
    copy.metadata(metadata());
    int count = childCount();
    for (int i = 0; i < count; i++) {
      SchemaView child = child(i);
      copy.child(child.copy(path(path, i, child.name())));
    }
    SchemaView values = dictionary();
    return values.exists() ? copy.dictionary(values.copy(path(path, -1, ""))) : copy;
  }

  /** The path of a field below its parent. An unnamed field is shown as its index in brackets. */
  static String path(String parent, int index, String name) {
    String own = index < 0 ? "dictionary" : name.isEmpty() ? "[" + index + "]" : name;
    return parent.isEmpty() ? own : parent + "." + own;
  }

  static String title(String path) {
    return path.isEmpty() ? "top level" : "field \"" + path + "\"";
  }

  private String strict(String path, String what, long field) {
    byte[] bytes =
        read(new byte[0], schema -> Native.bytes(C.getAddress(schema + field), Integer.MAX_VALUE));
    return Metadata.strict(bytes, "toBuilder: " + title(path) + ": " + what);
  }

  private static FletchingException cannotCopy(String why) {
    return FletchingException.invalid("toBuilder: " + why);
  }
}
