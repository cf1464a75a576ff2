// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import static io.github.fletching.Native.C;

import java.nio.charset.StandardCharsets;

/**
 * The extension type of a field: two keys of its metadata, with JSON parameters (C data interface,
 * "Extension types"; "Canonical Extension Types"). Strings have one character per byte.
 */
final class Extension {
  static final String NAME = "ARROW:extension:name";
  static final String PARAMETERS = "ARROW:extension:metadata";

  // Addresses and lengths of the values, which are read only when needed. A wrong length is not
  // detected, because the metadata has no size.
  private long name;
  private int nameSize; // 0 for no extension type
  private long parameters;
  private int parametersSize;

  private Extension() {}

  /**
   * Reads the extension type of a schema.
   *
   * @throws FletchingException EINVAL for a negative length
   */
  static Extension of(long schema) {
    Extension found = new Extension();
    long at = C.getAddress(schema + Fields.SCHEMA_METADATA);
    if (at == 0) {
      return found;
    }
    int pairs = length(at, "number of pairs");
    at += 4;
    for (int i = 0; i < pairs; i++) {
      int keySize = length(at, "length of a key");
      long key = at + 4;
      int size = length(key + keySize, "length of a value");
      long value = key + keySize + 4;
      // The first of several equal keys counts.
      if (found.name == 0 && isText(key, keySize, NAME)) {
        found.name = value;
        found.nameSize = size;
      } else if (found.parameters == 0 && isText(key, keySize, PARAMETERS)) {
        found.parameters = value;
        found.parametersSize = size;
      }
      at = value + size;
    }
    return found;
  }

  private static int length(long at, String what) {
    int length = C.getInt(at);
    if (length < 0) {
      throw FletchingException.invalid(
          "ArrowSchema.metadata: " + what + " negative: expected 0 or more, got " + length);
    }
    return length;
  }

  private static boolean isText(long at, int size, String text) {
    return size == text.length() && read(at, size).equals(text);
  }

  private static String read(long at, int size) {
    try {
      byte[] bytes = new byte[size];
      C.read(at, bytes);
      return new String(bytes, StandardCharsets.ISO_8859_1);
    } catch (OutOfMemoryError e) { // usually because of a wrong length
      throw new FletchingException(FletchingException.ENOMEM, "no memory");
    }
  }

  /** Whether there is an extension type. */
  boolean exists() {
    return nameSize > 0;
  }

  boolean is(String wanted) {
    return isText(name, nameSize, wanted);
  }

  /** The quoted name; for arrow.opaque also the parameters. */
  String inWords() {
    String words = TensorFormat.quote(read(name, Math.min(nameSize, 65)));
    if (!is(TensorTypes.OPAQUE)) {
      return words;
    }
    return words + " " + TensorFormat.quote(read(parameters, Math.min(parametersSize, 65)));
  }

  private String parameters() {
    return read(parameters, parametersSize);
  }

  /** The DLPack type named by arrow.opaque; null for any other extension type. */
  TensorType opaque() {
    String[] names = {"", ""}; // type name and vendor name
    if (!is(TensorTypes.OPAQUE)) {
      return null;
    }
    boolean isRead =
        Json.readObject(
            parameters(),
            (json, key) -> {
              int index = key.equals("type_name") ? 0 : key.equals("vendor_name") ? 1 : -1;
              if (index < 0) {
                return json.skip();
              }
              names[index] = json.string();
              return names[index] != null;
            });
    return isRead && names[1].equals(TensorTypes.VENDOR) ? TensorType.named(names[0]) : null;
  }

  /** The parameters of arrow.fixed_shape_tensor. */
  static final class TensorShape {
    long[] shape = {}; // in memory order, the last varying fastest
    long[] permutation = {}; // for each tensor dimension its index in `shape`; no duplicates
  }

  /**
   * Parses the parameters of arrow.fixed_shape_tensor.
   *
   * @throws FletchingException EINVAL for malformed parameters
   */
  TensorShape tensorShape() {
    TensorShape out = new TensorShape();
    String text = parameters();
    String why = problem(text, out);
    if (why != null) {
      throw FletchingException.invalid(
          String.format(
              "%s of %s: %s, got %s",
              PARAMETERS, TensorTypes.FIXED_SHAPE_TENSOR, why, TensorFormat.quote(text)));
    }
    return out;
  }

  private static String problem(String text, TensorShape out) {
    if (!Json.readObject(text, (json, key) -> readMember(json, key, out))) {
      return "malformed: expected the form {\"shape\":[2,3],\"permutation\":[1,0]}";
    }
    if (out.shape.length > Tensor.MOST_DIMENSIONS) {
      return null; // the caller rejects it
    }
    if (out.shape.length == 0) {
      return "no shape: expected one size or more";
    }
    if (out.permutation.length == 0) {
      out.permutation = new long[out.shape.length];
      for (int i = 0; i < out.shape.length; i++) {
        out.permutation[i] = i;
      }
    }
    return isPermutation(out)
        ? null
        : "wrong permutation: expected each dimension of the shape once";
  }

  private static boolean readMember(Json json, String key, TensorShape out) {
    if (key.equals("shape")) {
      out.shape = json.sizes(Tensor.MOST_DIMENSIONS);
      return out.shape != null;
    }
    if (key.equals("permutation") && json.peek() == '[') {
      out.permutation = json.sizes(Tensor.MOST_DIMENSIONS);
      return out.permutation != null;
    }
    return json.skip();
  }

  private static boolean isPermutation(TensorShape out) {
    boolean[] seen = new boolean[out.shape.length];
    if (out.permutation.length != out.shape.length) {
      return false;
    }
    for (long axis : out.permutation) {
      if (axis >= seen.length || seen[(int) axis]) {
        return false;
      }
      seen[(int) axis] = true;
    }
    return true;
  }
}
