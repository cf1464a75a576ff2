//! A project outside the repository, which uses two versions of the packaged crate: test-package.

use fletching::{Array, ArrowDeviceType, DeviceArray, DeviceArrayStream, SchemaBuilder};

struct Waiter;
impl fletching::runtime::Waiter for Waiter {}
impl other::runtime::Waiter for Waiter {}

fn main() -> Result<(), fletching::Error> {
    let schema = SchemaBuilder::new("i").name("count").build()?;
    let batches = (1..4).map(|length| Ok(DeviceArray::from(Array::from(vec![7_i32; length]))));
    let stream = DeviceArrayStream::from_batches(schema, ArrowDeviceType::CPU, batches)?;
    let mut reader = stream.into_iter();
    assert_eq!(reader.schema()?.name(), c"count");
    let lengths: Vec<_> = reader.map(|batch| Ok(batch?.length())).collect::<Result<_, fletching::Error>>()?;
    assert_eq!(lengths, [1, 2, 3]);

    // Each version has a separate core, and so separate waiters.
    fletching::runtime::register_waiter(ArrowDeviceType::METAL, Waiter)?;
    assert!(!other::runtime::unregister_waiter(other::ArrowDeviceType::METAL));
    other::runtime::register_waiter(other::ArrowDeviceType::METAL, Waiter).unwrap();
    assert!(fletching::runtime::unregister_waiter(ArrowDeviceType::METAL));
    assert!(other::runtime::unregister_waiter(other::ArrowDeviceType::METAL));
    Ok(())
}
