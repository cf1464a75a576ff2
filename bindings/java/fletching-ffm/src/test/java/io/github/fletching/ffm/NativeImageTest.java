// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.fletching.Owner;
import io.github.fletching.ffm.abi.ArrowArray;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.ValueLayout;
import java.lang.reflect.Field;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The GraalVM reachability metadata lists every signature of the safe and the raw layer. */
class NativeImageTest {
  private static final String FILE =
      "/META-INF/native-image/io.github.fletching/fletching-ffm/reachability-metadata.json";

  /** FfmEngine's internal calls: calloc, free, and every release. */
  private static final Set<String> OWN = Set.of("lll", "vl");

  @Test
  void metadataHasEverySignature() throws Exception {
    Set<String> entries = new TreeSet<>();
    Set<String> signatures = new TreeSet<>(OWN);
    for (Path file : classesOf(Owner.class)) {
      signatures.addAll(constants(file));
    }
    assertTrue(signatures.contains("iaa"), signatures.toString());
    signatures.forEach(signature -> entries.add(entry(FfmEngine.descriptor(signature))));
    for (Path file : classesOf(ArrowArray.class)) {
      entries.addAll(descriptors(file));
    }
    String list = entries.stream().collect(Collectors.joining(",\n      ", "[\n      ", "\n    ]"));
    String expected =
        "{\n  \"foreign\": {\n    \"downcalls\": "
            + list
            + ",\n    \"upcalls\": "
            + list
            + "\n  }\n}\n";
    Path copy = Files.writeString(Files.createTempFile("reachability", ".json"), expected);
    byte[] found = NativeImageTest.class.getResourceAsStream(FILE).readAllBytes();
    assertEquals(expected, new String(found, StandardCharsets.UTF_8), "copy it from " + copy);
    Files.delete(copy);
  }

  private static List<Path> classesOf(Class<?> type) throws Exception {
    URI origin = type.getResource(type.getSimpleName() + ".class").toURI();
    if (origin.getScheme().equals("jar")) {
      FileSystems.newFileSystem(origin, Map.of()); // used after the package phase; stays open
    }
    try (Stream<Path> files = Files.list(Path.of(origin).getParent())) {
      return files.filter(file -> file.toString().endsWith(".class")).collect(Collectors.toList());
    }
  }

  /** Returns the strings in a class file that look like signatures; a false match is harmless. */
  private static Set<String> constants(Path file) throws IOException {
    Set<String> found = new TreeSet<>();
    try (DataInputStream in = new DataInputStream(Files.newInputStream(file))) {
      in.skipNBytes(8);
      int count = in.readUnsignedShort();
      for (int i = 1; i < count; i++) {
        int tag = in.readUnsignedByte();
        if (tag == 1) {
          String text = in.readUTF();
          if (text.matches("[vila][ila]+")) {
            found.add(text);
          }
          continue;
        }
        in.skipNBytes(
            tag == 15 ? 3 : tag == 7 || tag == 8 || tag == 16 || tag == 19 || tag == 20 ? 2 : 4);
        if (tag == 5 || tag == 6) {
          in.skipNBytes(4);
          i++; // a long has two entries
        }
      }
    }
    return found;
  }

  private static Set<String> descriptors(Path file) throws ReflectiveOperationException {
    String name = file.getFileName().toString().replace(".class", "");
    Set<String> found = new TreeSet<>();
    for (Field field : Class.forName("io.github.fletching.ffm.abi." + name).getDeclaredFields()) {
      if (field.getType() == FunctionDescriptor.class) {
        field.setAccessible(true);
        found.add(entry((FunctionDescriptor) field.get(null)));
      }
    }
    return found;
  }

  private static String entry(FunctionDescriptor descriptor) {
    String result = descriptor.returnLayout().map(NativeImageTest::type).orElse("void");
    String arguments =
        descriptor.argumentLayouts().stream()
            .map(layout -> '"' + type(layout) + '"')
            .collect(Collectors.joining(", "));
    return "{\"returnType\": \"" + result + "\", \"parameterTypes\": [" + arguments + "]}";
  }

  private static String type(MemoryLayout layout) {
    Class<?> carrier = ((ValueLayout) layout).carrier();
    return carrier.isPrimitive() ? "j" + carrier.getName() : "void*";
  }
}
