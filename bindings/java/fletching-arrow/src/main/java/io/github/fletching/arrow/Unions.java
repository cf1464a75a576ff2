// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import io.github.fletching.ArrayView;
import io.github.fletching.SchemaView;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntUnaryOperator;
import java.util.regex.Pattern;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.complex.DenseUnionVector;
import org.apache.arrow.vector.complex.UnionVector;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;

/** Checks for unions that arrow-java imports or exports incorrectly. */
final class Unions {
  /** Formats of the child types that arrow-java's sparse union supports, one child per type. */
  private static final Pattern READABLE =
      Pattern.compile("[nbcCsSiIlLefguUzZ]|v[uz]|td[Dm]|t[ts][smun]:?|ti[MDn]");

  private Unions() {}

  /** Rejects a sparse union with children that arrow-java cannot distinguish or cannot read. */
  static void checkImport(String operation, SchemaView schema, String path) {
    Set<String> formats = new HashSet<>();
    for (int i = 0; schema.format().startsWith("+us:") && i < schema.childCount(); i++) {
      String format = schema.child(i).format();
      boolean readable =
          READABLE.matcher(format).matches() && schema.child(i).dictionary().isReleased();
      if (!readable || !formats.add(format)) {
        throw Calls.invalid(
            operation,
            Fields.title(Fields.path(path, i, schema.child(i).name()))
                + ": child of a sparse union: not supported by arrow-java: expected "
                + (readable ? "one child of each type" : "a type without children and parameters")
                + ", got "
                + format
                + "; hint: send a dense union");
      }
    }
  }

  /**
   * Rejects a dense union in a batch if a row's offset is not below the number of rows of its
   * child: arrow-java truncates the child to that number.
   */
  static void checkRows(String operation, ArrayView array, SchemaView schema, String path) {
    int rows = (int) array.length();
    if (rows > 0 && schema.format().startsWith("+ud:")) {
      ByteBuffer ids = Importable.bytes(array, 0, 0, rows);
      IntBuffer offsets = Importable.bytes(array, 1, 0, Math.multiplyExact(4, rows)).asIntBuffer();
      int[] counts = new int[256];
      for (int row = 0; row < rows; row++) {
        counts[ids.get(row) & 0xFF]++;
      }
      for (int row = 0; row < rows; row++) {
        int most = counts[ids.get(row) & 0xFF];
        if (offsets.get(row) < 0 || offsets.get(row) >= most) {
          throw Calls.invalid(
              operation,
              Fields.title(path)
                  + ": offset of row "
                  + row
                  + " of a dense union: not supported by arrow-java: expected one below the "
                  + most
                  + " rows of the child, got "
                  + offsets.get(row)
                  + "; hint: import it as a vector");
        }
      }
    }
    for (int i = 0; i < array.childCount(); i++) {
      SchemaView child = schema.child(i);
      checkRows(operation, array.child(i), child, Fields.path(path, i, child.name()));
    }
  }

  /** Rejects vectors whose children or type IDs differ from their fields. */
  static void checkExport(
      String operation, List<FieldVector> vectors, List<Field> fields, String parent) {
    for (int i = 0; i < vectors.size() && i < fields.size(); i++) {
      FieldVector vector = vectors.get(i);
      Field field = fields.get(i);
      String path = Fields.path(parent, i, field.getName());
      if (field.getType() instanceof ArrowType.Union) {
        checkExport(operation, vector, field, path);
      }
      checkExport(operation, vector.getChildrenFromFields(), field.getChildren(), path);
    }
  }

  private static void checkExport(String operation, FieldVector vector, Field field, String path) {
    List<FieldVector> children = vector.getChildrenFromFields();
    for (int i = 0; i < children.size(); i++) {
      ArrowType expected = field.getChildren().get(i).getType();
      if (!children.get(i).getField().getType().equals(expected)) {
        throw Calls.invalid(
            operation,
            Fields.title(path)
                + ": child "
                + i
                + " of a union: order changed by arrow-java: expected "
                + expected
                + ", got "
                + children.get(i).getField().getType()
                + "; hint: export a batch with the schema that was imported");
      }
    }
    int[] ids = ((ArrowType.Union) field.getType()).getTypeIds();
    if (ids != null) {
      checkIds(operation, vector, ids, path);
    }
  }

  private static void checkIds(String operation, FieldVector vector, int[] ids, String path) {
    boolean[] known = new boolean[256];
    for (int id : ids) {
      known[id & 0xFF] = true;
    }
    IntUnaryOperator idOf =
        vector instanceof UnionVector
            ? ((UnionVector) vector)::getTypeValue
            : ((DenseUnionVector) vector)::getTypeId;
    for (int row = 0; row < vector.getValueCount(); row++) {
      int id = idOf.applyAsInt(row);
      if (!known[id & 0xFF]) {
        throw Calls.invalid(
            operation,
            Fields.title(path)
                + ": type id of row "
                + row
                + ": expected one of the field's, got "
                + id
                + "; hint: export a batch with the schema that was imported");
      }
    }
  }
}
