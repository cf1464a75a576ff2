// Errors inside the producer, and the one place where they become an errno and a line of text.
#ifndef FLETCHING_PRODUCER_MESSAGE_HPP
#define FLETCHING_PRODUCER_MESSAGE_HPP

#include <cerrno>
#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "producer.h"

namespace fletching::producer {

// Thrown inside the library only; guarded() turns it into the return value of a C function.
struct Error {
  int code;
  std::string text;
};

[[noreturn]] inline void fail(int code, std::string text) { throw Error{code, std::move(text)}; }

// Writes one line of valid UTF-8: a byte that is not becomes U+FFFD, a control character a space,
// and what does not fit is cut at a character boundary. Allocates nothing. `message` may be NULL.
void write_message(FletchingMessage* message, std::string_view text) noexcept;

// The beginning of a text from foreign code, not yet made valid UTF-8. NULL becomes "(NULL)".
std::string foreign_text(const char* text);

bool is_utf8(std::string_view text) noexcept;

// Runs `work` and returns 0 with an empty message, or the errno of whatever was thrown with its
// text.
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
