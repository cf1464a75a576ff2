// SPDX-License-Identifier: Apache-2.0

//! Every case of the hostile peer that concerns streams.

use fletching::{
    Array, ArrayStream, DeviceArray, DeviceArrayStream, Error, Options, Owner, RawStream,
};

use crate::hostile::{each, schema, Case, Message, Party, Peer, TOLERATED};

/// Everything that the reader returns is kept until the stream is released.
fn read_all<S: RawStream>(stream: Owner<S>, options: Options) -> Result<usize, Error> {
    let mut reader = stream.reader(options);
    reader.schema()?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next() {
        match batch {
            Ok(batch) => batches.push(batch),
            Err(error) => {
                // Over from here on, whatever the stream would return.
                assert!(reader.next().is_none() && reader.schema().is_err());
                return Err(error);
            }
        }
    }
    assert!(reader.next().is_none());
    drop(reader);
    Ok(batches.len())
}

fn check(case: &Case, read: Result<usize, Error>) {
    case.check(read.as_ref().err());
    if let Ok(batches) = read {
        assert_eq!(
            batches,
            if case.is("stream.empty") { 0 } else { 3 },
            "{:?}",
            case.name
        );
    }
}

fn open(peer: &Peer, case: &Case) -> ArrayStream {
    let mut stream = ArrayStream::default();
    // SAFETY: a case of the peer, which fills the slot.
    unsafe {
        assert_eq!(
            (peer.stream)(case.name.as_ptr(), stream.out(), std::ptr::null_mut()),
            0
        )
    };
    stream
}

fn open_device(peer: &Peer, case: &Case) -> DeviceArrayStream {
    let mut stream = DeviceArrayStream::default();
    let (name, out) = (case.name.as_ptr(), stream.out());
    // SAFETY: as above.
    unsafe { assert_eq!((peer.device_stream)(name, out, std::ptr::null_mut()), 0) };
    stream
}

#[test]
fn streams_are_read_as_the_catalogue_says() {
    each(Party::Stream, |peer, case| {
        check(case, read_all(open(peer, case), Options::default()));
        check(case, read_all(open_device(peer, case), Options::default()));
    });
    each(Party::DeviceStream, |peer, case| {
        check(case, read_all(open_device(peer, case), Options::default()));
    });
}

/// What was tolerated is refused, with its rule.
#[test]
fn strict_refuses_what_is_tolerated() {
    let mut tolerated = 0;
    each(Party::DeviceStream, |peer, case| {
        if case.outcome != TOLERATED {
            return;
        }
        tolerated += 1;
        let error = read_all(open_device(peer, case), Options::strict()).unwrap_err();
        assert!(
            error.message().contains("(rule "),
            "{:?}: {error}",
            case.name
        );
    });
    assert!(tolerated > 0);
}

#[test]
fn streams_are_released_unread() {
    each(Party::Stream, |peer, case| {
        drop(open(peer, case));
        drop(open(peer, case).into_iter());
        drop(open_device(peer, case).into_iter());
    });
}

/// There and back: our stream over the peer's stream has the same result.
#[test]
fn streams_pass_through_ours() {
    each(Party::Stream, |peer, case| {
        let good = schema(peer, c"schema.good");
        let through = ArrayStream::from_batches(good, open(peer, case)).unwrap();
        let read = read_all(through, Options::default());
        // A schema that fails is not asked for here, nor one that is NULL.
        if !case.name.to_str().unwrap().contains("schema") {
            check(case, read);
        }
    });
}

#[test]
fn streams_of_ours_survive_rude_consumers() {
    each(Party::StreamConsumer, |peer, case| {
        let batches = || (0..3).map(|_| Ok(Array::from(vec![1_i32, 2, 3])));
        let good = || fletching::SchemaBuilder::new("i").build().unwrap();
        let mut message = Message::new();
        let mut plain = ArrayStream::from_batches(good(), batches())
            .unwrap()
            .into_raw();
        let device = batches().map(|batch| batch.map(DeviceArray::from));
        let device =
            DeviceArrayStream::from_batches(good(), fletching::ArrowDeviceType::CPU, device);
        let mut device = device.unwrap().into_raw();
        let name = case.name.as_ptr();
        // SAFETY: streams of ours, which are moved in.
        unsafe {
            let code = (peer.consume_stream)(name, 3, &mut plain, &mut message);
            assert_eq!(code, 0, "{:?}: {}", case.name, message.text());
            let code = (peer.consume_device_stream)(name, 3, &mut device, &mut message);
            assert_eq!(code, 0, "{:?}: {}", case.name, message.text());
        }
    });
}
