// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.abi;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import javax.xml.parsers.DocumentBuilderFactory;
import javax.xml.parsers.ParserConfigurationException;
import org.junit.jupiter.api.Test;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;
import org.xml.sax.SAXException;

class BomTest {
  private static List<String> texts(Element parent, String tag) {
    NodeList found = parent.getElementsByTagName(tag);
    List<String> texts = new ArrayList<>();
    for (int i = 0; i < found.getLength(); i++) {
      texts.add(found.item(i).getTextContent());
    }
    return texts;
  }

  private static Element read(String file)
      throws IOException, ParserConfigurationException, SAXException {
    return DocumentBuilderFactory.newInstance()
        .newDocumentBuilder()
        .parse(Path.of("..", file).toFile())
        .getDocumentElement();
  }

  /** Importing the BOM must not set versions of other projects. */
  @Test
  void bomManagesOnlyPublishedArtifacts() throws Exception {
    Element bom = read("fletching-bom/pom.xml");
    Element parent = read("pom.xml");
    assertEquals(List.of(), texts(bom, "parent"));
    List<String> artifacts = texts(parent, "module");
    artifacts.removeAll(List.of("fletching-testing", "roundtrip", "bench", "mutation"));
    artifacts.sort(null);
    List<String> managed = texts(bom, "artifactId");
    managed.sort(null);
    assertEquals(artifacts, managed); // with the BOM itself
    String version = texts(parent, "version").get(0);
    assertEquals(List.of(version), List.copyOf(new TreeSet<>(versions(bom))));
    assertEquals(List.of("io.github.fletching"), List.copyOf(new TreeSet<>(texts(bom, "groupId"))));
  }

  private static List<String> versions(Element bom) {
    List<String> versions = texts(bom, "version");
    versions.replaceAll(text -> text.equals("${project.version}") ? versions.get(0) : text);
    return versions;
  }
}
