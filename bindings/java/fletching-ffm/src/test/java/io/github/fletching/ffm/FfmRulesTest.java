// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.ffm;

import io.github.fletching.testing.suite.ArrayRules;
import io.github.fletching.testing.suite.ConsumerRules;
import io.github.fletching.testing.suite.DeclarationRules;
import io.github.fletching.testing.suite.DeviceTypeRules;
import io.github.fletching.testing.suite.ProducerRules;
import io.github.fletching.testing.suite.ReleaseRules;
import io.github.fletching.testing.suite.SchemaRules;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Nested;

class FfmRulesTest {
  @Nested
  class OfArrays extends ArrayRules {}

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
      super("io.github.fletching.ffm.abi", MemorySegment.class);
    }
  }
}
