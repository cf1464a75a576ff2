// SPDX-License-Identifier: Apache-2.0

//! Every case of the reference producer through Rust and back: arrays, streams, failing streams.
//! Prints progress to stdout and one line per failure to stderr; exits with 1 after any failure.

use std::process::ExitCode;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::Arc;

use fletching::{DeviceArray, Error, Schema};
use fletching_testing::cells::{Subject, Tally};
use fletching_transit_rust::dump::dump;
use fletching_transit_rust::producer::Producer;
use fletching_transit_rust::reexport::{exported, reexport, reexport_stream, released};

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
    let outcome = match direction {
        "array" => pass_array(producer, case, &mut tally),
        "stream" => pass_stream(producer, case, -1, &mut tally),
        _ => pass_stream(producer, case, FAIL_AT, &mut tally),
    };
    tally.check(outcome.map_err(|error| error.to_string()));
    check_at_rest(producer, before, &mut tally);
    tally
}

fn check_dump(producer: &Producer, schema: &Schema, array: &DeviceArray) -> Result<i64, Error> {
    let lines = producer.verify_dump(&dump(schema, array)?)?;
    if lines < 1 {
        return Err(Error::new(libc::EBADMSG, "the dump compared nothing"));
    }
    Ok(lines)
}

fn pass_array(producer: &Producer, case: &str, tally: &mut Tally) -> Result<(), Error> {
    let (schema, array) = producer.export_array(BACKEND, case)?;
    tally.asserted += check_dump(producer, &schema, &array)? as u64;
    let (schema, array) = (reexport(schema)?, reexport(array)?);
    let verified = producer.verify_array(BACKEND, case, &schema, &array);
    tally.check(verified.map_err(|error| error.to_string()));
    Ok(())
}

fn pass_stream(
    producer: &Producer,
    case: &str,
    fail_at: i64,
    tally: &mut Tally,
) -> Result<(), Error> {
    let stream = producer.export_stream(BACKEND, case, BATCHES, fail_at)?;
    let seen = Arc::new([AtomicI64::new(0), AtomicI64::new(0)]);
    let counts = Arc::clone(&seen);
    let producer_of_batches = *producer;
    let back = reexport_stream(stream, move |schema, array| {
        let lines = check_dump(&producer_of_batches, schema, array)?;
        counts[0].fetch_add(1, Ordering::SeqCst);
        counts[1].fetch_add(lines, Ordering::SeqCst);
        Ok(())
    })?;
    let verified = producer.verify_stream(BACKEND, case, BATCHES, fail_at, back);
    tally.check(verified.map_err(|error| error.to_string()));
    let [batches, lines] = [&seen[0], &seen[1]].map(|count| count.load(Ordering::SeqCst));
    tally.asserted += lines as u64;
    let expected = if fail_at < 0 { BATCHES } else { fail_at };
    tally.equal("the number of batches dumped", batches, expected);
    Ok(())
}

/// Everything that was given out has come back, on both sides, and just once.
fn check_at_rest(producer: &Producer, before: [i64; 2], tally: &mut Tally) {
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
