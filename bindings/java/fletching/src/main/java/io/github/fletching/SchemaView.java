// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Reads a schema that an owner keeps alive; see {@link View}. */
public final class SchemaView extends View {
  SchemaView(Owner owner, View parent, long address) {
    super(owner, parent, address);
  }

  /** The format string. */
  public String format() {
    return read("", schema -> Native.text(C.getAddress(schema + Fields.SCHEMA_FORMAT)));
  }

  /**
   * The name; empty for NULL, which means the same. What is not UTF-8 reads as U+FFFD, where a
   * producer has not kept to it.
   */
  public String name() {
    return read("", schema -> Native.text(C.getAddress(schema + Fields.SCHEMA_NAME)));
  }

  /** The ARROW_FLAG_ bits. */
  public long flags() {
    return readLong(Fields.SCHEMA_FLAGS, 0);
  }

  /**
   * A copy of the metadata.
   *
   * @throws FletchingException EINVAL for a negative count or length, and for more than 2^31-1
   *     bytes in all; ENOMEM
   */
  public Metadata metadata() {
    return read(
        Metadata.EMPTY, schema -> Metadata.at(C.getAddress(schema + Fields.SCHEMA_METADATA)));
  }

  /** See {@link ArrayView#child}. */
  public SchemaView child(int index) {
    return new SchemaView(owner, this, childAddress(index));
  }

  /** The type of the dictionary's values; a view of a released struct where there is none. */
  public SchemaView dictionary() {
    return new SchemaView(owner, this, dictionaryAddress());
  }

  /**
   * A copy of the schema, to be changed or built.
   *
   * @throws FletchingException EINVAL for a schema that is released, whose format or name is not
   *     UTF-8, whose metadata cannot be read, or that is malformed as for {@link Shared#column}
   */
  public SchemaBuilder toBuilder() {
    if (isReleased()) {
      throw cannotCopy("schema is released: expected a live schema");
    }
    read(0, schema -> Tree.count("schema builder: a copy", Kind.SCHEMA, schema));
    return copy();
  }

  private SchemaBuilder copy() {
    SchemaBuilder copy =
        new SchemaBuilder(strict(Fields.SCHEMA_FORMAT))
            .name(strict(Fields.SCHEMA_NAME))
            .flags(flags());
    copy.metadata(metadata());
    int count = childCount();
    for (int i = 0; i < count; i++) {
      copy.child(child(i).copy());
    }
    SchemaView values = dictionary();
    return values.exists() ? copy.dictionary(values.copy()) : copy;
  }

  private String strict(long field) {
    byte[] bytes =
        read(new byte[0], schema -> Native.bytes(C.getAddress(schema + field), Integer.MAX_VALUE));
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
    } catch (CharacterCodingException e) {
      throw cannotCopy("format or name: expected UTF-8");
    }
  }

  private static FletchingException cannotCopy(String why) {
    return FletchingException.invalid("schema builder: a copy: " + why);
  }
}
