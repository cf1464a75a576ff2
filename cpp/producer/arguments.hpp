// Looks up the arguments of the C functions.
#ifndef FLETCHING_PRODUCER_ARGUMENTS_HPP
#define FLETCHING_PRODUCER_ARGUMENTS_HPP

#include "backend.hpp"
#include "catalogue.hpp"
#include "message.hpp"

namespace fletching::producer {

// Each throws EINVAL with a message that names the argument.
Backend& backend_by_name(const char* name);  // throws ENODEV with the reason if absent
Backend& any_backend_by_name(const char* name);
const Case& case_by_name(const char* name);
void require_pointer(const char* name, const void* pointer);
void check_batches(int64_t batches, int64_t fail_at);

inline const char* name_of(const Backend* backend) { return backend->name(); }
inline const char* name_of(const Case& what) { return what.name.c_str(); }

}  // namespace fletching::producer

#endif  // FLETCHING_PRODUCER_ARGUMENTS_HPP
