// SPDX-License-Identifier: Apache-2.0

//! The parameters of arrow.fixed_shape_tensor.

use libc::EINVAL;

use crate::support::*;

#[test]
fn tensor_parameters_are_read() {
    let with = |text: &str| {
        Data::list(6, 2, Data::new("i", 12)).extension("arrow.fixed_shape_tensor", text)
    };
    let read = |text: &str| shape(with(text).exported(options()).tensor().unwrap());
    assert_eq!(
        read(r#" { "x" : {"a":[1,{}]}, "shape" : [ 2 , 3 ] } "#),
        [2, 2, 3]
    );
    assert_eq!(
        read(r#"{"shape":[6],"permutation":null,"dim_names":null}"#),
        [2, 6]
    );
    for text in [
        "",
        "{",
        "{}",
        "[]",
        "null",
        "7",
        r#"{"shape":[]}"#,
        r#"{"shape":[6})"#,
        r#"{"shape":[-6]}"#,
        r#"{"shape":[6.5]}"#,
        r#"{"shape":["6"]}"#,
        r#"{"shape":6}"#,
        r#"{"shape":[6]} x"#,
        r#"{"shape":[6],}"#,
        r#"{"shape":[99999999999999999999]}"#,
        r#"{"shape":[6],"x":"}"#,
        r#"{"shape":[18446744073709551615]}"#,
        r#"{"shape":[4294967296,4294967296]}"#,
        r#"{"shape":[2,3],"permutation":[0]}"#,
        r#"{"shape":[2,3],"permutation":[0,0]}"#,
        r#"{"shape":[2,3],"permutation":[0,2]}"#,
        r#"{"shape":[2,3],"permutation":[0,-1]}"#,
    ] {
        assert_eq!(with(text).refused(options()).code(), EINVAL, "{text}");
    }
    let scalar = Data::list(1, 2, Data::new("i", 2));
    let scalar = scalar.extension("arrow.fixed_shape_tensor", r#"{"shape":[]}"#);
    assert_eq!(scalar.refused(options()).code(), EINVAL);
    let deep = format!("{{\"x\":{}", "[".repeat(100_000));
    assert_eq!(with(&deep).refused(options()).code(), EINVAL);
    let other = with(r#"{"shape":[2,2]}"#).refused(options());
    mentions(&other, "got 6");
}
