// SPDX-License-Identifier: Apache-2.0
//
// Async streams: the subject as consumer of the peer's producers, as producer for the peer's
// handlers, and as both.
#include <cerrno>

#include "streams.hpp"

namespace fletching::conformance {
namespace {

/// Wraps a handler in the validation layer, which reports what `party` violates. The wrapper hides
/// NULL callbacks of the peer from the subject.
void validate(ArrowAsyncDeviceStreamHandler** handler, const char* party) {
  const FletchingValidateOptions options = layer(FLETCHING_VALIDATE_SHAPE, party);
  FletchingValidateAsyncHandler(handler, &options, nullptr);
}

/// A producer of the peer. Producers that violate no rule are wrapped in the layer.
struct StartContext {
  const char* name;
  bool is_validated;
};

int start_producer(void* context, ArrowAsyncDeviceStreamHandler* handler) {
  const auto& start = *static_cast<const StartContext*>(context);
  if (start.is_validated) validate(&handler, "consumer");
  return FletchingHostileStartProducer(start.name, handler, nullptr);
}

Answer receive(Run& run, const Peer& peer, ArrowDeviceArrayStream* out) {
  StartContext start{peer.name.c_str(), peer.outcome == kFletchingHostileAccepted};
  return ask(run.subject, run.subject.receive, &start_producer, static_cast<void*>(&start), out);
}

std::int64_t expected_batches(const Case& played) {
  if (played.is("producer.empty")) return 0;
  return played.is("producer.release-with-tasks") ? 2 : kBatches;
}

/// Cancels the stream of a producer that sends nothing more, after its schema.
void read_schema(ArrowDeviceArrayStream& stream) {
  Held<ArrowSchema> schema;
  if (stream.get_schema(&stream, &schema.value) != 0) schema.value.release = nullptr;
}

void play_producers(Run& run) {
  each_peer(run, kFletchingHostileProducer, run.subject.receive != nullptr,
            [&](Case& played, const Peer& peer) {
              {
                Held<ArrowDeviceArrayStream> out;
                const Answer answer = receive(run, peer, &out.value);
                if (peer.outcome == kFletchingHostileStalled) {
                  judge(played, peer, answer, true);
                  if (answer.code == 0) read_schema(out.value);
                } else {
                  judge_stream(played, peer, answer, out.value, expected_batches(played));
                }
              }
              expect_finished(played);
              Held<ArrowDeviceArrayStream> unread;
              (void)receive(run, peer, &unread.value);
            });
}

void play_handlers(Run& run) {
  each_peer(run, kFletchingHostileHandler, run.subject.send != nullptr,
            [&](Case& played, const Peer& /*peer*/) {
              Held<ArrowDeviceArrayStream> in;
              ArrowAsyncDeviceStreamHandler* handler = nullptr;
              FletchingHostileExportDeviceStream("stream.good", &in.value, nullptr);
              FletchingHostileOpenHandler(played.c_str(), kBatches, &handler, nullptr);
              const bool lacks_a_callback = played.name().ends_with("-null");
              if (!lacks_a_callback) validate(&handler, "producer");
              const Answer answer = ask(run.subject, run.subject.send, &in.value, handler);
              played.answered(answer, true);
              if (!lacks_a_callback) {
                played.expect_accepted(answer);
              } else if (answer.code == 0) {
                played.wrong("expected an error for a callback that is NULL");
              }
              if (answer.code != 0 && handler->release != nullptr) handler->release(handler);
            });
}

/// One of the peer's streams, which the subject sends to itself.
struct SendContext {
  const FletchingSubject* subject;
  ArrowDeviceArrayStream* in;
  Answer answer;
};

int send(void* context, ArrowAsyncDeviceStreamHandler* handler) {
  auto& sending = *static_cast<SendContext*>(context);
  validate(&handler, nullptr);
  sending.answer = ask(*sending.subject, sending.subject->send, sending.in, handler);
  return sending.answer.code;
}

Answer send_and_receive(Run& run, ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out) {
  SendContext sending{&run.subject, in, {}};
  const Answer answer =
      ask(run.subject, run.subject.receive, &send, static_cast<void*>(&sending), out);
  return sending.answer.code != 0 ? sending.answer : answer;
}

bool does_both(const Run& run) {
  return run.subject.send != nullptr && run.subject.receive != nullptr;
}

int (*g_get_next)(ArrowDeviceArrayStream* self, ArrowDeviceArray* out);
std::int64_t g_rows;  // rows of the next batch

int get_fewer_rows(ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
  const int code = g_get_next(self, out);
  if (code == 0 && !is_released(*out)) out->array.length = g_rows--;
  return code;
}

/// Batches of 3, 2 and 1 rows, which make their order visible.
void play_order(Run& run) {
  constexpr const char* kName = "stream.in-order";
  if (!run.begin(kName)) return;
  Case played(run, kName);
  played.is_corpus_cell();
  if (!does_both(run)) return played.not_supported();
  {
    Held<ArrowDeviceArrayStream> in;
    Held<ArrowDeviceArrayStream> out;
    FletchingHostileExportDeviceStream("stream.good", &in.value, nullptr);
    g_get_next = in.value.get_next;
    g_rows = kBatches;
    in.value.get_next = &get_fewer_rows;
    const Answer answer = send_and_receive(run, &in.value, &out.value);
    played.answered(answer, true);
    played.expect_accepted(answer);
    for (std::int64_t rows = kBatches; answer.code == 0 && rows > 0; --rows) {
      Held<ArrowDeviceArray> batch;
      const int code = out.value.get_next(&out.value, &batch.value);
      if (code != 0) forget(batch.value);
      if (batch.value.array.length != rows) {
        played.wrong("expected batches of 3, 2 and 1 rows in this order, got one of " +
                     std::to_string(batch.value.array.length));
      }
    }
  }
  expect_finished(played);
}

void play_both(Run& run, std::int32_t party) {
  each_peer(run, party, does_both(run), [&](Case& played, const Peer& peer) {
    if (played.is("device-stream.batch-reserved")) played.excuse("reserved-zero");
    Held<ArrowDeviceArrayStream> in;
    Held<ArrowDeviceArrayStream> out;
    FletchingHostileExportDeviceStream(played.c_str(), &in.value, nullptr);
    const Answer answer = send_and_receive(run, &in.value, &out.value);
    judge_stream(played, peer, answer, out.value, played.is("stream.empty") ? 0 : kBatches);
  });
}

}  // namespace

void play_receivers(Run& run) { play_producers(run); }

void play_senders(Run& run) {
  play_handlers(run);
  play_both(run, kFletchingHostileStream);
  play_both(run, kFletchingHostileDeviceStream);
  play_order(run);
}

}  // namespace fletching::conformance
