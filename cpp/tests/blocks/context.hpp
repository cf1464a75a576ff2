// Declarations that the code on the C++ pages relies on: received arrays and streams, and functions
// that the reader would write.
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "fletching/fletching.hpp"

#define STATUS static fletching::Status
#define OK \
  {        \
  }

using cudaStream_t = struct CUstream_st*;

struct Columns {
  std::vector<std::uint8_t> bitmap;
  std::vector<std::int32_t> id, offsets;
  std::string text;
};
extern fletching::ArrayBuilder<Columns> builder;
extern fletching::AddedChildren columns;
extern const Columns& kept;
extern std::int64_t rows;

extern fletching::Schema schema;
extern fletching::DeviceArray array, column, name;
extern fletching::SyncEvent event;
extern fletching::DeviceArrayStream batches;
extern cudaStream_t handle;
inline fletching::Stream stream(ARROW_DEVICE_CUDA, handle);
extern std::optional<std::int64_t> number;

fletching::Schema my_schema();
std::optional<fletching::DeviceArray> my_next_batch();
fletching::Result<fletching::DeviceArray> make_batch();
int make_batch_in_c(ArrowDeviceArray* out);
void start_the_producer(ArrowAsyncDeviceStreamHandler* handler);
void use(const fletching::DeviceArray& batch);
void read(const fletching::DeviceArray& batch);
void failed(const fletching::Error& error);
