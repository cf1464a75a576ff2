// The producer's internal errors, and their conversion to an errno value and a line of text.
#ifndef FLETCHING_PRODUCER_MESSAGE_HPP
#define FLETCHING_PRODUCER_MESSAGE_HPP

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "producer.h"

namespace fletching::producer {

// Thrown inside the library only; guarded() converts it to the return value of a C function.
struct Error {
  int code;
  std::string text;
};

[[noreturn]] inline void fail(int code, std::string text) { throw Error{code, std::move(text)}; }

// Writes one line of valid UTF-8: replaces invalid bytes with U+FFFD and control characters with a
// space, and truncates at a character boundary. Does not allocate. `message` may be NULL.
void write_message(FletchingMessage* message, std::string_view text) noexcept;

// The beginning of a foreign string, not yet converted to valid UTF-8. NULL becomes "(NULL)".
std::string foreign_text(const char* text);

bool is_utf8(std::string_view text) noexcept;

// Runs `work`. Returns 0 and an empty message, or the exception's errno value and message.
template <class Work>
int guarded(FletchingMessage* message, Work work) noexcept {
  write_message(message, "");
  try {
    work();
    return 0;
  } catch (const Error& error) {
    write_message(message, error.text);
    return error.code;
  } catch (const std::bad_alloc&) {
    write_message(message, "out of memory");
    return ENOMEM;
  } catch (const std::exception& error) {
    write_message(message, error.what());
    return EIO;
  } catch (...) {
    write_message(message, "unknown exception");
    return EIO;
  }
}

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_MESSAGE_HPP
