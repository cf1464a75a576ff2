// SPDX-License-Identifier: Apache-2.0

//! The crate as two subjects: one returns views and reads the schemas, the other moves structs.

use std::ffi::{c_char, c_int, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

use fletching::abi::{
    ArrowArrayStream, ArrowAsyncDeviceStreamHandler, ArrowDeviceArray, ArrowDeviceArrayStream,
    ArrowSchema, DLManagedTensor, DLManagedTensorVersioned,
};
use fletching::{ArrowDeviceType, Error};
use fletching_testing::message::Message;

use crate::values;

pub type Connect = unsafe extern "C" fn(*mut c_void, *mut ArrowAsyncDeviceStreamHandler) -> c_int;

/// A function that takes a struct and returns another.
pub type Pass<In, Out> =
    unsafe extern "C" fn(*mut c_void, *mut In, *mut Out, *mut Message) -> c_int;

/// A function of an event and a stream.
pub type WithStream = Pass<ArrowDeviceArray, c_void>;

/// `struct FletchingSubject`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Subject {
    pub size: usize,
    pub name: *const c_char,
    pub context: *mut c_void,
    pub promises: u32,
    pub schema: Option<Pass<ArrowSchema, ArrowSchema>>,
    pub array: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut ArrowSchema,
            *mut ArrowDeviceArray,
            *mut ArrowSchema,
            *mut ArrowDeviceArray,
            *mut Message,
        ) -> c_int,
    >,
    pub child: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut ArrowSchema,
            *mut ArrowDeviceArray,
            i64,
            *mut ArrowDeviceArray,
            *mut Message,
        ) -> c_int,
    >,
    pub stream: Option<Pass<ArrowArrayStream, ArrowArrayStream>>,
    pub device_stream: Option<Pass<ArrowDeviceArrayStream, ArrowDeviceArrayStream>>,
    pub tensor: Option<Pass<DLManagedTensorVersioned, *mut DLManagedTensorVersioned>>,
    pub legacy_tensor: Option<Pass<DLManagedTensor, *mut DLManagedTensor>>,
    pub receive: Option<
        unsafe extern "C" fn(
            *mut c_void,
            Connect,
            *mut c_void,
            *mut ArrowDeviceArrayStream,
            *mut Message,
        ) -> c_int,
    >,
    pub send: Option<Pass<ArrowDeviceArrayStream, ArrowAsyncDeviceStreamHandler>>,
    pub synchronize:
        Option<unsafe extern "C" fn(*mut c_void, *mut ArrowDeviceArray, *mut Message) -> c_int>,
    pub is_ready: Option<Pass<ArrowDeviceArray, i32>>,
    pub wait_on: Option<WithStream>,
    pub export_with_event: Option<WithStream>,
    pub release_after: Option<WithStream>,
    pub use_vulkan: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *mut c_void,
            *mut c_void,
            u32,
            unsafe extern "C" fn(),
            *mut Message,
        ) -> c_int,
    >,
    pub register_waiter: Option<
        unsafe extern "C" fn(
            *mut c_void,
            ArrowDeviceType,
            *const ForeignWaiter,
            *mut Message,
        ) -> c_int,
    >,
    /// Used for traces only, which async_replay plays.
    pub producer: *const c_void,
    pub consumer: *const c_void,
}

/// `struct FletchingWaiter`
#[repr(C)]
pub struct ForeignWaiter {
    pub synchronize: unsafe extern "C" fn(*mut c_void, *mut c_void, i64, *mut Message) -> c_int,
    pub wait_on:
        unsafe extern "C" fn(*mut c_void, *mut c_void, i64, *mut c_void, *mut Message) -> c_int,
    pub ready:
        unsafe extern "C" fn(*mut c_void, *mut c_void, i64, *mut c_int, *mut Message) -> c_int,
    pub context: *mut c_void,
}

/// Runs `body`. Converts an error to its code and message, and a panic to an invalid code.
///
/// # Safety
///
/// `message` is NULL or valid for writes.
pub unsafe fn finish(message: *mut Message, body: impl FnOnce() -> Result<(), Error>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(body));
    let (code, text) = match &result {
        Ok(Ok(())) => (0, ""),
        Ok(Err(error)) => (error.code(), error.message()),
        Err(_) => (-1, "panic"),
    };
    // SAFETY: the caller guarantees that `message` is NULL or valid.
    if let Some(message) = unsafe { message.as_mut() } {
        message.write(text);
    }
    code
}

/// Converts an index. A negative or too large index becomes `usize::MAX`, which no child has.
fn place(index: i64) -> usize {
    index.try_into().unwrap_or(usize::MAX)
}

macro_rules! function {
    ($name:ident, |$($argument:ident: $type:ty),*| $body:expr) => {
        pub unsafe extern "C" fn $name(_: *mut c_void, $($argument: $type,)* message: *mut Message) -> c_int {
            // SAFETY: the suite moves structs in and passes slots for the results.
            unsafe { finish(message, || $body) }
        }
    };
}

mod views {
    use super::*;
    use fletching::{ArrayStream, DeviceArray, DeviceArrayStream, Schema};

    function!(schema, |from: *mut ArrowSchema, to: *mut ArrowSchema| {
        let view = values::view(Schema::move_from(from))?;
        values::read(&view)?;
        view.move_to(to);
        Ok(())
    });

    function!(
        array,
        |schema: *mut ArrowSchema,
         array: *mut ArrowDeviceArray,
         to_schema: *mut ArrowSchema,
         to_array: *mut ArrowDeviceArray| {
            let (schema, array) = (Schema::move_from(schema), DeviceArray::move_from(array));
            let _ = values::read_array(&array);
            values::view(array)?.move_to(to_array);
            schema.move_to(to_schema);
            Ok(())
        }
    );

    function!(child, |schema: *mut ArrowSchema,
                      array: *mut ArrowDeviceArray,
                      index: i64,
                      to: *mut ArrowDeviceArray| {
        drop(Schema::move_from(schema));
        let shared = DeviceArray::move_from(array).share()?;
        shared.column(place(index))?.move_to(to);
        Ok(())
    });

    function!(stream, |from: *mut ArrowArrayStream,
                       to: *mut ArrowArrayStream| {
        let mut reader = ArrayStream::move_from(from).into_iter();
        let schema = reader.schema()?;
        let views = reader.map(|batch| values::view(batch?));
        ArrayStream::from_batches(schema, views)?.move_to(to);
        Ok(())
    });

    function!(
        device_stream,
        |from: *mut ArrowDeviceArrayStream, to: *mut ArrowDeviceArrayStream| {
            let mut reader = DeviceArrayStream::move_from(from).into_iter();
            let (schema, device_type) = (reader.schema()?, reader.device_type());
            let views = reader.map(|batch| values::attached_view(batch?));
            DeviceArrayStream::from_batches(schema, device_type, views)?.move_to(to);
            Ok(())
        }
    );
}

mod moves {
    use super::*;
    use fletching::{Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema};

    function!(schema, |from: *mut ArrowSchema, to: *mut ArrowSchema| {
        Schema::move_from(from).move_to(to);
        Ok(())
    });

    function!(
        array,
        |schema: *mut ArrowSchema,
         array: *mut ArrowDeviceArray,
         to_schema: *mut ArrowSchema,
         to_array: *mut ArrowDeviceArray| {
            let (schema, mut array) = (Schema::move_from(schema), DeviceArray::move_from(array));
            array.attach(Box::new(1))?;
            array.move_to(to_array);
            schema.move_to(to_schema);
            Ok(())
        }
    );

    function!(child, |schema: *mut ArrowSchema,
                      array: *mut ArrowDeviceArray,
                      index: i64,
                      to: *mut ArrowDeviceArray| {
        drop(Schema::move_from(schema));
        DeviceArray::move_from(array)
            .take_child(place(index))?
            .move_to(to);
        Ok(())
    });

    // Round trip through a device stream.
    function!(stream, |from: *mut ArrowArrayStream,
                       to: *mut ArrowArrayStream| {
        let mut reader = ArrayStream::move_from(from).into_iter();
        let (schema, device_type) = (reader.schema()?, reader.device_type());
        let batches = reader.map(|batch| batch.map(DeviceArray::from));
        let stream = DeviceArrayStream::from_batches(schema, device_type, batches)?;
        let mut reader = stream.into_iter();
        let schema = reader.schema()?;
        let arrays = reader.map(|batch| Array::try_from(batch?));
        ArrayStream::from_batches(schema, arrays)?.move_to(to);
        Ok(())
    });

    function!(
        device_stream,
        |from: *mut ArrowDeviceArrayStream, to: *mut ArrowDeviceArrayStream| {
            let mut reader = DeviceArrayStream::move_from(from).into_iter();
            let (schema, device_type) = (reader.schema()?, reader.device_type());
            let batches = std::iter::from_fn(move || reader.next());
            DeviceArrayStream::from_batches(schema, device_type, batches)?.move_to(to);
            Ok(())
        }
    );
}

#[cfg(feature = "dlpack")]
mod tensors {
    use super::*;
    use fletching::dlpack::{from_dlpack, to_dlpack, to_legacy_dlpack, Tensor};

    /// `$import` and `$export` are the options.
    macro_rules! tensors {
        ($($name:ident: $type:ty, $to:ident, $import:expr, $export:expr;)*) => {$(
            function!($name, |from: *mut $type, to: *mut *mut $type| {
                let mut imported = from_dlpack(Tensor::from_raw(from)?, &$import)?;
                *to = $to(&imported.schema, &mut imported.array, &$export)?.into_raw();
                Ok(())
            });
        )*};
    }

    tensors! {
        tensor: DLManagedTensorVersioned, to_dlpack, Default::default(), values::export_options();
        legacy_tensor: DLManagedTensor, to_legacy_dlpack, Default::default(),
            values::export_options();
        copied_tensor: DLManagedTensorVersioned, to_dlpack, values::copy_options(),
            values::aligned_options();
        legacy_list_tensor: DLManagedTensor, to_legacy_dlpack, values::list_options(),
            values::storage_options();
    }
}

#[cfg(feature = "async")]
mod streams {
    use super::*;
    use fletching::{AsyncHandler, DeviceArrayStream};
    use std::ptr::NonNull;

    macro_rules! receive {
        ($name:ident, $window:literal) => {
            function!($name, |connect: Connect,
                              context: *mut c_void,
                              to: *mut ArrowDeviceArrayStream| {
                let connect = |handler: AsyncHandler| {
                    let handler = handler.into_raw();
                    match connect(context, handler) {
                        0 => Ok(()),
                        code => {
                            drop(AsyncHandler::from_raw(NonNull::new_unchecked(handler)));
                            Err(Error::new(code, "connect: no producer has the handler"))
                        }
                    }
                };
                values::receive($window, connect)?.move_to(to);
                Ok(())
            });
        };
    }

    receive!(receive, 2);
    receive!(receive_many, 16);

    function!(
        send,
        |from: *mut ArrowDeviceArrayStream, handler: *mut ArrowAsyncDeviceStreamHandler| {
            let mut reader = DeviceArrayStream::move_from(from).into_iter();
            let schema = reader.schema()?;
            let owner = AsyncHandler::from_raw(NonNull::new_unchecked(handler));
            // The producer releases a handler that it rejects.
            values::send(schema, reader, owner).inspect_err(|_| (*handler).release = None)
        }
    );
}

#[cfg(feature = "runtime")]
mod events {
    use super::*;
    use fletching::runtime::{Stream, SyncEvent, VulkanContext, Waiter};
    use fletching::DeviceArray;
    use std::ptr::null_mut;
    use std::sync::Mutex;

    static VULKAN: Mutex<Option<VulkanContext>> = Mutex::new(None);

    /// The suite's context for an array on Vulkan.
    fn vulkan(array: &DeviceArray) -> Option<VulkanContext> {
        let is_vulkan = array.device_type() == ArrowDeviceType::VULKAN;
        is_vulkan.then(|| VULKAN.lock().unwrap().expect("use_vulkan comes first"))
    }

    function!(
        use_vulkan,
        |device: *mut c_void,
         queue: *mut c_void,
         set_stages: u32,
         functions: unsafe extern "C" fn()| {
            let context = VulkanContext::new(device)
                .with_queues(queue, queue, set_stages)
                .with_device_functions(functions);
            *VULKAN.lock().unwrap() = Some(context);
            Ok(())
        }
    );

    struct Registered(&'static ForeignWaiter);

    // SAFETY: a waiter may be called on any thread.
    unsafe impl Send for Registered {}
    // SAFETY: as above.
    unsafe impl Sync for Registered {}

    fn result(code: c_int) -> Result<(), Error> {
        match code {
            0 => Ok(()),
            code => Err(Error::new(code, "the suite's waiter")),
        }
    }

    impl Waiter for Registered {
        fn synchronize(&self, event: &SyncEvent<'_>) -> Result<(), Error> {
            let (of, event, id) = (self.0, event.as_ptr(), event.device_id());
            // SAFETY: the event has the waiter's device type.
            result(unsafe { (of.synchronize)(of.context, event, id, null_mut()) })
        }

        fn wait_on(&self, event: &SyncEvent<'_>, stream: &Stream) -> Result<(), Error> {
            let (of, event, id) = (self.0, event.as_ptr(), event.device_id());
            // SAFETY: as above.
            result(unsafe { (of.wait_on)(of.context, event, id, stream.as_ptr(), null_mut()) })
        }

        fn is_ready(&self, event: &SyncEvent<'_>) -> Result<bool, Error> {
            let (of, event, id) = (self.0, event.as_ptr(), event.device_id());
            let mut ready = 0;
            // SAFETY: as above.
            let code = unsafe { (of.ready)(of.context, event, id, &mut ready, null_mut()) };
            result(code).map(|()| ready != 0)
        }
    }

    function!(
        register_waiter,
        |device_type: ArrowDeviceType, waiter: *const ForeignWaiter| {
            fletching::runtime::register_waiter(device_type, Registered(&*waiter))
        }
    );

    /// Moves an array in for a call, and back out.
    unsafe fn lend<T>(
        array: *mut ArrowDeviceArray,
        call: impl FnOnce(&mut DeviceArray) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // SAFETY: the suite passes an array.
        let mut owner = unsafe { DeviceArray::move_from(array) };
        let result = call(&mut owner);
        // SAFETY: as above.
        unsafe { owner.move_to(array) };
        result
    }

    fn stream(array: &DeviceArray, handle: *mut c_void) -> Stream {
        // SAFETY: the suite passes a stream of the array's device.
        unsafe { Stream::from_raw(array.device_type(), handle) }
    }

    function!(synchronize, |array: *mut ArrowDeviceArray| {
        lend(array, |array| match vulkan(array) {
            Some(context) => array.synchronize_vulkan(&context),
            None => array.synchronize(),
        })
    });

    function!(is_ready, |array: *mut ArrowDeviceArray, ready: *mut i32| {
        let is_ready = lend(array, |array| match vulkan(array) {
            Some(context) => array.is_ready_vulkan(&context),
            None => array.is_ready(),
        });
        *ready = is_ready?.into();
        Ok(())
    });

    function!(wait_on, |array: *mut ArrowDeviceArray,
                        handle: *mut c_void| {
        lend(array, |array| match vulkan(array) {
            Some(context) => array.wait_on_vulkan(&context, handle),
            None => array.wait_on(&stream(array, handle)),
        })
    });

    function!(
        export_with_event,
        |array: *mut ArrowDeviceArray, handle: *mut c_void| {
            lend(array, |array| {
                array.export_with_event(&stream(array, handle))
            })
        }
    );

    function!(
        release_after,
        |array: *mut ArrowDeviceArray, handle: *mut c_void| {
            let array = DeviceArray::move_from(array);
            let stream = stream(&array, handle);
            array.release_after(&stream)
        }
    );
}

const CHECKS_SCHEMAS: u32 = 1;

/// Returns a function of a feature, or None if it is disabled.
macro_rules! of {
    ($feature:literal, $function:path) => {{
        #[cfg(feature = $feature)]
        let function: Option<_> = Some($function as _);
        #[cfg(not(feature = $feature))]
        let function = None;
        function
    }};
}

pub fn subjects() -> [Subject; 2] {
    let views = Subject {
        size: size_of::<Subject>(),
        name: c"rust".as_ptr(),
        context: std::ptr::null_mut(),
        promises: CHECKS_SCHEMAS,
        schema: Some(views::schema),
        array: Some(views::array),
        child: Some(views::child),
        stream: Some(views::stream),
        device_stream: Some(views::device_stream),
        tensor: of!("dlpack", tensors::tensor),
        legacy_tensor: of!("dlpack", tensors::legacy_tensor),
        receive: of!("async", streams::receive),
        send: of!("async", streams::send),
        synchronize: of!("runtime", events::synchronize),
        is_ready: of!("runtime", events::is_ready),
        wait_on: of!("runtime", events::wait_on),
        export_with_event: of!("runtime", events::export_with_event),
        release_after: of!("runtime", events::release_after),
        use_vulkan: of!("runtime", events::use_vulkan),
        register_waiter: of!("runtime", events::register_waiter),
        producer: std::ptr::null(),
        consumer: std::ptr::null(),
    };
    let moves = Subject {
        name: c"rust-moves".as_ptr(),
        promises: 0,
        schema: Some(moves::schema),
        array: Some(moves::array),
        child: Some(moves::child),
        stream: Some(moves::stream),
        device_stream: Some(moves::device_stream),
        tensor: of!("dlpack", tensors::copied_tensor),
        legacy_tensor: of!("dlpack", tensors::legacy_list_tensor),
        receive: of!("async", streams::receive_many),
        ..views
    };
    [views, moves]
}
