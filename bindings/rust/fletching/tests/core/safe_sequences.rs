// SPDX-License-Identifier: Apache-2.0

//! Random sequences of safe calls on arrays and schemas. The test compares addresses and counts
//! with a model; Miri and AddressSanitizer check the memory.

#![forbid(unsafe_code)]

use std::ffi::c_void;
use std::sync::Arc;

use fletching::{
    Array, ArrayBuilder, ArrayCapacity, ArrayValues, ArrowDeviceType, DeviceArray, Nested, Node,
    Owner, Schema, SchemaBuilder, Shared,
};

/// Small numbers, the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

/// The values of every array. The test holds a reference too.
type Values = Arc<[i64; 4]>;

/// Builds an array of two columns. The first has two children, the second a dictionary. The object
/// has a type that the crate uses internally.
fn build(values: &Values) -> ArrayBuilder<Arc<dyn Send + Sync>> {
    let capacity = ArrayCapacity {
        arrays: 5,
        buffers: 6,
    };
    let buffer: *const c_void = values.as_ptr().cast();
    let mut builder = ArrayBuilder::new(capacity, Arc::clone(values) as _).unwrap();
    let set = |builder: &mut ArrayBuilder<_>, node| {
        builder.set(node, ArrayValues::of(4), &[buffer]);
    };
    set(&mut builder, Node::ROOT);
    let columns = builder.add_children(Node::ROOT, 2);
    set(&mut builder, columns);
    set(&mut builder, columns.sibling(1));
    let below = builder.add_children(columns, 2);
    set(&mut builder, below);
    set(&mut builder, below.sibling(1));
    let words = builder.add_dictionary(columns.sibling(1));
    set(&mut builder, words);
    builder
}

/// An owner, or several views, of a struct.
enum Held<R: Nested> {
    Owner(Owner<R>),
    Shared(Shared<R>),
}

/// Makes a random call on an entry of `pool`, and adds the results to the pool.
fn step<R: Nested>(random: &mut Random, pool: &mut Vec<Held<R>>, object: &Arc<()>) {
    if pool.is_empty() {
        return;
    }
    let index = random.below(pool.len());
    let is_first = random.below(2) == 0;
    match pool.swap_remove(index) {
        Held::Owner(mut owner) => match random.below(5) {
            0 => pool.extend(owner.share().map(Held::Shared)),
            1 => {
                let _ = owner.attach(Arc::clone(object));
                pool.push(Held::Owner(owner));
            }
            2 | 3 => {
                let taken = match is_first {
                    true => owner.take_child(random.below(2)),
                    false => owner.take_dictionary(),
                };
                pool.extend(taken.map(Held::Owner));
                pool.push(Held::Owner(owner));
            }
            _ => drop(owner),
        },
        Held::Shared(shared) => {
            match random.below(5) {
                0 => pool.extend(shared.view().map(Held::Owner)),
                1 => pool.extend(shared.column(random.below(3)).map(Held::Owner)),
                2 => pool.push(Held::Shared(shared.clone())),
                3 => return drop(shared),
                _ => {
                    return pool.push(match shared.try_unwrap() {
                        Ok(owner) => Held::Owner(owner),
                        Err(shared) => Held::Shared(shared),
                    });
                }
            }
            pool.push(Held::Shared(shared));
        }
    }
}

fn look<R: Nested>(held: &Held<R>, see: &dyn Fn(&Owner<R::Base>)) {
    fn below<B: Nested<Base = B>>(owner: &Owner<B>, see: &dyn Fn(&Owner<B>)) {
        if owner.is_released() {
            return;
        }
        see(owner);
        owner
            .children()
            .iter()
            .flatten()
            .for_each(|child| below(child, see));
        owner
            .dictionary()
            .into_iter()
            .for_each(|values| below(values, see));
    }
    let owner = match held {
        Held::Owner(owner) => owner,
        Held::Shared(shared) => shared,
    };
    owner
        .children()
        .iter()
        .flatten()
        .for_each(|child| below(child, see));
    owner
        .dictionary()
        .into_iter()
        .for_each(|values| below(values, see));
}

/// Runs the sequences on a pool of arrays, one of device arrays and one of schemas.
#[test]
fn random_safe_calls_keep_contents() {
    let (rounds, steps) = if cfg!(miri) { (4, 60) } else { (60, 200) };
    for round in 0..rounds {
        let mut random = Random(round);
        let (values, object) = (Values::new([7, 8, 9, 10]), Arc::new(()));
        let (mut arrays, mut devices, mut schemas) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..steps {
            match random.below(8) {
                0 => arrays.push(Held::Owner(build(&values).finish().unwrap())),
                1 => {
                    let made = build(&values).finish_on(ArrowDeviceType::CPU, -1);
                    devices.push(Held::Owner(made.unwrap()));
                }
                2 => {
                    let words = SchemaBuilder::new("i").dictionary(SchemaBuilder::new("u"));
                    let below = SchemaBuilder::new("+s").child(SchemaBuilder::new("l").name("a"));
                    let schema = SchemaBuilder::new("+s").child(below).child(words);
                    schemas.push(Held::Owner(schema.build().unwrap()));
                }
                3 => {
                    if let Some(Held::Owner(array)) = arrays.pop() {
                        devices.push(Held::Owner(DeviceArray::from(array)));
                    }
                }
                4 => {
                    if let Some(Held::Owner(array)) = devices.pop() {
                        arrays.extend(Array::try_from(array).map(Held::Owner));
                    }
                }
                5 => step(&mut random, &mut arrays, &object),
                6 => step(&mut random, &mut devices, &object),
                _ => step(&mut random, &mut schemas, &object),
            }
            let see = |array: &Array| {
                assert_eq!(
                    (array.length(), array.buffers()),
                    (4, &[values.as_ptr().cast()][..])
                );
            };
            arrays.iter().for_each(|held| look(held, &see));
            devices.iter().for_each(|held| look(held, &see));
            let see = |schema: &Schema| assert!(!schema.format().is_empty());
            schemas.iter().for_each(|held| look(held, &see));
        }
        drop((arrays, devices, schemas));
        assert_eq!(
            (Arc::strong_count(&values), Arc::strong_count(&object)),
            (1, 1)
        );
    }
}
