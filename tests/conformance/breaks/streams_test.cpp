// SPDX-License-Identifier: Apache-2.0
//
// The rules of both kinds of streams, which differ only in their names.
#include "streams.hpp"

#include <cerrno>
#include <cstdio>
#include <string>

namespace fletching::conformance {
namespace {

template <class Reference>
using StreamOf = std::remove_reference_t<Reference>;

// --- Producer rules ---

void misses_a_callback() {
  finds_in_output("stream.good", [](auto& stream) { stream.get_last_error = nullptr; });
}
TEST(Streams, StreamCallbacksSet) { misses_a_callback(); }
TEST(DeviceStreams, DeviceStreamCallbacksSet) { misses_a_callback(); }

void negates_codes() {
  finds_in_output("stream.next-fails", [](auto& stream) {
    using Stream = StreamOf<decltype(stream)>;
    stream.get_next = [](Stream* self, BatchOf<Stream>* out) { return -next_of(self, out); };
  });
}
TEST(Streams, StreamErrnoCodes) { negates_codes(); }
TEST(DeviceStreams, DeviceStreamErrnoCodes) { negates_codes(); }

void breaks_texts() {
  finds_in_output("stream.next-fails",
                  [](auto& stream) { stream.get_last_error = [](auto*) { return "\xFF"; }; });
}
TEST(Streams, StreamErrorText) { breaks_texts(); }
TEST(DeviceStreams, DeviceStreamErrorText) { breaks_texts(); }

// Each call overwrites the previous message, but get_last_error does not count as an operation on
// the stream.
void overwrites_texts() {
  finds_in_output(
      "stream.next-fails",
      [](auto& stream) {
        stream.get_last_error = [](auto*) -> const char* {
          static int calls;
          static char text[32];
          (void)std::snprintf(text, sizeof text, "failed at call %d", ++calls);
          return text;
        };
      },
      "expected the text to stay");
}
TEST(Streams, StreamErrorTextLifetime) { overwrites_texts(); }
TEST(DeviceStreams, DeviceStreamErrorTextLifetime) { overwrites_texts(); }

void leaves_release_set() {
  finds_in_output("stream.good", [](auto& stream) {
    stream.release = [](auto* self) {
      inner_of(self)->release(inner_of(self));
      delete inner_of(self);
    };
  });
}
TEST(Streams, StreamReleaseLikeArray) { leaves_release_set(); }
TEST(DeviceStreams, DeviceStreamReleaseLikeArray) { leaves_release_set(); }

void changes_the_schema() {
  finds_in_output(
      "stream-consumer.schema-often",
      [](auto& stream) {
        stream.get_schema = [](auto* self, ArrowSchema* out) {
          const int code = inner_of(self)->get_schema(inner_of(self), out);
          static int calls;
          if (++calls % 2 == 0) out->format = "l";
          return code;
        };
      },
      "get_schema: another schema");
}
TEST(StreamConsumers, StreamResultSchemaConstant) { changes_the_schema(); }
TEST(StreamConsumers, DeviceStreamResultSchemaConstant) { changes_the_schema(); }

void ends_with_an_error() {
  finds_in_output(
      "stream.good",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          const int code = next_of(self, out);
          return code == 0 && base_of(*out).release == nullptr ? ENODATA : code;
        };
      },
      "expected success, got errno");
}
TEST(Streams, StreamResultEndIsReleasedArray) { ends_with_an_error(); }
TEST(DeviceStreams, DeviceStreamResultEndIsReleasedArray) { ends_with_an_error(); }

// Overwrites the memory of a batch when its stream would have freed it.
void frees_batches() {
  finds_in_output(
      "stream.good",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        static std::int32_t values[3];
        static const void* buffers[2]{nullptr, values};
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          for (int i = 0; i < 3; ++i) values[i] = i + 1;
          const int code = next_of(self, out);
          if (code == 0 && base_of(*out).release != nullptr) base_of(*out).buffers = buffers;
          return code;
        };
        stream.release = [](Stream* self) {
          values[0] = -1;
          inner_of(self)->release(inner_of(self));
          delete inner_of(self);
          self->release = nullptr;
        };
      },
      "expected the values");
}
TEST(Streams, StreamResultOutlivesStream) { frees_batches(); }
TEST(DeviceStreams, DeviceStreamResultOutlivesStream) { frees_batches(); }

// Does not zero the consumer's struct, which contains other bytes.
TEST(StreamConsumers, ReleaseBaseAllocatedByConsumer) {
  finds(streams_with([](ArrowArrayStream& stream) {
          stream.get_next = [](ArrowArrayStream* self, ArrowArray* out) {
            ArrowArray next{};
            const int code = next_of(self, &next);
            if (next.release != nullptr) *out = next;
            return code;
          };
        }),
        "stream-consumer.dirty-out", "get_next: out was not filled");
}

TEST(StreamConsumers, DeviceArrayBaseAllocatedByConsumer) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) {
          stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
            ArrowDeviceArray next{};
            const int code = next_of(self, &next);
            out->array = next.array;
            return code;
          };
        }),
        "stream-consumer.dirty-out", "reserved is not zero");
}

// --- Consumer rules ---

/// Releases a stream and then calls it again.
template <class Stream, class Call>
void calls_after_release(Stream* self, Call call) {
  inner_of(self)->release(inner_of(self));
  call(inner_of(self));
  delete inner_of(self);
  self->release = nullptr;
}

void reads_the_schema_after_release() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        stream.release = [](auto* self) {
          calls_after_release(self, [](auto* inner) {
            ArrowSchema schema{};
            (void)inner->get_schema(inner, &schema);
          });
        };
      },
      "get_schema was called on what is released");
}
TEST(Streams, StreamGetSchemaNotAfterRelease) { reads_the_schema_after_release(); }
TEST(DeviceStreams, DeviceStreamGetSchemaNotAfterRelease) { reads_the_schema_after_release(); }

void reads_a_batch_after_release() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.release = [](Stream* self) {
          calls_after_release(self, [](Stream* inner) {
            BatchOf<Stream> batch{};
            (void)inner->get_next(inner, &batch);
          });
        };
      },
      "get_next was called on what is released");
}
TEST(Streams, StreamGetNextNotAfterRelease) { reads_a_batch_after_release(); }
TEST(DeviceStreams, DeviceStreamGetNextNotAfterRelease) { reads_a_batch_after_release(); }

void reads_the_text_after_release() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        stream.release = [](auto* self) {
          calls_after_release(self, [](auto* inner) { (void)inner->get_last_error(inner); });
        };
      },
      "get_last_error was called on what is released");
}
TEST(Streams, StreamGetLastErrorNotAfterRelease) { reads_the_text_after_release(); }
TEST(DeviceStreams, DeviceStreamGetLastErrorNotAfterRelease) { reads_the_text_after_release(); }

void reads_the_text_after_success() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          const int code = next_of(self, out);
          (void)inner_of(self)->get_last_error(inner_of(self));
          return code;
        };
      },
      "get_last_error was called, and the last call had not failed");
}
TEST(Streams, StreamGetLastErrorOnlyAfterError) { reads_the_text_after_success(); }
TEST(DeviceStreams, DeviceStreamGetLastErrorOnlyAfterError) { reads_the_text_after_success(); }

void reads_no_code() {
  finds_in_reader(
      "stream.next-fails",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          if (next_of(self, out) != 0) *out = {};
          return 0;
        };
      },
      "expected errno 5, got success");
}
TEST(Streams, StreamErrnoRead) { reads_no_code(); }
TEST(DeviceStreams, StreamErrnoRead) { reads_no_code(); }

void takes_every_code_for_one() {
  finds_in_reader(
      "stream.next-partial",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          return next_of(self, out) == 0 ? 0 : EIO;
        };
      },
      "expected errno 12, got errno 5");
}
TEST(Streams, StreamErrnoRecognized) { takes_every_code_for_one(); }
TEST(DeviceStreams, StreamErrnoRecognized) { takes_every_code_for_one(); }

// Imitates a stored pointer to memory that the producer has reused.
void keeps_the_text() {
  finds_in_output(
      "stream.text-changes",
      [](auto& stream) { stream.get_last_error = [](auto*) { return "#####"; }; },
      "expected the text of the call");
}
TEST(Streams, StreamErrorTextCopied) { keeps_the_text(); }
TEST(DeviceStreams, DeviceStreamErrorTextCopied) { keeps_the_text(); }

void refuses_no_text() {
  finds_in_reader(
      "stream.text-null",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          const int code = next_of(self, out);
          if (code == 0) return 0;
          return inner_of(self)->get_last_error(inner_of(self)) == nullptr ? EFAULT : code;
        };
      },
      "expected errno 5, got errno 14");
}
TEST(Streams, StreamErrorTextNullAccepted) { refuses_no_text(); }
TEST(DeviceStreams, DeviceStreamErrorTextNullAccepted) { refuses_no_text(); }

void changes_private_data() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        stream.release = [](auto* self) {
          inner_of(self)->private_data = nullptr;
          calls_after_release(self, [](auto*) {});
        };
      },
      "release of a stream was called on what is released");
}
TEST(Streams, StreamPrivateDataUntouched) { changes_private_data(); }
TEST(DeviceStreams, DeviceStreamPrivateDataUntouched) { changes_private_data(); }

// Reads past the end, where the struct contains no values and no device.
void reads_on_behind_the_end() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.get_next = [](Stream* self, BatchOf<Stream>* out) {
          const int code = next_of(self, out);
          if (base_of(*out).release == nullptr) {
            static int ends;
            if (++ends % 2 == 1) base_of(*out).release = [](ArrowArray* array) { *array = {}; };
          }
          return code;
        };
      },
      "expected the values 1, 2, 3|device_type differs");
}
TEST(Streams, StreamResultEndChecked) { reads_on_behind_the_end(); }
TEST(DeviceStreams, DeviceStreamResultEndChecked) { reads_on_behind_the_end(); }

void loses_a_batch() {
  finds_in_reader(
      "stream.good",
      [](auto& stream) {
        using Stream = StreamOf<decltype(stream)>;
        stream.release = [](Stream* self) {
          ArrowSchema lost{};
          (void)inner_of(self)->get_schema(inner_of(self), &lost);
          calls_after_release(self, [](Stream*) {});
        };
      },
      "not released: [12] structs");
}
TEST(Streams, StreamResultReleasedIndependently) { loses_a_batch(); }
TEST(DeviceStreams, DeviceStreamResultReleasedIndependently) { loses_a_batch(); }

// --- The device type ---

TEST(DeviceStreams, DeviceStreamDeviceTypeSet) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) { stream.device_type = 0; }),
        "stream.good");
}

TEST(DeviceStreams, DeviceStreamOneDeviceType) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) {
          stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
            const int code = next_of(self, out);
            out->device_type = ARROW_DEVICE_CUDA;
            return code;
          };
        }),
        "stream.good");
}

// Puts every second batch on another device.
TEST(DeviceStreams, DeviceStreamStreamPerDeviceType) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) {
          stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
            static int batches;
            const int code = next_of(self, out);
            if (++batches % 2 == 0) out->device_type = ARROW_DEVICE_CUDA_HOST;
            return code;
          };
        }),
        "stream.good", "get_next\\[1\\].*device_type differs");
}

TEST(DeviceStreams, DeviceStreamResultAccessible) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) {
          stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
            static const void* nowhere[] = {nullptr, nullptr};
            const int code = next_of(self, out);
            if (out->array.release != nullptr) out->array.buffers = nowhere;
            return code;
          };
        }),
        "stream.good", "expected the values");
}

}  // namespace
}  // namespace fletching::conformance
