// SPDX-License-Identifier: Apache-2.0

//! Tensors in both directions, versioned and legacy.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

use dlpark::allocation::dynamic::Initialized;
use dlpark::ffi::{DLManagedTensor, DLManagedTensorVersioned};
use dlpark::{DlpackFlags, Managed, ManagedTensorBase, TryFromDlpack};
use fletching::dlpack::{
    from_dlpack, to_dlpack, to_legacy_dlpack, Access, DlpackTensor, Exclusive, ExportOptions,
    HostReadable, ImportOptions, Strided,
};
use fletching::{Array, DeviceArray, SchemaBuilder};
use fletching_dlpark::{from_dlpark, from_legacy_dlpark, to_dlpark, to_legacy_dlpark};
use half::bf16;
use ndarray::{array, Array2, ArrayD, ArrayViewD};

fn readable() -> HostReadable {
    // SAFETY: the tensors of the tests are on the CPU, and nobody writes to them.
    unsafe { HostReadable::new() }
}

/// Returns the elements as dlpark reads them.
fn read<T: dlpark::DlpackElement + Clone, M: ManagedTensorBase>(tensor: &Managed<M>) -> ArrayD<T> {
    // SAFETY: nobody writes to the memory of the tests.
    let view = unsafe { ArrayViewD::<T>::try_from_dlpack(tensor, ()) };
    view.unwrap().to_owned()
}

fn of_dlpark<M: ManagedTensorBase>(array: Array2<i32>) -> Managed<M>
where
    Initialized<M>: TryFrom<Box<Array2<i32>>>,
{
    let initialized = Initialized::<M>::try_from(Box::new(array)).ok().unwrap();
    // SAFETY: the array owns its elements.
    unsafe { initialized.finish() }
}

struct Counted(Vec<i64>, Arc<AtomicUsize>);

impl AsRef<[i64]> for Counted {
    fn as_ref(&self) -> &[i64] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn dlpark_reads_exported_array() {
    let drops = Arc::default();
    let owner = Counted(vec![1, 2, 3], Arc::clone(&drops));
    let schema = SchemaBuilder::new("l").build().unwrap();
    let mut array = DeviceArray::from(Array::from_values::<i64>(owner));
    let tensor = to_dlpack(&schema, &mut array, &Default::default()).unwrap();
    let mut theirs = to_dlpark(tensor);
    assert_eq!(theirs.flags(), DlpackFlags::READ_ONLY);
    assert!(theirs.validate_mut().is_err());
    theirs.validate_export().unwrap();
    assert_eq!(read::<i64, _>(&theirs), array![1, 2, 3].into_dyn());
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    drop(theirs);
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn dlpark_reads_legacy_tensor() {
    let schema = SchemaBuilder::new("g").build().unwrap();
    let mut array = DeviceArray::from(Array::from(vec![0.5, 1.5]));
    // SAFETY: only the array uses the values.
    let access = Access::Writable(unsafe { Exclusive::new() });
    let options = ExportOptions::default().access(access);
    let tensor = to_legacy_dlpack(&schema, &mut array, &options).unwrap();
    let theirs = to_legacy_dlpark(tensor);
    assert_eq!(read::<f64, _>(&theirs), array![0.5, 1.5].into_dyn());
}

#[test]
fn dlpark_reads_tensor_without_schema() {
    let values: Vec<bf16> = [1.0, 2.0, 3.0, 4.0].map(bf16::from_f32).to_vec();
    let mut theirs = to_dlpark(DlpackTensor::from_vec(values.clone(), &[2, 2]).unwrap());
    assert_eq!(theirs.flags(), DlpackFlags::empty());
    assert_eq!(read::<bf16, _>(&theirs).into_raw_vec_and_offset().0, values);
    // SAFETY: the tensor is the only owner of its memory.
    unsafe { theirs.validate_mut().unwrap().cpu_slice_mut::<bf16>() }.unwrap()[3] = bf16::ZERO;
    let ours = from_dlpark(theirs).to_ndarray::<bf16>(readable()).unwrap();
    assert_eq!(ours[[1, 1]], bf16::ZERO);
}

// Round trip of a transposed ndarray through dlpark.
#[test]
fn ndarray_export_keeps_strides() {
    let mut values = Array2::from_shape_fn((3, 4), |(i, j)| (10 * i + j) as i32);
    values.swap_axes(0, 1);
    let expected = values.clone().into_dyn();
    let theirs = to_dlpark(DlpackTensor::try_from(values).unwrap());
    assert_eq!(read::<i32, _>(&theirs), expected);
    let ours = from_dlpark(theirs);
    assert_eq!(ours.strides().unwrap(), Some(&[1, 4][..]));
    assert_eq!(ours.to_ndarray::<i32>(readable()).unwrap(), expected);
}

#[test]
fn from_dlpack_imports_dlpark_tensor() {
    let values = array![[1, 2, 3], [4, 5, 6]];
    let tensor = of_dlpark::<DLManagedTensorVersioned>(values.clone());
    let mut imported = from_dlpack(from_dlpark(tensor), &Default::default()).unwrap();
    assert_eq!(imported.schema.format(), c"+w:3");
    assert_eq!(imported.array.length(), 2);
    assert!(!imported.read_only);
    let again = to_dlpack(&imported.schema, &mut imported.array, &Default::default()).unwrap();
    assert_eq!(read::<i32, _>(&to_dlpark(again)), values.into_dyn());
}

#[test]
fn from_dlpack_imports_legacy_dlpark_tensor() {
    let tensor = of_dlpark::<DLManagedTensor>(array![[1, 2], [3, 4]]);
    let imported = from_dlpack(from_legacy_dlpark(tensor), &Default::default()).unwrap();
    assert!(imported.read_only);
    let child = imported.array.children()[0].unwrap();
    assert_eq!(child.length(), 4);
}

#[test]
fn from_dlpack_copies_transposed_dlpark_tensor() {
    let values = array![[1, 2, 3], [4, 5, 6]].reversed_axes();
    let tensor = of_dlpark::<DLManagedTensorVersioned>(values.clone());
    let options = ImportOptions::default().strided(Strided::Copy(readable()));
    let mut imported = from_dlpack(from_dlpark(tensor), &options).unwrap();
    assert!(imported.copied);
    let again = to_dlpack(&imported.schema, &mut imported.array, &Default::default()).unwrap();
    assert_eq!(
        again.to_ndarray::<i32>(readable()).unwrap(),
        values.into_dyn()
    );
}
