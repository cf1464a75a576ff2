// SPDX-License-Identifier: Apache-2.0

//! The function table of a framework, and a table of this crate.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{self, null_mut};

use fletching::abi::{
    ArrowDeviceType, DLDevice, DLDeviceType, DLManagedTensorVersioned, DLPackExchangeAPI,
    DLPackExchangeAPIHeader, DLPackVersion, DLTensor,
};
use fletching::dlpack::exchange::{with_allocator, ExchangeApi};
use fletching::dlpack::Ordering;
use libc::{EINVAL, EIO, ENOMEM, ENOSYS};

use crate::support::*;

static TABLE: DLPackExchangeAPI = with_allocator(DLPackExchangeAPI::zeroed());

fn find(table: &'static DLPackExchangeAPI) -> ExchangeApi {
    // SAFETY: the tables of the tests are static.
    unsafe { ExchangeApi::find(&table.header) }.unwrap()
}

fn on(device_type: ArrowDeviceType) -> DLDevice {
    DLDevice {
        device_type: DLDeviceType(device_type.0),
        device_id: 0,
    }
}

fn cpu() -> DLDevice {
    on(ArrowDeviceType::CPU)
}

#[test]
fn allocator_returns_aligned_memory() {
    let tensor = find(&TABLE).allocate(INT32, &[2, 3], cpu()).unwrap();
    assert_eq!(tensor.shape().unwrap(), [2, 3]);
    assert_eq!(tensor.strides().unwrap(), Some(&[3, 1][..]));
    assert_eq!(
        (tensor.dtype().unwrap(), tensor.flags().unwrap()),
        (INT32, 0)
    );
    let data = tensor.data().unwrap();
    assert_eq!(data.addr() % 256, 0);
    // SAFETY: the memory is new, has six values, and is not shared.
    unsafe { data.cast::<[i32; 6]>().write([7; 6]) };
    let scalar = find(&TABLE).allocate(INT8, &[], cpu()).unwrap();
    assert_eq!(scalar.shape().unwrap(), []);
}

#[test]
fn allocate_failure_returns_reason() {
    let error = find(&TABLE)
        .allocate(INT32, &[2], on(ArrowDeviceType::CUDA))
        .unwrap_err();
    assert_eq!(error.code(), EIO);
    mentions(&error, "BufferError");
    mentions(&error, "expected the CPU");
    let error = find(&TABLE).allocate(INT32, &[1 << 57], cpu()).unwrap_err();
    assert_eq!(error.code(), ENOMEM);
    for shape in [&[2, -1][..], &[1; 65]] {
        let error = find(&TABLE).allocate(INT32, shape, cpu()).unwrap_err();
        assert_eq!(error.code(), EINVAL);
    }
}

unsafe extern "C" fn allocate_nothing(
    _: *mut DLTensor,
    _: *mut *mut DLManagedTensorVersioned,
    _: *mut c_void,
    _: Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>,
) -> c_int {
    0
}

unsafe extern "C" fn stream_77(_: DLDeviceType, device_id: i32, out: *mut *mut c_void) -> c_int {
    // SAFETY: the core passes an address for the result.
    unsafe { *out = ptr::without_provenance_mut(77) };
    device_id
}

static FRAMEWORK_TABLE: DLPackExchangeAPI = with_allocator(DLPackExchangeAPI {
    managed_tensor_allocator: Some(allocate_nothing),
    current_work_stream: Some(stream_77),
    ..DLPackExchangeAPI::zeroed()
});

#[test]
fn with_allocator_keeps_existing_allocator() {
    let error = find(&FRAMEWORK_TABLE)
        .allocate(INT32, &[2], cpu())
        .unwrap_err();
    assert_eq!(error.code(), EIO);
    mentions(&error, "expected a tensor, got the result 0");
}

#[test]
fn work_stream_returns_framework_stream() {
    let api = find(&FRAMEWORK_TABLE);
    // SAFETY: the stream is not used.
    let read = |device| unsafe { api.work_stream(device) };
    let stream = read(on(ArrowDeviceType::CUDA)).unwrap();
    assert_eq!(stream.ordering(), Ordering::Stream(77));
    assert_eq!(read(cpu()).unwrap().ordering(), Ordering::Nothing);
    let failing = DLDevice {
        device_id: 1,
        ..on(ArrowDeviceType::CUDA)
    };
    assert_eq!(read(failing).unwrap_err().code(), EIO);
    // SAFETY: as above.
    let error = unsafe { find(&TABLE).work_stream(cpu()) }.unwrap_err();
    assert_eq!(error.code(), ENOSYS);
}

const fn version(major: u32, prev_api: *const DLPackExchangeAPIHeader) -> DLPackExchangeAPI {
    DLPackExchangeAPI {
        header: DLPackExchangeAPIHeader {
            version: DLPackVersion { major, minor: 0 },
            prev_api: prev_api.cast_mut(),
        },
        ..DLPackExchangeAPI::zeroed()
    }
}

static SECOND: DLPackExchangeAPI = version(2, &raw const TABLE.header);
static THIRD: DLPackExchangeAPI = version(3, &raw const SECOND.header);
static ALONE: DLPackExchangeAPI = version(2, null_mut());

#[test]
fn find_returns_version_1_table() {
    // SAFETY: the tables are static.
    let find = |first| unsafe { ExchangeApi::find(first) };
    assert!(ptr::eq(find(&THIRD.header).unwrap().as_raw(), &TABLE));
    assert!(find(&ALONE.header).is_none());
    assert!(find(ptr::null()).is_none());
}

#[test]
fn table_has_dlpack_version() {
    let version = TABLE.header.version;
    assert_eq!((version.major, version.minor), (1, 3));
    let header = DLPackExchangeAPIHeader {
        version: DLPackVersion { major: 7, minor: 7 },
        prev_api: (&raw const TABLE.header).cast_mut(),
    };
    let table = with_allocator(DLPackExchangeAPI {
        header,
        ..DLPackExchangeAPI::zeroed()
    });
    assert_eq!(table.header.version, version);
    assert!(ptr::eq(table.header.prev_api, &TABLE.header));
}
