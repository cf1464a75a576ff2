// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.arrow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import java.io.File;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.platform.commons.support.ReflectionSupport;

/**
 * Two versions of arrow-java in one process exchange structs by address. Each has a class loader
 * with a copy of the same build of Fletching. Surefire does not select this class by its name,
 * because it needs the class path of the older version, in the file that the property {@code
 * older.classpath} names.
 */
class ArrowVersions {
  private static Object newer;
  private static Object older;

  @BeforeAll
  static void load() throws Exception {
    String here =
        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
    String other = Files.readString(Path.of(System.getProperty("older.classpath")));
    newer = load(entries(here));
    older = load(Stream.concat(entries(here).filter(Files::isDirectory), entries(other)));
    assertNotEquals(call(newer, "version"), call(older, "version"));
  }

  @AfterAll
  static void close() {
    call(newer, "close"); // throws if memory is still allocated
    call(older, "close");
  }

  private static Stream<Path> entries(String classPath) {
    return Arrays.stream(classPath.strip().split(File.pathSeparator)).map(Path::of);
  }

  private static Object load(Stream<Path> classPath) throws Exception {
    List<URL> urls = new ArrayList<>();
    for (Path entry : (Iterable<Path>) classPath::iterator) {
      urls.add(entry.toUri().toURL());
    }
    ClassLoader loader =
        new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
    return ReflectionSupport.newInstance(loader.loadClass(VersionPeer.class.getName()));
  }

  private static Object call(Object peer, String name, Object... arguments) {
    Method method =
        Arrays.stream(peer.getClass().getDeclaredMethods())
            .filter(each -> each.getName().equals(name))
            .findFirst()
            .orElseThrow();
    return ReflectionSupport.invokeMethod(method, peer, arguments);
  }

  private static void exchangeBatch(Object from, Object to) {
    long[] addresses = (long[]) call(from, "exportBatch");
    assertEquals(true, call(to, "importBatch", addresses[0], addresses[1]));
  }

  private static void exchangeStream(Object from, Object to) {
    assertEquals(true, call(to, "importStream", call(from, "exportStream")));
  }

  @Test
  void batchReachesNewerVersion() {
    exchangeBatch(older, newer);
  }

  @Test
  void batchReachesOlderVersion() {
    exchangeBatch(newer, older);
  }

  @Test
  void streamReachesNewerVersion() {
    exchangeStream(older, newer);
  }

  @Test
  void streamReachesOlderVersion() {
    exchangeStream(newer, older);
  }
}
