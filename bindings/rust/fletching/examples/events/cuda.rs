// SPDX-License-Identifier: Apache-2.0

//! The parts that a CUDA program already has: a context, streams, memory and copies, from libcuda.
//! The handles live until the process exits.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use fletching::runtime::Stream;
use fletching::{ArrowDeviceType, Error};
use libloading::Library;

/// The functions of cuda.h that this example calls.
struct Driver {
    init: unsafe extern "C" fn(u32) -> c_int,
    retain: unsafe extern "C" fn(*mut *mut c_void, c_int) -> c_int,
    set_current: unsafe extern "C" fn(*mut c_void) -> c_int,
    stream_create: unsafe extern "C" fn(*mut *mut c_void, u32) -> c_int,
    synchronize: unsafe extern "C" fn(*mut c_void) -> c_int,
    allocate: unsafe extern "C" fn(*mut usize, usize) -> c_int,
    free: unsafe extern "C" fn(usize) -> c_int,
    fill: unsafe extern "C" fn(usize, u8, usize, *mut c_void) -> c_int,
    copy: unsafe extern "C" fn(*mut c_void, usize, usize, *mut c_void) -> c_int,
}

fn driver() -> Result<&'static Driver, Error> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let load = || {
        // SAFETY: the types match cuda.h, and the library is never unloaded.
        unsafe {
            let library = Box::leak(Box::new(Library::new("libcuda.so.1")?));
            Ok(Driver {
                init: *library.get(b"cuInit")?,
                retain: *library.get(b"cuDevicePrimaryCtxRetain")?,
                set_current: *library.get(b"cuCtxSetCurrent")?,
                stream_create: *library.get(b"cuStreamCreate")?,
                synchronize: *library.get(b"cuStreamSynchronize")?,
                allocate: *library.get(b"cuMemAlloc_v2")?,
                free: *library.get(b"cuMemFree_v2")?,
                fill: *library.get(b"cuMemsetD8Async")?,
                copy: *library.get(b"cuMemcpyDtoHAsync_v2")?,
            })
        }
    };
    let loaded =
        DRIVER.get_or_init(|| load().map_err(|error: libloading::Error| error.to_string()));
    loaded
        .as_ref()
        .map_err(|text| Error::new(libc::ENOENT, text))
}

fn check(function: &str, code: c_int) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        code => Err(Error::new(
            libc::EIO,
            format!("{function}: CUresult {code}"),
        )),
    }
}

/// Makes the primary context of a device current.
pub fn use_device(device: c_int) -> Result<(), Error> {
    let (driver, mut context) = (driver()?, ptr::null_mut());
    // SAFETY: the arguments match cuda.h.
    unsafe {
        check("cuInit", (driver.init)(0))?;
        check(
            "cuDevicePrimaryCtxRetain",
            (driver.retain)(&mut context, device),
        )?;
        check("cuCtxSetCurrent", (driver.set_current)(context))
    }
}

/// Makes a stream that does not wait for the default stream.
pub fn stream() -> Result<Stream, Error> {
    const NON_BLOCKING: u32 = 1;
    let mut handle = ptr::null_mut();
    // SAFETY: the arguments match cuda.h, and the stream is never destroyed.
    unsafe {
        check(
            "cuStreamCreate",
            (driver()?.stream_create)(&mut handle, NON_BLOCKING),
        )?;
        Ok(Stream::from_raw(ArrowDeviceType::CUDA, handle))
    }
}

/// Waits for all work on the stream.
pub fn synchronize(stream: &Stream) -> Result<(), Error> {
    // SAFETY: the stream is alive.
    check("cuStreamSynchronize", unsafe {
        (driver()?.synchronize)(stream.as_ptr())
    })
}

/// Memory on the current device.
pub struct DeviceMemory(usize, usize);

impl DeviceMemory {
    pub fn new(size: usize) -> Result<Self, Error> {
        let mut address = 0;
        // SAFETY: the arguments match cuda.h.
        check("cuMemAlloc", unsafe {
            (driver()?.allocate)(&mut address, size)
        })?;
        Ok(Self(address, size))
    }

    pub fn address(&self) -> *const c_void {
        self.0 as *const c_void
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            // SAFETY: the memory is no longer used.
            unsafe { (driver.free)(self.0) };
        }
    }
}

/// Writes `value` to every byte.
pub fn fill(memory: &DeviceMemory, value: u8, stream: &Stream) -> Result<(), Error> {
    // SAFETY: the memory has this size, and the stream is alive.
    check("cuMemsetD8Async", unsafe {
        (driver()?.fill)(memory.0, value, memory.1, stream.as_ptr())
    })
}

/// Copies to the host. Do not read `to` before the work on the stream is done.
pub fn copy_to_host(to: &mut [i8], from: *const c_void, stream: &Stream) -> Result<(), Error> {
    // SAFETY: the caller passes an array of at least this size.
    check("cuMemcpyDtoHAsync", unsafe {
        (driver()?.copy)(
            to.as_mut_ptr().cast(),
            from as usize,
            to.len(),
            stream.as_ptr(),
        )
    })
}
