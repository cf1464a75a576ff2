// SPDX-License-Identifier: Apache-2.0

//! The checks of the CUDA Array Interface. The C++ tests have the same cases.

use fletching::cuda_array_interface::{Interface, Severity, Violation};

fn floats(shape: &[i64]) -> Interface {
    Interface {
        shape: shape.to_vec(),
        typestr: "<f4".into(),
        pointer: 4096,
        ..Interface::default()
    }
}

#[track_caller]
fn violation(array: &Interface) -> Violation {
    let violations = array.check();
    assert_eq!(violations.len(), 1, "{violations:?}");
    violations.into_iter().next().unwrap()
}

#[track_caller]
fn breaks(array: &Interface, rule: &str, found: &str) {
    let violation = violation(array);
    assert_eq!(violation.rule, format!("cuda-array-interface.{rule}"));
    assert_eq!(violation.found, found);
    assert!(!violation.hint.is_empty());
}

fn kept(array: &Interface) {
    assert_eq!(array.check(), []);
}

#[test]
fn check_accepts_valid_descriptions() {
    kept(&floats(&[]));
    kept(&floats(&[2, 3]));
    for version in 0..=3 {
        kept(&Interface {
            version,
            ..floats(&[2])
        });
    }
    kept(&Interface {
        read_only: true,
        stream: Some(1),
        ..floats(&[2])
    });
    kept(&Interface {
        strides: Some(vec![-4, 0]),
        ..floats(&[2, 3])
    });
    kept(&Interface {
        pointer: 0,
        ..floats(&[2, 0])
    });
}

#[test]
fn shape_is_checked() {
    breaks(&floats(&[2, -1]), "shape-sizes", "-1");
}

#[test]
fn type_string_is_checked() {
    let of = |typestr: &str| Interface {
        typestr: typestr.into(),
        ..floats(&[2])
    };
    breaks(&of("f4"), "typestr-grammar", "'f4'");
    breaks(&of("|f4"), "typestr-order", "'|f4'");
    breaks(&of("<f3"), "typestr-size", "'<f3'");
    assert_eq!(violation(&of("<f3")).severity, Severity::Warning);
    kept(&of("|i1"));
    kept(&of("|V3"));
    breaks(&of("<\n"), "typestr-grammar", "'<?'");
    let long = "x".repeat(50);
    breaks(
        &of(&long),
        "typestr-grammar",
        &format!("'{}...'", &long[..40]),
    );
}

#[test]
fn type_strings_are_parsed() {
    let of = |typestr: &str, pointer| Interface {
        typestr: typestr.into(),
        pointer,
        ..floats(&[])
    };
    kept(&of("|b1", u64::MAX));
    // The last byte of an element is the last addressable byte.
    for (typestr, bytes) in [
        ("<f4", 4),
        (">c16", 16),
        ("|t12", 2),
        ("<U3", 12),
        ("|O", 8),
        ("<M8", 8),
        ("<M8[ns]", 8),
        ("<m8[25s]", 8),
        ("|V2147483647", 2_147_483_647),
    ] {
        kept(&of(typestr, u64::MAX - bytes + 1));
        let beyond = of(typestr, u64::MAX - bytes + 2);
        assert_eq!(violation(&beyond).key, "data", "{typestr}");
    }
    for typestr in [
        "",
        "<",
        "f4",
        "<f",
        "<x4",
        "=f4",
        "<f04",
        "<f4 ",
        "<f4[s]",
        "<M8[]",
        "<M8[0s]",
        "<M8[025s]",
        "<M8[x]",
        "<M8[s",
        "<M8[1234567890s]",
        "<M8s]",
        "|V2147483648",
        "|V99999999999",
        "<U536870912",
        "<é4",
        "é",
    ] {
        let rule = violation(&of(typestr, 4096)).rule;
        assert_eq!(rule, "cuda-array-interface.typestr-grammar", "{typestr}");
    }
}

#[test]
fn pointer_is_checked() {
    breaks(
        &Interface {
            pointer: 0,
            ..floats(&[2])
        },
        "data-pointer",
        "0",
    );
    breaks(&floats(&[0]), "data-zero-size", "4096");
    kept(&Interface {
        version: 1,
        ..floats(&[0])
    });
    // Elements without bytes need no memory.
    kept(&Interface {
        pointer: 0,
        typestr: "|V0".into(),
        ..floats(&[2])
    });
}

#[test]
fn extent_is_checked() {
    const OUTSIDE: &str = "elements outside of the address space";
    let at = |pointer, shape: &[i64], strides: &[i64]| Interface {
        pointer,
        strides: Some(strides.to_vec()),
        ..floats(shape)
    };
    breaks(&floats(&[i64::MAX, 4]), "data-extent", OUTSIDE);
    breaks(
        &floats(&[i64::MAX, i64::MAX, i64::MAX]),
        "data-extent",
        OUTSIDE,
    );
    kept(&Interface {
        pointer: u64::MAX - 7,
        ..floats(&[2])
    });
    breaks(
        &Interface {
            pointer: u64::MAX - 6,
            ..floats(&[2])
        },
        "data-extent",
        OUTSIDE,
    );
    kept(&at(4, &[2], &[-4]));
    breaks(&at(3, &[2], &[-4]), "data-extent", OUTSIDE);
    breaks(
        &at(4096, &[i64::MAX; 3], &[i64::MIN; 3]),
        "data-extent",
        OUTSIDE,
    );
    breaks(&at(4096, &[3], &[i64::MAX]), "data-extent", OUTSIDE);
    // Strides that are never used.
    kept(&at(4096, &[1, 0], &[i64::MIN, 1]).with_pointer(0));
    kept(&at(4096, &[1], &[i64::MIN]));
}

trait WithPointer {
    fn with_pointer(self, pointer: u64) -> Self;
}

impl WithPointer for Interface {
    fn with_pointer(self, pointer: u64) -> Self {
        Self { pointer, ..self }
    }
}

#[test]
fn version_is_checked() {
    for version in [-1, 4, i64::MIN] {
        let unknown = Interface {
            version,
            ..floats(&[2])
        };
        breaks(&unknown, "version-known", &version.to_string());
        assert_eq!(violation(&unknown).severity, Severity::Warning);
        // The rules of the newest version apply.
        let zero = Interface {
            stream: Some(0),
            ..unknown
        };
        assert_eq!(zero.check().len(), 2);
    }
    let mask = Some(Box::new(floats(&[2])));
    let old = Interface {
        version: 0,
        mask: mask.clone(),
        stream: Some(0),
        ..floats(&[2])
    };
    breaks(&old, "version-keys", "mask, stream in version 0");
    let old = Interface {
        version: 0,
        mask,
        ..floats(&[2])
    };
    breaks(&old, "version-keys", "mask in version 0");
    let old = Interface {
        version: 2,
        stream: Some(1),
        ..floats(&[2])
    };
    breaks(&old, "version-keys", "stream in version 2");
}

#[test]
fn strides_length_is_checked() {
    let wrong = Interface {
        strides: Some(vec![4]),
        ..floats(&[2, 3])
    };
    breaks(&wrong, "strides-length", "1 strides, 2 dimensions");
}

#[test]
fn stream_is_checked() {
    breaks(
        &Interface {
            stream: Some(0),
            ..floats(&[2])
        },
        "stream-zero",
        "0",
    );
    breaks(
        &Interface {
            stream: Some(-1),
            ..floats(&[2])
        },
        "stream-handle",
        "-1",
    );
    kept(&Interface {
        stream: Some(2),
        ..floats(&[2])
    });
}

#[test]
fn mask_is_checked() {
    let masked = |mask: Interface, shape: &[i64]| Interface {
        mask: Some(Box::new(mask)),
        ..floats(shape)
    };
    for shape in [&[][..], &[3], &[1], &[2, 3], &[1, 3], &[2, 1]] {
        kept(&masked(floats(shape), &[2, 3]));
    }
    let found = "a mask of shape (2) for shape (2, 3)";
    breaks(&masked(floats(&[2]), &[2, 3]), "mask-shape", found);
    let found = "a mask of shape (1, 2, 3) for shape (2, 3)";
    breaks(&masked(floats(&[1, 2, 3]), &[2, 3]), "mask-shape", found);
    let found = "a mask of shape (2, 2, 2, 2, 2, 2, 2, 2, ...) for shape ()";
    breaks(&masked(floats(&[2; 9]), &[]), "mask-shape", found);
    let old = Interface {
        version: 1,
        ..masked(floats(&[2]), &[3])
    };
    assert_eq!(violation(&old).rule, "cuda-array-interface.mask-shape");
    let inner = Interface {
        stream: Some(0),
        ..floats(&[3])
    };
    let outer = masked(inner, &[3]);
    breaks(&outer, "stream-zero", "0");
    assert_eq!(violation(&outer).key, "mask.stream");
}

#[test]
fn mask_nesting_is_limited() {
    let nested = |depth| {
        (0..depth).fold(floats(&[1]), |mask, _| Interface {
            mask: Some(Box::new(mask)),
            ..floats(&[1])
        })
    };
    kept(&nested(4));
    breaks(
        &nested(5),
        "mask-nesting",
        "more than 4 masks within each other",
    );
    assert_eq!(violation(&nested(5)).key, "mask.mask.mask.mask.mask");
    assert_eq!(nested(50).check().len(), 1);
    // Deeper levels are not read.
    let mut deep = nested(5);
    let mut mask = &mut deep;
    for _ in 0..5 {
        mask = mask.mask.as_mut().unwrap();
    }
    mask.shape = vec![7];
    assert_eq!(deep.check().len(), 1);
}
