// SPDX-License-Identifier: Apache-2.0

//! DLPack types that Arrow lacks: each is imported as arrow.opaque and exported unchanged.

use fletching::abi::{
    DLDataType, DLDataTypeCode as Code, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED as PADDED,
    DLPACK_FLAG_BITMASK_READ_ONLY as READ_ONLY,
};
use fletching::dlpack::{from_dlpack, to_dlpack, to_legacy_dlpack, Access};
use libc::ENOTSUP;

use crate::import_support::*;
use crate::support::*;

/// Code, bits, lanes, flag; format, name.
const TYPES: &[(Code, u8, u16, u64, &str, &str)] = &[
    (Code::BFLOAT, 16, 1, 0, "S", "bfloat16"),
    (Code::COMPLEX, 32, 1, 0, "+w:2", "complex32"),
    (Code::COMPLEX, 64, 1, 0, "+w:2", "complex64"),
    (Code::COMPLEX, 128, 1, 0, "+w:2", "complex128"),
    (Code::FLOAT8_E3M4, 8, 1, 0, "C", "float8_e3m4"),
    (Code::FLOAT8_E4M3, 8, 1, 0, "C", "float8_e4m3"),
    (Code::FLOAT8_E4M3B11FNUZ, 8, 1, 0, "C", "float8_e4m3b11fnuz"),
    (Code::FLOAT8_E4M3FN, 8, 1, 0, "C", "float8_e4m3fn"),
    (Code::FLOAT8_E4M3FNUZ, 8, 1, 0, "C", "float8_e4m3fnuz"),
    (Code::FLOAT8_E5M2, 8, 1, 0, "C", "float8_e5m2"),
    (Code::FLOAT8_E5M2FNUZ, 8, 1, 0, "C", "float8_e5m2fnuz"),
    (Code::FLOAT8_E8M0FNU, 8, 1, 0, "C", "float8_e8m0fnu"),
    (Code::FLOAT6_E2M3FN, 6, 1, PADDED, "C", "float6_e2m3fn"),
    (Code::FLOAT6_E3M2FN, 6, 1, PADDED, "C", "float6_e3m2fn"),
    (Code::FLOAT4_E2M1FN, 4, 1, PADDED, "C", "float4_e2m1fn"),
    (Code::FLOAT6_E2M3FN, 6, 4, 0, "w:3", "float6_e2m3fn_x4"),
    (Code::FLOAT6_E3M2FN, 6, 4, 0, "w:3", "float6_e3m2fn_x4"),
    (Code::FLOAT4_E2M1FN, 4, 2, 0, "C", "float4_e2m1fn_x2"),
];

#[test]
fn types_missing_in_arrow_round_trip() {
    for &(code, bits, lanes, flags, format, name) in TYPES {
        let dtype = DLDataType { code, bits, lanes };
        let mut foreign = ForeignTensor::new(dtype, values(), &[2], &[]);
        foreign.flags = flags;
        let mut result = imported(&foreign, shared());
        let opaque = format!(r#"arrow.opaque{{"type_name":"{name}","vendor_name":"DLPack"}}"#);
        assert_eq!(parameters(&result.schema), of(format, &opaque));
        assert_eq!(result.array.length(), 2, "{name}");

        let again = to_dlpack(&result.schema, &mut result.array, &options()).unwrap();
        assert_eq!(again.dtype().unwrap(), dtype, "{name}");
        assert_eq!(again.shape().unwrap(), [2], "{name}");
        assert_eq!(again.flags().unwrap(), flags | READ_ONLY, "{name}");
        assert_eq!(again.data().unwrap().cast_const(), values(), "{name}");
    }
}

// The types and their storage types are known at compile time.
#[test]
fn opaque_storage_is_exported_on_request() {
    let bfloat = ForeignTensor::new(data_type(Code::BFLOAT, 16), values(), &[2], &[]);
    let mut result = imported(&bfloat, shared());
    let tensor = to_dlpack(&result.schema, &mut result.array, &as_storage()).unwrap();
    assert_eq!(tensor.dtype().unwrap(), data_type(Code::UINT, 16));
    let result = imported(&bfloat, storage());
    assert_eq!(parameters(&result.schema), of("S", ""));
    let complex = ForeignTensor::new(data_type(Code::COMPLEX, 64), values(), &[2], &[]);
    let result = imported(&complex, storage());
    assert_eq!(result.schema.format(), c"+w:2");
    assert_eq!(leaf(&result).0, 4);
}

#[test]
fn opaque_types_round_trip_in_tensor() {
    let dtype = data_type(Code::COMPLEX, 64);
    let foreign = ForeignTensor::new(dtype, values(), &[2, 3], &[3, 1]);
    let mut result = imported(&foreign, shared());
    let expected = r#"arrow.fixed_shape_tensor{"shape":[3]}"#;
    assert_eq!(parameters(&result.schema), of("+w:3", expected));
    let again = to_dlpack(&result.schema, &mut result.array, &options()).unwrap();
    assert_eq!(again.shape().unwrap(), [2, 3]);
    assert_eq!(again.dtype().unwrap(), dtype);
}

#[test]
fn opaque_type_of_other_vendor_is_rejected() {
    let parameters = r#"{"type_name":"bfloat16","vendor_name":"PostgreSQL"}"#;
    let data = Data::new("S", 2).extension("arrow.opaque", parameters);
    let error = data.refused(options());
    assert_eq!(error.code(), ENOTSUP);
    mentions(&error, "arrow.opaque");
    data.exported(as_storage());
}

// The legacy struct has no flag for padding.
#[test]
fn to_legacy_dlpack_rejects_padded_values() {
    let dtype = data_type(Code::FLOAT4_E2M1FN, 4);
    let mut foreign = ForeignTensor::new(dtype, values(), &[2], &[]);
    foreign.flags = PADDED;
    let mut result = imported(&foreign, shared());
    let writable = options().access(Access::Writable(exclusive()));
    let refused = to_legacy_dlpack(&result.schema, &mut result.array, &writable);
    assert_eq!(refused.unwrap_err().code(), ENOTSUP);
    assert!(!result.array.is_released());
    let packed = ForeignTensor::new(dtype, values(), &[2], &[]);
    mentions(
        &from_dlpack(packed.versioned(), &shared()).unwrap_err(),
        "packed",
    );
}
