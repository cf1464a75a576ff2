// SPDX-License-Identifier: Apache-2.0

//! Compares the crate's declarations of the core with bindgen's output for the core's header.

#[path = "../../fletching/src/c_core/declarations.rs"]
mod ours;

#[allow(
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    reason = "bindgen wrote it"
)]
mod structs {
    include!(concat!(env!("OUT_DIR"), "/core_structs.rs"));
}

#[allow(
    dead_code,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    clippy::all,
    reason = "bindgen wrote it"
)]
mod functions {
    use super::ours::*;
    use fletching_abi::*;
    include!(concat!(env!("OUT_DIR"), "/core_functions.rs"));
}

/// Compares size and alignment, and offset and size of every field.
macro_rules! assert_structs {
    ($($name:ident { $($field:ident)* })*) => {$(
        let layout = (size_of::<ours::$name>(), align_of::<ours::$name>());
        let expected = (size_of::<structs::$name>(), align_of::<structs::$name>());
        assert_eq!(layout, expected, stringify!($name));
        // Does not compile if either side has another field.
        let _ = |ours::$name { $($field: _),* }| ();
        let _ = |structs::$name { $($field: _),* }| ();
        $(
            let name = concat!(stringify!($name), ".", stringify!($field));
            let offset = std::mem::offset_of!(ours::$name, $field);
            assert_eq!(offset, std::mem::offset_of!(structs::$name, $field), "{name}");
            let size = super::size_of_field(|object: &ours::$name| &object.$field);
            let expected = super::size_of_field(|object: &structs::$name| &object.$field);
            assert_eq!(size, expected, "{name}");
        )*
    )*};
}

#[test]
fn structs_equal_the_header() {
    assert_structs! {
        FletchingMessage { text }
        FletchingStream { handle device_id context runtime }
        FletchingVulkanWaitContext { device producer_queue queue set_stages get_device_proc_addr }
        FletchingReleaseCounts { pending refused running leaked inherited_events }
        FletchingWaiter { synchronize wait_on ready context }
        FletchingTensorStream { stream ordering }
    }
    macro_rules! assert_constants {
        ($($name:ident)*) => {$(
            assert_eq!(ours::$name as u32, structs::$name, stringify!($name));
        )*};
    }
    assert_constants! {
        FLETCHING_CAPTURE_REFUSE FLETCHING_CAPTURE_EXTERNAL_EVENT FLETCHING_CAPTURE_KEEP
        FLETCHING_ORDER_NOTHING FLETCHING_ORDER_HOST FLETCHING_ORDER_STREAM
        FLETCHING_TENSOR_DIMENSIONS FLETCHING_TENSOR_AS_STORAGE
        FLETCHING_TENSOR_WRITABLE FLETCHING_TENSOR_COPIED FLETCHING_TENSOR_IGNORE_NULLS
        FLETCHING_TENSOR_EVENT_HANDLED FLETCHING_TENSOR_ALIGNED FLETCHING_TENSOR_LISTS
        FLETCHING_TENSOR_COPY FLETCHING_TENSOR_NO_READS
    }
}

/// Compiles only if both functions of a pair have the same type.
#[test]
fn functions_equal_the_header() {
    macro_rules! assert_functions {
        ($($name:ident)*) => {$(let _ = [ours::$name, functions::$name];)*};
    }
    assert_functions! {
        DeviceArrayExportWithEvent DeviceArrayReady DeviceArrayReadyVulkan DeviceArrayReleaseAfter
        DeviceArraySynchronize DeviceArraySynchronizeVulkan DeviceArrayWaitOn
        DeviceArrayWaitOnVulkan ExchangeAllocate ExchangeFind ExchangeWorkStream LegacyTensorExport
        LegacyTensorImport PendingReleases RegisterWaiter TensorAllocate TensorCreate TensorExport
        TensorImport TensorStreamRead UnregisterWaiter
    }
}
