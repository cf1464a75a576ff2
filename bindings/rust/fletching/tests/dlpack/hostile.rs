// SPDX-License-Identifier: Apache-2.0

//! DLPack tensors of the hostile peer (tests/hostile): each is imported or refused as the catalogue
//! says, whatever is asked for, and its deleter is called once.

use std::ffi::{c_char, c_int, CStr, CString};
use std::ptr;

use fletching::abi::{DLManagedTensor, DLManagedTensorVersioned};
use fletching::dlpack::{from_dlpack, ManagedTensor, Tensor};

use crate::imported::*;

fletching_testing::library! {
    /// The peer.
    pub struct Peer from "fletching_hostile" {
        count = FletchingHostileCaseCount() -> i32;
        name = FletchingHostileCaseName(i32) -> *const c_char;
        party = FletchingHostileCaseParty(i32) -> i32;
        outcome = FletchingHostileCaseOutcome(i32) -> i32;
        versioned = FletchingHostileExportTensor(
            *const c_char, *mut *mut DLManagedTensorVersioned, *mut c_char) -> c_int;
        legacy = FletchingHostileExportLegacyTensor(
            *const c_char, *mut *mut DLManagedTensor, *mut c_char) -> c_int;
        finish = FletchingHostileFinish(*mut c_char) -> c_int;
    }
}

const TENSOR: i32 = 9;
const VERSIONED_TENSOR: i32 = 10;
const ACCEPTED: i32 = 1;
const REFUSED: i32 = 2;

type Export<M> = unsafe extern "C" fn(*const c_char, *mut *mut M, *mut c_char) -> c_int;

fn play<M: ManagedTensor>(peer: &Peer, name: &CStr, outcome: i32, export: Export<M>) {
    let all = copies().as_storage(true);
    for options in [shared(), lists(), copies(), all] {
        let mut raw = ptr::null_mut();
        // SAFETY: the case is one of the catalogue, and the tensor is the test's.
        let tensor = unsafe {
            assert_eq!(export(name.as_ptr(), &mut raw, ptr::null_mut()), 0);
            Tensor::from_raw(raw).unwrap()
        };
        match from_dlpack(tensor, &options) {
            Ok(imported) => {
                assert_ne!(outcome, REFUSED, "{name:?}");
                if outcome == ACCEPTED {
                    check_values(name, &imported);
                }
                // The schema is released first, the memory last and on another thread.
                drop(imported.schema);
                std::thread::spawn(|| drop(imported.array)).join().unwrap();
            }
            Err(error) => {
                assert_ne!(outcome, ACCEPTED, "{name:?}: {error}");
                assert!(!error.message().is_empty() && error.code() > 0);
            }
        }
        let mut message = [0 as c_char; 1024];
        // SAFETY: the message has so many bytes.
        let (code, text) = unsafe {
            let code = (peer.finish)(message.as_mut_ptr());
            (code, CStr::from_ptr(message.as_ptr()))
        };
        assert_eq!(code, 0, "{name:?}: {text:?}");
    }
}

/// What was accepted is 1, 2, 3 or the beginning of it.
fn check_values(name: &CStr, imported: &fletching::dlpack::Imported) {
    let length = match name.to_bytes() {
        b"tensor.empty" => 0,
        b"tensor.scalar" => 1,
        _ => 3,
    };
    assert_eq!(leaf(imported).0, length, "{name:?}");
    if imported.array.device_type() == fletching::ArrowDeviceType::CPU && length > 0 {
        assert_eq!(integers(imported), [1, 2, 3][..length as usize], "{name:?}");
    }
}

#[test]
fn tensors_of_the_hostile_peer_are_imported_or_refused() {
    let peer = Peer::load().unwrap();
    let mut played = 0;
    // SAFETY: any index may be asked for.
    unsafe {
        for index in 0..(peer.count)() {
            let party = (peer.party)(index);
            if ![TENSOR, VERSIONED_TENSOR].contains(&party) {
                continue;
            }
            let name = CString::from(CStr::from_ptr((peer.name)(index)));
            let outcome = (peer.outcome)(index);
            play(&peer, &name, outcome, peer.versioned);
            if party == TENSOR {
                play(&peer, &name, outcome, peer.legacy);
            }
            played += 1;
        }
    }
    assert!(played > 40, "{played}");
}
