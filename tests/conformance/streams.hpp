// SPDX-License-Identifier: Apache-2.0
//
// Reads the subject's stream to its end through the validation layer.
#ifndef FLETCHING_TESTS_CONFORMANCE_STREAMS_HPP
#define FLETCHING_TESTS_CONFORMANCE_STREAMS_HPP

#include <deque>
#include <string>
#include <type_traits>

#include "run.hpp"

namespace fletching::conformance {

inline constexpr std::int64_t kBatches = 3;  // number of batches in a peer's or producer's stream
inline constexpr std::int64_t kFailAt = 2;   // index of the batch that the producer fails
inline constexpr std::int64_t kNever = -1;
inline constexpr std::size_t kMostText =
    65536;  // maximum length of an error message, even if the peer's is longer

inline int validate(ArrowArrayStream& stream, std::int32_t level) {
  const FletchingValidateOptions options = layer(level);
  return FletchingValidateStream(&stream, &options, nullptr);
}
inline int validate(ArrowDeviceArrayStream& stream, std::int32_t level) {
  const FletchingValidateOptions options = layer(level);
  return FletchingValidateDeviceStream(&stream, &options, nullptr);
}

/// get_last_error is not an operation on the stream: a second call must return the same text.
template <class Raw>
Answer last_error(Case& played, Raw& stream, int code) {
  const char* const text = stream.get_last_error(&stream);
  Answer answer{code, text == nullptr ? "" : text};
  const char* const again = stream.get_last_error(&stream);
  if ((again == nullptr ? "" : again) != answer.text || (text != nullptr && text != answer.text)) {
    played.wrong("expected the text to stay after a second get_last_error");
  }
  if (answer.text.size() > kMostText) answer.text.clear();
  return answer;
}

/// Reads to the end or to an error, after which no batch may follow. `look` checks the batches
/// after the stream is released.
template <class Raw, class Look>
Answer read_all(Case& played, Raw& stream, std::int64_t* count, const Look& look) {
  using Batch =
      std::conditional_t<std::is_same_v<Raw, ArrowArrayStream>, ArrowArray, ArrowDeviceArray>;
  if (validate(stream, FLETCHING_VALIDATE_PROTOCOL) != 0) {
    played.wrong("expected a live stream, got a released one");
    return {};
  }
  std::deque<Held<Batch>> batches;
  Held<ArrowSchema> schema;
  Answer answer;
  if (const int code = stream.get_schema(&stream, &schema.value); code != 0) {
    schema.value.release = nullptr;
    answer = last_error(played, stream, code);
  }
  while (answer.code == 0) {
    Held<Batch>& batch = batches.emplace_back();
    if (const int code = stream.get_next(&stream, &batch.value); code != 0) {
      forget(batch.value);
      answer = last_error(played, stream, code);
    } else if (is_released(batch.value)) {
      break;
    } else {
      ++*count;
    }
  }
  if (answer.code != 0) {
    Held<Batch> after;
    if (stream.get_next(&stream, &after.value) == 0 && !is_released(after.value)) {
      played.wrong("expected no batch after an error, got one");
    }
  }
  release_left(stream);
  for (Held<Batch>& batch : batches) {
    if (!is_released(batch.value)) look(base_of(batch.value));
  }
  return answer;
}

/// Whether the peer's text is "failed at call N", which must arrive.
inline bool has_text(const Peer& peer) {
  return peer.outcome == kFletchingHostileReported && peer.name.starts_with("stream.") &&
         peer.name != "stream.last-error-null" &&
         (!peer.name.starts_with("stream.text-") || peer.name == "stream.text-changes");
}

/// Compares the batches and the error of the subject's stream with the peer's catalogue.
template <class Raw>
void judge_stream(Case& played, const Peer& peer, Answer answer, Raw& out, std::int64_t expected) {
  std::int64_t batches = 0;
  if (answer.code == 0) {
    answer = read_all(played, out, &batches, [&](const ArrowArray& batch) {
      if (peer.outcome == kFletchingHostileAccepted) check_values(played, batch);
    });
  }
  judge(played, peer, answer, true);
  if (has_text(peer) && answer.text.find("failed at call ") == std::string::npos) {
    played.wrong("expected the text of the peer, got: " + answer.text);
  }
  if (peer.outcome == kFletchingHostileAccepted && answer.code == 0 && batches != expected) {
    played.wrong("expected " + std::to_string(expected) + " batches, got " +
                 std::to_string(batches));
  }
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_STREAMS_HPP
