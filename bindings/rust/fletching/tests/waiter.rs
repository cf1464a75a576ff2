// SPDX-License-Identifier: Apache-2.0

//! Waiters for device types that the crate does not support itself, and missing libraries.

#![cfg(feature = "runtime")]

use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Arc;
use std::thread;

use fletching::abi::{ArrowArray, ArrowDeviceArray};
use fletching::runtime::{
    register_waiter, unregister_waiter, Stream, SyncEvent, VulkanContext, Waiter,
};
use fletching::{ArrowDeviceType, DeviceArray, Error};

const EVENT: *mut c_void = without_provenance_mut(0x1234);
const QUEUE: *mut c_void = without_provenance_mut(0x5678);

fn array(device_type: ArrowDeviceType, sync_event: *mut c_void) -> DeviceArray {
    unsafe extern "C" fn release(array: *mut ArrowArray) {
        // SAFETY: the consumer passes the array.
        unsafe { (*array).release = None };
    }
    let mut raw = ArrowDeviceArray::zeroed();
    raw.array.release = Some(release);
    (raw.device_type, raw.device_id, raw.sync_event) = (device_type, 7, sync_event);
    // SAFETY: the waiters of these tests do not use the event.
    unsafe { DeviceArray::from_raw(raw) }
}

fn queue(device_type: ArrowDeviceType) -> Stream {
    // SAFETY: the waiters of these tests do not use the queue.
    unsafe { Stream::from_raw(device_type, QUEUE) }
}

struct CheckingWaiter(Arc<AtomicUsize>);

impl CheckingWaiter {
    fn check(&self, event: &SyncEvent) {
        assert_eq!((event.as_ptr(), event.device_id()), (EVENT, 7));
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Waiter for CheckingWaiter {
    fn synchronize(&self, event: &SyncEvent<'_>) -> Result<(), Error> {
        self.check(event);
        Ok(())
    }

    fn wait_on(&self, event: &SyncEvent<'_>, stream: &Stream) -> Result<(), Error> {
        self.check(event);
        assert_eq!(stream.as_ptr(), QUEUE);
        assert_eq!(stream.device_type(), event.device_type());
        Err(Error::new(libc::EAGAIN, "queue full"))
    }

    fn is_ready(&self, event: &SyncEvent<'_>) -> Result<bool, Error> {
        self.check(event);
        Ok(false)
    }
}

#[test]
fn waiter_receives_event() {
    let device = ArrowDeviceType::EXT_DEV;
    let calls = Arc::<AtomicUsize>::default();
    register_waiter(device, CheckingWaiter(Arc::clone(&calls))).unwrap();
    let awaited = array(device, EVENT);
    awaited.synchronize().unwrap();
    assert!(!awaited.is_ready().unwrap());
    let error = awaited.wait_on(&queue(device)).unwrap_err();
    assert_eq!(error.code(), libc::EAGAIN);
    let text = "wait_on: event of ext_dev: queue full";
    assert_eq!(error.message(), text);
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    let error = awaited.wait_on(&queue(ArrowDeviceType::METAL)).unwrap_err();
    assert!(
        error
            .message()
            .contains("expected one of ext_dev, got one of Metal"),
        "{error}"
    );
    let error = awaited.wait_on(&queue(ArrowDeviceType::VPI)).unwrap_err();
    assert!(
        error.message().contains("got one without a runtime"),
        "{error}"
    );
    array(device, std::ptr::null_mut()).synchronize().unwrap(); // nothing to wait for
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert!(unregister_waiter(device));
    assert!(!unregister_waiter(device));
    assert_eq!(Arc::strong_count(&calls), 1);
    assert_eq!(awaited.synchronize().unwrap_err().code(), libc::ENOTSUP);
}

/// A waiter's own text is passed on unchanged.
#[test]
fn waiter_errors_name_operation() {
    let device = ArrowDeviceType::VPI;
    register_waiter(device, FailingWaiter).unwrap();
    let awaited = array(device, EVENT);
    let text = ": event of vpi: device lost";
    let message = |result: Result<(), Error>| result.unwrap_err().message().to_owned();
    assert_eq!(
        message(awaited.is_ready().map(drop)),
        format!("is_ready{text}")
    );
    assert_eq!(message(awaited.synchronize()), format!("synchronize{text}"));
    assert!(unregister_waiter(device));
}

struct FailingWaiter;
impl Waiter for FailingWaiter {
    fn synchronize(&self, _: &SyncEvent<'_>) -> Result<(), Error> {
        Err(Error::new(libc::EAGAIN, "device lost"))
    }

    fn is_ready(&self, event: &SyncEvent<'_>) -> Result<bool, Error> {
        self.synchronize(event).map(|()| true)
    }
}

struct UnsupportedWaiter;
impl Waiter for UnsupportedWaiter {}

#[test]
fn unsupported_waiter_operation_returns_enotsup() {
    let device = ArrowDeviceType::ONEAPI;
    register_waiter(device, CheckingWaiter(Arc::default())).unwrap();
    register_waiter(device, UnsupportedWaiter).unwrap(); // replaces it
    let awaited = array(device, EVENT);
    for (operation, result) in [
        ("synchronize", awaited.synchronize()),
        ("wait_on", awaited.wait_on(&queue(device))),
        ("is_ready", awaited.is_ready().map(drop)),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.code(), libc::ENOTSUP);
        let text = ": event of oneapi: not supported by the registered waiter";
        assert_eq!(error.message(), operation.to_owned() + text);
    }
    assert!(unregister_waiter(device));
}

/// Fails with a message that is too long, or panics.
struct PanickingWaiter;
impl Waiter for PanickingWaiter {
    fn synchronize(&self, _: &SyncEvent<'_>) -> Result<(), Error> {
        Err(Error::new(libc::EAGAIN, "\u{e9}".repeat(5000)))
    }

    fn is_ready(&self, _: &SyncEvent<'_>) -> Result<bool, Error> {
        panic!("lost")
    }
}

#[test]
fn waiter_panic_returns_eio() {
    let device = ArrowDeviceType::MAIA;
    register_waiter(device, PanickingWaiter).unwrap();
    let awaited = array(device, EVENT);
    let error = awaited.is_ready().unwrap_err();
    assert_eq!(error.code(), libc::EIO);
    assert!(error.message().contains("panic: lost"), "{error}");
    let error = awaited.synchronize().unwrap_err();
    assert_eq!(error.code(), libc::EAGAIN);
    let text = error.message().rsplit(' ').next().unwrap();
    assert_eq!(text, "\u{e9}".repeat(text.len() / 2), "{error}");
    assert!(unregister_waiter(device));
}

/// Its methods and its drop exchange waiters.
struct ReplacingWaiter(ArrowDeviceType);
impl Waiter for ReplacingWaiter {
    fn synchronize(&self, _: &SyncEvent<'_>) -> Result<(), Error> {
        register_waiter(self.0, UnsupportedWaiter)
    }

    fn is_ready(&self, _: &SyncEvent<'_>) -> Result<bool, Error> {
        Ok(unregister_waiter(self.0))
    }
}

impl Drop for ReplacingWaiter {
    fn drop(&mut self) {
        register_waiter(self.0, UnsupportedWaiter).unwrap();
    }
}

#[test]
fn waiter_can_replace_itself() {
    let device = ArrowDeviceType::HEXAGON;
    let awaited = array(device, EVENT);
    register_waiter(device, ReplacingWaiter(device)).unwrap();
    assert!(awaited.is_ready().unwrap());
    register_waiter(device, ReplacingWaiter(device)).unwrap();
    awaited.synchronize().unwrap();
    assert!(unregister_waiter(device), "its drop has registered another");
    let error = awaited.synchronize().unwrap_err();
    let text = "synchronize: no way to wait on an event of hexagon";
    assert!(error.message().starts_with(text), "{error}");
    // A rejected waiter is dropped, and its drop registers another one.
    let refused = register_waiter(ArrowDeviceType::CUDA, ReplacingWaiter(device));
    assert_eq!(refused.unwrap_err().code(), libc::EINVAL);
    assert!(unregister_waiter(device));
}

/// Always ready. Large, so that a registration takes long.
struct ReadyWaiter {
    _size: [u8; 1 << 17],
}
impl Waiter for ReadyWaiter {
    fn is_ready(&self, _: &SyncEvent<'_>) -> Result<bool, Error> {
        Ok(true)
    }
}

/// If a query fails for lack of a waiter, there must be no waiter to unregister.
#[test]
fn waiters_can_be_replaced_on_several_threads() {
    let device = ArrowDeviceType(4242);
    let awaited = array(device, EVENT);
    let (is_over, mut contradictions) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                unregister_waiter(device);
            }
        });
        for _ in 0..if cfg!(miri) { 5 } else { 2000 } {
            let ready = ReadyWaiter {
                _size: [0; 1 << 17],
            };
            register_waiter(device, ready).unwrap();
            if awaited.is_ready().is_err() && unregister_waiter(device) {
                contradictions += 1;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    unregister_waiter(device);
    assert_eq!(contradictions, 0);
}

#[test]
fn export_with_event_rejects_devices_without_runtime() {
    for (device, why) in [
        (ArrowDeviceType::VULKAN, "set by a command buffer"),
        (ArrowDeviceType::ONEAPI, "C++ object"),
        (ArrowDeviceType::METAL, "signaled by a command buffer"),
        (
            ArrowDeviceType(9999),
            "export_with_event: device type unknown(9999): no runtime",
        ),
    ] {
        let mut plain = array(device, std::ptr::null_mut());
        let error = plain
            .export_with_event(&Stream::legacy(device))
            .unwrap_err();
        assert_eq!(error.code(), libc::ENOTSUP);
        assert!(error.message().contains(why), "{error}");
    }
}

/// Without a runtime and a stream, no work is pending.
#[test]
fn release_after_releases_host_array_immediately() {
    for device in [ArrowDeviceType::CPU, ArrowDeviceType::EXT_DEV] {
        let token = Arc::new(());
        let mut plain = array(ArrowDeviceType::CPU, std::ptr::null_mut());
        plain.attach(Arc::clone(&token)).unwrap();
        plain.release_after(&Stream::legacy(device)).unwrap();
        assert_eq!(Arc::strong_count(&token), 1);
    }
}

#[test]
fn rule_sync_event_waited_before_access() {
    for (device, why) in [
        (ArrowDeviceType::METAL, "hint: register a waiter"),
        (
            ArrowDeviceType::VULKAN,
            "hint: pass a Vulkan context, or register a waiter",
        ),
        (ArrowDeviceType::CPU, "expected sync_event NULL"),
        (
            ArrowDeviceType(9999),
            "unknown(9999); hint: register a waiter",
        ),
    ] {
        let error = array(device, EVENT).is_ready().unwrap_err();
        assert_eq!(error.code(), libc::ENOTSUP);
        assert!(error.message().contains(why), "{error}");
        assert!(error.message().starts_with("is_ready: "), "{error}");
    }
}

#[test]
fn vulkan_context_rejects_other_devices() {
    // SAFETY: the device is not used.
    let context = unsafe { VulkanContext::new(QUEUE) };
    let awaited = array(ArrowDeviceType::EXT_DEV, EVENT);
    // SAFETY: as above.
    let results = unsafe {
        [
            (
                "is_ready_vulkan",
                awaited.is_ready_vulkan(&context).map(drop),
            ),
            ("synchronize_vulkan", awaited.synchronize_vulkan(&context)),
            ("wait_on_vulkan", awaited.wait_on_vulkan(&context, QUEUE)),
        ]
    };
    for (operation, result) in results {
        let error = result.unwrap_err();
        assert_eq!(error.code(), libc::EINVAL);
        let text = ": expected an event of Vulkan, got one of ext_dev";
        assert_eq!(error.message(), operation.to_owned() + text);
    }
    let mut handle = 1_u64;
    let awaited = array(ArrowDeviceType::VULKAN, (&raw mut handle).cast());
    // SAFETY: the context is rejected.
    let no_device = unsafe { VulkanContext::new(std::ptr::null_mut()) };
    // SAFETY: the device is not used.
    let results = unsafe {
        [
            awaited.is_ready_vulkan(&no_device).map(drop),
            awaited.wait_on_vulkan(&context, QUEUE),
            awaited.wait_on_vulkan(&context, std::ptr::null_mut()),
        ]
    };
    let texts = [
        "is_ready_vulkan: VkDevice is NULL: expected the producer's VkDevice",
        "wait_on_vulkan: another VkQueue: expected the producer's",
        "wait_on_vulkan: command buffer is NULL",
    ];
    for (result, text) in results.into_iter().zip(texts) {
        let error = result.unwrap_err();
        assert!(error.message().starts_with(text), "{error}");
    }
    let plain = array(ArrowDeviceType::VULKAN, std::ptr::null_mut());
    // SAFETY: as above.
    unsafe {
        assert!(plain.is_ready_vulkan(&context).unwrap());
        plain.synchronize_vulkan(&context).unwrap();
    }
    fn is_for_any_thread<T: Send + Sync>(_: T) {}
    is_for_any_thread(context);
}

#[test]
fn register_waiter_rejects_devices_with_runtime() {
    for device in [
        ArrowDeviceType::CUDA,
        ArrowDeviceType::ROCM_HOST,
        ArrowDeviceType::OPENCL,
    ] {
        let error = register_waiter(device, UnsupportedWaiter).unwrap_err();
        assert_eq!(error.code(), libc::EINVAL);
        assert!(!unregister_waiter(device));
    }
}

/// This process has loaded no stand-in.
#[test]
#[cfg_attr(miri, ignore = "loads a library")]
fn missing_library_error_names_library() {
    // SAFETY: loading a vendor's library is safe in any program.
    if unsafe { libloading::Library::new("libcuda.so.1") }.is_ok() {
        return eprintln!("this machine has CUDA");
    }
    let mut handle = 1_usize;
    let device = ArrowDeviceType::CUDA;
    let awaited = array(device, (&raw mut handle).cast());
    let mut plain = array(device, std::ptr::null_mut());
    let stream = Stream::legacy(device);
    for error in [
        awaited.synchronize().unwrap_err(),
        awaited.wait_on(&stream).unwrap_err(),
        awaited.is_ready().unwrap_err(),
        plain.export_with_event(&stream).unwrap_err(),
        plain.release_after(&stream).unwrap_err(),
    ] {
        assert_eq!(error.code(), libc::ENOENT, "{error}");
        for part in [
            "CUDA driver API: cannot load libcuda.so.1, libcuda.so; hint: ",
            "cannot open",
        ] {
            assert!(error.message().contains(part), "{error}");
        }
    }
}
