// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/** The example of bindings/java/README.md runs, and is the one that stands there. */
public abstract class ReadmeTest {
  private final Structs structs;
  private final String source;

  /** {@code source} is the file with the example, relative to the module. */
  protected ReadmeTest(Structs structs, String source) {
    this.structs = structs;
    this.source = source;
  }

  /** Runs the example on a device array that a producer filled. */
  protected abstract String run(long deviceArray);

  @Test
  void theExampleRuns() {
    Producer producer = new Producer();
    long schema = structs.allocate(structs.schema.size);
    long array = structs.allocate(structs.deviceArraySize);
    assertNull(producer.exportArray("cpu", "int32", schema, array));
    assertEquals("4 values on cpu", run(array));
    assertEquals(0, structs.array.release.of(structs.arrayOf(array)));
    structs.schema.callRelease.accept(schema);
    structs.free(schema);
    structs.free(array);
  }

  @Test
  void theExampleIsTheOneOfTheReadme() throws IOException {
    String text = Files.readString(Path.of(source));
    int begin = text.indexOf('\n', text.indexOf("// The example begins")) + 1;
    String example = text.substring(begin, text.indexOf("  // The example ends"));
    String shown = example.stripTrailing().replaceAll("(?m)^  ", "");
    String readme = Files.readString(Path.of("../../README.md"));
    assertTrue(readme.contains("```java\n" + shown + "\n```"), "README.md does not show\n" + shown);
  }
}
