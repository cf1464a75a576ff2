// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.GenerateSampleData;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.complex.FixedSizeListVector;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.types.DateUnit;
import org.apache.arrow.vector.types.FloatingPointPrecision;
import org.apache.arrow.vector.types.IntervalUnit;
import org.apache.arrow.vector.types.TimeUnit;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;

/** Fields of many types, and vectors with values. */
final class Types {
  private static final int ROWS = 5;
  private static final Field ITEM = field("$data$", new ArrowType.Int(32, true));

  static final List<Field> ALL =
      List.of(
          field("null", ArrowType.Null.INSTANCE),
          field("bool", ArrowType.Bool.INSTANCE),
          field("int8", new ArrowType.Int(8, true)),
          field("uint64", new ArrowType.Int(64, false)),
          field("double", new ArrowType.FloatingPoint(FloatingPointPrecision.DOUBLE)),
          field("decimal128", new ArrowType.Decimal(20, 10, 128)),
          field("decimal256", new ArrowType.Decimal(40, 10, 256)),
          field("date", new ArrowType.Date(DateUnit.DAY)),
          field("time", new ArrowType.Time(TimeUnit.NANOSECOND, 64)),
          field("timestamp", new ArrowType.Timestamp(TimeUnit.MICROSECOND, "UTC")),
          field("interval", new ArrowType.Interval(IntervalUnit.YEAR_MONTH)),
          field("duration", new ArrowType.Duration(TimeUnit.SECOND)),
          field("fixed size binary", new ArrowType.FixedSizeBinary(3)),
          field("string", ArrowType.Utf8.INSTANCE),
          field("binary", ArrowType.Binary.INSTANCE),
          field("large string", ArrowType.LargeUtf8.INSTANCE),
          field("list", ArrowType.List.INSTANCE, ITEM),
          field("fixed size list", new ArrowType.FixedSizeList(2), ITEM),
          field("struct", ArrowType.Struct.INSTANCE, ITEM, field("text", ArrowType.Utf8.INSTANCE)));

  private Types() {}

  private static Field field(String name, ArrowType type, Field... children) {
    return new Field(name, FieldType.nullable(type), List.of(children));
  }

  /** Writes some values and nulls. */
  static void fill(FieldVector vector) {
    vector.allocateNew();
    if (vector instanceof ListVector) {
      ListVector list = (ListVector) vector;
      GenerateSampleData.generateTestData(list.getDataVector(), 2 * ROWS);
      for (int i = 0; i < ROWS; i += 2) {
        list.startNewValue(i);
        list.endValue(i, 2);
      }
      list.setValueCount(ROWS);
    } else if (vector instanceof FixedSizeListVector) {
      GenerateSampleData.generateTestData(((FixedSizeListVector) vector).getDataVector(), 2 * ROWS);
      ((FixedSizeListVector) vector).setNotNull(1);
      vector.setValueCount(ROWS);
    } else if (vector instanceof StructVector) {
      vector.getChildrenFromFields().forEach(Types::fill);
      ((StructVector) vector).setIndexDefined(1);
      vector.setValueCount(ROWS);
    } else {
      GenerateSampleData.generateTestData(vector, ROWS);
    }
  }

  static IntVector ints(BufferAllocator allocator, int... values) {
    IntVector vector = new IntVector("x", allocator);
    vector.allocateNew(values.length);
    for (int i = 0; i < values.length; i++) {
      vector.set(i, values[i]);
    }
    vector.setValueCount(values.length);
    return vector;
  }
}
