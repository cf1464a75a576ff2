// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.testing.suite;

import org.junit.jupiter.api.Nested;

/** The rules about arrays, schemas, streams and the declarations of an engine. */
public abstract class RulesSuite {
  private final String structs;
  private final Class<?> pointer;

  /** The package of the structs of the engine, and its type of a pointer. */
  protected RulesSuite(String structs, Class<?> pointer) {
    this.structs = structs;
    this.pointer = pointer;
  }

  @Nested
  class OfArrays extends ArrayRules {}

  @Nested
  class OfChecks extends CheckRules {}

  @Nested
  class OfReleases extends ReleaseRules {}

  @Nested
  class OfSchemas extends SchemaRules {}

  @Nested
  class OfConsumers extends ConsumerRules {}

  @Nested
  class OfDeviceTypes extends DeviceTypeRules {}

  @Nested
  class OfProducers extends ProducerRules {}

  @Nested
  class OfDeclarations extends DeclarationRules {
    OfDeclarations() {
      super(structs, pointer);
    }
  }
}
