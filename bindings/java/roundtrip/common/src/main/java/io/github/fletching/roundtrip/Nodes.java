// SPDX-License-Identifier: Apache-2.0

package io.github.fletching.roundtrip;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Schemas, or arrays, handed on as our own. Every node of a tree becomes a struct with our release
 * callback, which releases what was moved in. Any thread may release.
 */
final class Nodes {
  private final Structs structs;
  private final Structs.Node access;
  private final long releaseFunction;
  // private_data is a key of this map and no address: a second release is seen, not followed.
  private final Map<Long, Node> alive = new ConcurrentHashMap<>();
  private final Counts counts;

  Nodes(Structs structs, Structs.Node access, Counts counts) {
    this.structs = structs;
    this.access = access;
    this.counts = counts;
    this.releaseFunction = access.newRelease.applyAsLong(this::release);
  }

  /** Structs given out, and own release callbacks that ran. */
  static final class Counts {
    final AtomicLong exported = new AtomicLong();
    final AtomicLong released = new AtomicLong();
  }

  /** What stands behind one struct of ours. */
  static final class Node {
    private long block; // the only memory of the node; the rest points into it
    private long source; // moved in
    private long dictionary; // ours, or 0
    private long[] children; // ours
    private long childPointers;
    private Node[] childNodes; // of the children, until they are adopted
    private Node dictionaryNode;
  }

  /** Everything that can fail. {@code source} has been checked; it stays as it is. */
  Node plan(long source) {
    Node node = new Node();
    int count = Math.toIntExact(access.childCount.of(source));
    boolean hasDictionary = access.dictionary.of(source) != 0;
    node.children = new long[count];
    node.childNodes = new Node[count];
    long size = access.size;
    node.block = structs.allocate(size * (2L + count) + Long.BYTES * (long) count);
    try {
      node.source = node.block;
      node.dictionary = hasDictionary ? node.block + size : 0;
      node.childPointers = node.block + size * (2L + count);
      for (int i = 0; i < count; i++) {
        node.children[i] = node.block + size * (2L + i);
        Foreign.setPointerAt(node.childPointers, i, node.children[i]);
        node.childNodes[i] = plan(Foreign.pointerAt(access.children.of(source), i));
      }
      if (hasDictionary) {
        node.dictionaryNode = plan(access.dictionary.of(source));
      }
    } catch (Throwable e) {
      discard(node);
      throw e;
    }
    return node;
  }

  /** Frees a plan that is not carried out. */
  void discard(Node node) {
    for (Node child : node.childNodes) {
      if (child != null) {
        discard(child);
      }
    }
    if (node.dictionaryNode != null) {
      discard(node.dictionaryNode);
    }
    structs.free(node.block);
  }

  /** Moves {@code source} in and fills {@code out}. */
  void adopt(Node node, long source, long out) {
    Foreign.copy(source, out, access.size);
    for (int i = 0; i < node.children.length; i++) {
      long child = Foreign.pointerAt(access.children.of(source), i);
      adopt(node.childNodes[i], child, node.children[i]);
    }
    if (node.children.length > 0) {
      access.children.set(out, node.childPointers);
    }
    if (node.dictionary != 0) {
      adopt(node.dictionaryNode, access.dictionary.of(source), node.dictionary);
      access.dictionary.set(out, node.dictionary);
    }
    node.childNodes = null;
    node.dictionaryNode = null;
    Foreign.copy(source, node.source, access.size);
    access.release.set(source, 0);
    long key = counts.exported.incrementAndGet();
    alive.put(key, node);
    access.privateData.set(out, key);
    access.release.set(out, releaseFunction);
  }

  private void release(long self) {
    try {
      Node node = self == 0 ? null : alive.remove(access.privateData.of(self));
      if (node == null) {
        System.err.println(access.name + ": released twice, or not one of ours");
        return;
      }
      for (long child : node.children) {
        releaseAt(child);
      }
      if (node.dictionary != 0) {
        releaseAt(node.dictionary);
      }
      releaseAt(node.source);
      structs.free(node.block);
      access.release.set(self, 0);
      counts.released.incrementAndGet();
    } catch (Throwable e) {
      Guard.log(access.name + ".release", e);
    }
  }

  /** Releases a struct unless that has been done, or it was moved. */
  void releaseAt(long struct) {
    if (access.release.of(struct) != 0) {
      access.callRelease.accept(struct);
    }
  }
}
