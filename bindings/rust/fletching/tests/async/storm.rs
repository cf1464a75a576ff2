// SPDX-License-Identifier: Apache-2.0

//! Stress test: many streams on several threads, each of which ends in one of several ways at a
//! random time. FLETCHING_ASYNC_STREAMS sets the number of streams; the default is 1000.

use std::sync::atomic::{AtomicUsize, Ordering};

use fletching::{AsyncBatch, AsyncOptions, AsyncStream, Error};
use libc::{ECANCELED, EIO, ENOMEM};

use crate::support::*;

/// Small numbers that depend only on the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Regular,
    Error,
    Panic,
    /// One batch cannot be made.
    Lost,
    /// Ended by another thread, at any time.
    Aborted,
    /// Ended by dropping the future, at any time.
    Dropped,
}

const ENDS: [End; 6] = [
    End::Regular,
    End::Error,
    End::Panic,
    End::Lost,
    End::Aborted,
    End::Dropped,
];

struct Plan {
    count: i32,
    end: End,
    window: u32,
    /// The consumer takes this many batches and drops the stream.
    takes: Option<u64>,
    skips: bool,
}

fn plan(random: &mut Random) -> Plan {
    Plan {
        count: random.below(30) as i32,
        end: ENDS[random.below(6) as usize],
        window: 1 + random.below(8) as u32,
        takes: (random.below(3) == 0).then(|| random.below(20)),
        skips: random.below(4) == 0,
    }
}

fn source(plan: &Plan, live: &LiveBatches) -> Items {
    let mut items: Vec<Result<AsyncBatch, Error>> = (1..=plan.count)
        .map(|length| match length % 3 {
            0 => {
                let batch = live.batch(length);
                Ok(AsyncBatch::made(|| Ok(batch)))
            }
            _ => Ok(live.batch(length).into()),
        })
        .collect();
    match plan.end {
        End::Error => items.push(Err(Error::new(EIO, "disk"))),
        End::Lost => items.push(Ok(AsyncBatch::made(|| Err(Error::new(ENOMEM, "lost"))))),
        End::Panic => items.push(Ok(AsyncBatch::made(|| panic!("lost")))),
        End::Regular | End::Aborted | End::Dropped => {}
    }
    Items {
        items: items.into(),
        ends: plan.end != End::Dropped,
    }
}

fn check(plan: &Plan, rows: &[i64], skipped: i64) {
    let text = || {
        format!(
            "{:?} of {}, {skipped} skipped: {rows:?}",
            plan.end, plan.count
        )
    };
    let taken = rows.iter().take_while(|row| **row > 0).count();
    assert!(
        rows[..taken].windows(2).all(|pair| pair[0] < pair[1]),
        "{}",
        text()
    );
    let Some(last) = rows.get(taken) else {
        return assert!(plan.takes.is_some(), "{}", text());
    };
    assert_eq!(rows.len(), taken + 1, "{}", text());
    let codes: &[i32] = match plan.end {
        End::Regular => &[0],
        End::Error | End::Panic => &[EIO],
        End::Lost => &[ENOMEM],
        End::Aborted => &[0, 71],
        End::Dropped => &[ECANCELED],
    };
    // A skipped task is not made.
    let may_end = skipped > 0 && matches!(plan.end, End::Lost | End::Panic);
    assert!(
        codes.contains(&-(*last as i32)) || may_end && *last == 0,
        "{}",
        text()
    );
    if *last == 0 && !may_end {
        assert_eq!(taken as i64 + skipped, i64::from(plan.count), "{}", text());
    }
}

async fn consume(mut stream: AsyncStream, plan: Plan, seed: u64) {
    let mut random = Random(seed);
    let (mut rows, mut skipped) = (Vec::new(), 0);
    if random.below(2) == 0 && plan.takes.is_none() {
        let _ = stream.schema().await;
    }
    while plan.takes != Some(rows.len() as u64) {
        if plan.skips && random.below(3) == 0 {
            skipped += i64::from(stream.skip_batch());
        }
        rows.push(next(&mut stream).await);
        if *rows.last().unwrap() <= 0 {
            break;
        }
        if random.below(8) == 0 {
            tokio::task::yield_now().await;
        }
    }
    drop(stream);
    check(&plan, &rows, skipped);
}

#[test]
fn random_streams_end_as_planned() {
    let count = std::env::var("FLETCHING_ASYNC_STREAMS");
    let count: u64 = count.map_or(1000, |count| count.parse().unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .build()
        .unwrap();
    let (live, done) = (LiveBatches::default(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (live, done, runtime) = (live.clone(), &done, runtime.handle());
            scope.spawn(move || {
                for seed in (thread..count).step_by(4) {
                    one(seed, &live, runtime);
                    done.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
    });
    // The release of a dropped future may run on a new thread.
    drop(runtime);
    assert_eq!(done.load(Ordering::SeqCst), count as usize);
    assert_eq!(live.count(), 0);
}

/// Runs one stream. Returns when both sides are done.
fn one(seed: u64, live: &LiveBatches, runtime: &tokio::runtime::Handle) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let plan = plan(&mut random);
    let (handler, stream) = AsyncStream::new(AsyncOptions::default().window(plan.window));
    let sending = producer(source(&plan, live))
        .calls_per_poll(1 + seed as u32 % 4)
        .send(handler);
    let (abort, end) = (sending.abort_handle(), plan.end);
    let sending = runtime.spawn(sending);
    // Consumes on the runtime, or on this thread.
    let mut consumer = Some(consume(stream, plan, seed));
    let consuming = (seed % 2 == 0).then(|| runtime.spawn(consumer.take().unwrap()));
    for _ in 0..random.below(200) {
        std::hint::spin_loop();
    }
    match end {
        End::Aborted => abort.fail(Error::new(71, "shut down")),
        End::Dropped => sending.abort(),
        _ => {}
    }
    block_on(async {
        if let Some(consumer) = consumer {
            consumer.await;
        }
        if let Some(consuming) = consuming {
            consuming.await.unwrap();
        }
        // Resolves when the handler is released.
        match sending.await {
            Ok(_) => {}
            Err(error) => assert!(error.is_cancelled() && end == End::Dropped, "{error}"),
        }
    });
}
