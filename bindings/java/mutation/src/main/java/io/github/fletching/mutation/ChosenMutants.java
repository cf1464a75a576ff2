// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.mutation;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.pitest.bytecode.analysis.ClassTree;
import org.pitest.mutationtest.build.InterceptorParameters;
import org.pitest.mutationtest.build.InterceptorType;
import org.pitest.mutationtest.build.MutationInterceptor;
import org.pitest.mutationtest.build.MutationInterceptorFactory;
import org.pitest.mutationtest.engine.Mutater;
import org.pitest.mutationtest.engine.MutationDetails;
import org.pitest.plugin.Feature;

/**
 * A PIT plugin for a fixed sample of mutants, which PIT itself lacks. With the system property
 * {@code mutants.list} it appends each mutant to that file, and PIT runs none; otherwise PIT runs
 * the mutants whose lines are in the file {@code mutants.chosen}.
 */
public final class ChosenMutants implements MutationInterceptorFactory {
  @Override
  public MutationInterceptor createInterceptor(InterceptorParameters parameters) {
    return new Choice();
  }

  @Override
  public Feature provides() {
    return Feature.named("CHOSEN").withOnByDefault(true);
  }

  @Override
  public String description() {
    return "The chosen mutants";
  }

  private static final class Choice implements MutationInterceptor {
    private final String list = System.getProperty("mutants.list");
    private final Set<String> chosen = new HashSet<>();

    Choice() {
      try {
        if (list == null) {
          chosen.addAll(Files.readAllLines(Path.of(System.getProperty("mutants.chosen"))));
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public InterceptorType type() {
      return InterceptorType.REPORT; // runs after every filter
    }

    @Override
    public void begin(ClassTree type) {}

    @Override
    public Collection<MutationDetails> intercept(
        Collection<MutationDetails> mutants, Mutater mutater) {
      if (list != null) {
        append(mutants.stream().map(Choice::line).collect(Collectors.toList()));
      }
      return mutants.stream()
          .filter(mutant -> chosen.contains(line(mutant)))
          .collect(Collectors.toList());
    }

    private void append(List<String> lines) {
      StandardOpenOption[] options = {StandardOpenOption.CREATE, StandardOpenOption.APPEND};
      try {
        Files.write(Path.of(list), lines, options);
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public void end() {}

    private static String line(MutationDetails mutant) {
      return String.join(
          "\t",
          mutant.getClassName().asJavaName(),
          mutant.getMethod(),
          mutant.getId().getLocation().getMethodDesc(),
          mutant.getMutator(),
          String.valueOf(mutant.getFirstIndex()),
          String.valueOf(mutant.getLineNumber()),
          mutant.getDescription());
    }
  }
}
