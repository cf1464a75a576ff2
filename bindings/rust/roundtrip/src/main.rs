// SPDX-License-Identifier: Apache-2.0

//! Every case of the reference producer through Rust and back: arrays, streams, failing streams.
//! Prints progress to stdout and one line per failure to stderr; exits with 1 after any failure.

mod producer;

use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;

use fletching_abi::{ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema};
use fletching_testing::cells::{Subject, Tally};
use fletching_transit_rust::describe::{describe, require_same_text};
use fletching_transit_rust::error::{guard, Error};
use fletching_transit_rust::forward::{exported, forward_array, forward_tree, released};
use fletching_transit_rust::owned::Owned;
use fletching_transit_rust::stream::forward_stream;

use producer::Producer;

const BACKEND: &str = "cpu";
/// Three batches; the failing stream fails before the third.
const BATCHES: i64 = 3;
const FAIL_AT: i64 = 2;

fn main() -> ExitCode {
    let mut problems = Vec::new();
    match Producer::load() {
        Ok(producer) => run(&producer, &mut problems),
        Err(problem) => problems.push(problem),
    }
    for problem in &problems {
        eprintln!("rust: {problem}");
    }
    ExitCode::from(u8::from(!problems.is_empty()))
}

fn run(producer: &Producer, problems: &mut Vec<String>) {
    let cases = producer.cases();
    if cases.is_empty() {
        problems.push("the producer has no cases".into());
    }
    for case in &cases {
        for direction in ["array", "stream", "stream_failure"] {
            let tally = run_case(producer, case, direction);
            let verdict = if tally.is_good() { "ok" } else { "FAILED" };
            println!("{case} {direction}: {} checks, {verdict}", tally.asserted);
            tally.report(Subject::Case(case, BACKEND), direction);
            problems.extend(
                tally
                    .problems
                    .iter()
                    .map(|p| format!("{case} {direction}: {p}")),
            );
        }
    }
}

fn run_case(producer: &Producer, case: &str, direction: &str) -> Tally {
    let mut tally = Tally::default();
    let before = [exported(), released()];
    producer.reset_counters();
    let outcome = guard(|| match direction {
        "array" => pass_array(producer, case, &mut tally),
        "stream" => pass_stream(producer, case, -1, &mut tally),
        _ => pass_stream(producer, case, FAIL_AT, &mut tally),
    });
    tally.check(outcome.map_err(|error| error.to_string()));
    check_at_rest(producer, before, &mut tally);
    tally
}

fn pass_array(producer: &Producer, case: &str, tally: &mut Tally) -> Result<(), Error> {
    let (mut schema, mut array) = (Owned::zeroed(), Owned::zeroed());
    producer.export_array(BACKEND, case, &mut schema, &mut array)?;
    // SAFETY: the producer filled both, and `describe` checks them.
    let (schema_back, array_back) = unsafe {
        let text = describe(&schema, &array)?;
        let same = require_same_text(&text, &producer.describe(case)?);
        tally.check(same.map_err(|error| error.to_string()));
        let moved = (Owned::take(&mut *schema), Owned::take(&mut *array));
        (forward_tree(moved.0), forward_array(moved.1))
    };
    let moved = [schema.is_released(), array.is_released()];
    tally.equal(
        "the sources' being released after the move",
        moved,
        [true, true],
    );
    let verified = producer.verify_array(BACKEND, case, &schema_back, &array_back);
    tally.check(verified.map_err(|error| error.to_string()));
    Ok(())
}

fn pass_stream(
    producer: &Producer,
    case: &str,
    fail_at: i64,
    tally: &mut Tally,
) -> Result<(), Error> {
    let mut stream = Owned::zeroed();
    producer.export_stream(BACKEND, case, BATCHES, fail_at, &mut stream)?;
    let expected = producer.describe(case)?;
    let seen = Rc::new(Cell::new(0));
    let counter = Rc::clone(&seen);
    let inspect = move |schema: &ArrowSchema, array: &ArrowDeviceArray| {
        counter.set(counter.get() + 1);
        // SAFETY: the producer filled both, and `describe` checks them.
        require_same_text(&unsafe { describe(schema, array) }?, &expected)
    };
    // SAFETY: the producer filled the stream.
    let back: Owned<ArrowDeviceArrayStream> =
        unsafe { forward_stream(Owned::take(&mut *stream), Box::new(inspect))? };
    tally.equal(
        "the source's being released after the move",
        stream.is_released(),
        true,
    );
    let verified = producer.verify_stream(BACKEND, case, BATCHES, fail_at, back);
    tally.check(verified.map_err(|error| error.to_string()));
    let batches = if fail_at < 0 { BATCHES } else { fail_at };
    tally.equal("the number of batches described", seen.get(), batches);
    Ok(())
}

/// Everything that was given out has come back, on both sides, and just once.
fn check_at_rest(producer: &Producer, before: [usize; 2], tally: &mut Tally) {
    let ours = [exported() - before[0], released() - before[1]];
    tally.releases = ours[1] as u64;
    tally.equal(
        "structs exported by Rust, more than none",
        ours[0] > 0,
        true,
    );
    tally.equal("release callbacks of Rust", ours[1], ours[0]);
    let counters = producer.counters();
    tally.equal(
        "the producer's live allocations",
        counters.live_allocations,
        0,
    );
    tally.equal("the producer's live schemas", counters.live_schemas, 0);
    tally.equal("the producer's live arrays", counters.live_arrays, 0);
    tally.equal("the producer's live streams", counters.live_streams, 0);
    tally.equal(
        "structs exported by the producer, more than none",
        counters.exported > 0,
        true,
    );
    tally.equal(
        "structs released by the producer",
        counters.released,
        counters.exported,
    );
    tally.equal("double releases", counters.double_released, 0);
}
