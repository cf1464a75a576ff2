// Arguments of the C functions, and what they mean.
#pragma once

#include "backend.hpp"
#include "catalogue.hpp"
#include "message.hpp"

namespace fletching::producer {

// Each throws EINVAL with a text that names the argument.
Backend& BackendByName(const char* name);  // absent: ENODEV with the reason
Backend& AnyBackendByName(const char* name);
const Case& CaseByName(const char* name);
void RequirePointer(const char* name, const void* pointer);
void CheckBatches(int64_t batches, int64_t fail_at);

inline const char* NameOf(const Backend* backend) { return backend->Name(); }
inline const char* NameOf(const Case& what) { return what.name.c_str(); }

}  // namespace fletching::producer
