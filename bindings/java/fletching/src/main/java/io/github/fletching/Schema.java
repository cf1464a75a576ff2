// SPDX-License-Identifier: Apache-2.0

package io.github.fletching;

import java.util.function.LongConsumer;

/**
 * Owner of an ArrowSchema. See {@link Owner}.
 *
 * <p>See "The ArrowSchema structure" in the Arrow C data interface.
 */
public final class Schema extends Owner {
  Schema(Slot slot) {
    super(Kind.SCHEMA, slot);
  }

  /**
   * Moves the struct at an address into an owner; see {@link Array#wrap} for requirements and
   * errors.
   *
   * @param address the address of a struct
   * @return the owner
   */
  public static Schema wrap(long address) {
    return new Schema(imported(Kind.SCHEMA, address));
  }

  /**
   * Owns the struct that a C function fills; see {@link Array#filledBy}.
   *
   * @param function the function, which is called once
   * @return the owner
   */
  public static Schema filledBy(LongConsumer function) {
    return new Schema(filled(Kind.SCHEMA, function));
  }

  /**
   * A view of the schema itself, for code that traverses views.
   *
   * @return a view of the schema
   */
  public SchemaView view() {
    open("read");
    return top();
  }

  /** The view without a check; its first read checks. */
  private SchemaView top() {
    return new SchemaView(this, null, 0);
  }

  /**
   * See {@link SchemaView#format}.
   *
   * @return the format string
   */
  public String format() {
    return top().format();
  }

  /**
   * See {@link SchemaView#name}.
   *
   * @return the name
   */
  public String name() {
    return top().name();
  }

  /**
   * See {@link SchemaView#flags}.
   *
   * @return the flags
   */
  public long flags() {
    return top().flags();
  }

  /**
   * See {@link SchemaView#metadata}.
   *
   * @return the metadata
   */
  public Metadata metadata() {
    return top().metadata();
  }

  /**
   * See {@link View#childCount}.
   *
   * @return the number of children
   */
  public int childCount() {
    return top().childCount();
  }

  /**
   * See {@link SchemaView#child}.
   *
   * @param index the index, from 0
   * @return the child
   */
  public SchemaView child(int index) {
    return top().child(index);
  }

  /**
   * See {@link SchemaView#dictionary}.
   *
   * @return the dictionary
   */
  public SchemaView dictionary() {
    return top().dictionary();
  }

  /**
   * Checks the schema, which may come from a faulty producer: formats, numbers of children,
   * dictionaries and NULL pointers; see {@link ArrayOwner#check}.
   *
   * @throws FletchingException EINVAL with the path of the field and the broken rule
   */
  public void check() {
    check(ArrayCheck.NO_ARRAY);
  }

  /** Checks the schema together with an array. */
  void check(long array) {
    long schema = enter("check");
    try {
      ArrayCheck.run(schema, array);
    } finally {
      leave();
    }
  }

  /**
   * Moves a child out of the schema; see {@link Array#takeChild}.
   *
   * @param index the index, from 0
   * @return the child
   */
  public Schema takeChild(int index) {
    return new Schema(Tree.takeChild(this, index));
  }

  /**
   * Moves the dictionary out of the schema, as {@link #takeChild} does.
   *
   * @return the dictionary
   */
  public Schema takeDictionary() {
    return new Schema(Tree.takeDictionary(this));
  }

  /**
   * Keeps an object alive until the struct is released; see {@link ArrayOwner#attach}.
   *
   * @param object the object, which may be null
   */
  public void attach(Object object) {
    Tree.attach(this, object);
  }

  /**
   * Keeps an object alive until the struct is released; overload for a lambda.
   *
   * @param object the object, which may be null
   */
  public void attach(AutoCloseable object) {
    attach((Object) object);
  }

  /**
   * Moves the schema into a {@link Shared}, which several users may read.
   *
   * @return the shared struct
   */
  public Shared<Schema> share() {
    return Shared.of(this, Schema::new);
  }
}
