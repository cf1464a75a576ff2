// Compares the tables with the oracle's constants and enumerators, and tests lookups.
#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "fletching/tables.hpp"
#include "oracle.h"
#include "verdict.hpp"

namespace fletching::testing {
namespace {

constexpr std::string_view kDevicePrefix = "ARROW_DEVICE_";
constexpr ArrowDeviceType kUnknown = 9999;

TEST(DeviceTable, HasUpstreamNumbers) {
  Verdict verdict;
  for (const DeviceInfo& device : kDevices) {
    if (device.arrow_macro.empty()) continue;
    verdict.ask(FletchingOracleCheckConstant, std::string(device.arrow_macro).c_str(),
                std::int64_t{device.value});
  }
  for (const std::string& line : verdict.lines()) ADD_FAILURE() << line;
}

TEST(DeviceTable, HasEveryUpstreamDevice) {
  std::set<std::string_view> macros;
  for (const DeviceInfo& device : kDevices) macros.insert(device.arrow_macro);
  int devices = 0;
  for (std::int32_t i = 0; i < FletchingOracleConstantCount(); ++i) {
    const std::string_view name = FletchingOracleConstantName(i);
    if (!name.starts_with(kDevicePrefix)) continue;
    ++devices;
    EXPECT_TRUE(macros.contains(name)) << name << ": the table has no such device";
  }
  EXPECT_GT(devices, 0);
}

TEST(DeviceTable, PrintsArrowNamesInLowerCase) {
  for (const DeviceInfo& device : kDevices) {
    if (device.arrow_macro.empty()) continue;
    std::string name(device.arrow_macro.substr(kDevicePrefix.size()));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    EXPECT_EQ(device.name, name);
  }
}

TEST(DeviceTable, FindsEachDeviceByNumber) {
  std::set<std::string_view> names;
  for (const DeviceInfo& device : kDevices) {
    EXPECT_EQ(find_device(device.value), &device) << device.name;
    EXPECT_EQ(device_name(device.value), device.name);
    EXPECT_TRUE(names.insert(device.name).second) << device.name << " is a duplicate";
  }
}

TEST(DeviceTable, AcceptsUnknownNumbers) {
  EXPECT_EQ(find_device(kUnknown), nullptr);
  EXPECT_EQ(device_name(kUnknown), "unknown(9999)");
  EXPECT_EQ(device_name(-1), "unknown(-1)");
}

TEST(DeviceTable, NamesReservedNumbersWithoutEntry) {
  EXPECT_EQ(find_device(20), nullptr);
  EXPECT_EQ(device_name(20), "unreleased(tpu_host, 20)");
  EXPECT_EQ(data_type_code_name(18), "unreleased(bcomplex, 18)");
}

TEST(DeviceTable, NamesEventTypeOfDevicesWithEvents) {
  for (const DeviceInfo& device : kDevices) {
    const bool has_type = device.event_pointer == EventPointer::kAddressOfHandle ||
                          device.event_pointer == EventPointer::kObject;
    EXPECT_EQ(!device.event_type.empty(), has_type) << device.name;
  }
}

TEST(DeviceTable, ReportsMemoryAccess) {
  EXPECT_TRUE(is_accessible(ARROW_DEVICE_CPU, ARROW_DEVICE_CPU));
  EXPECT_TRUE(is_accessible(ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_CPU));
  EXPECT_TRUE(is_accessible(ARROW_DEVICE_CUDA_MANAGED, ARROW_DEVICE_CUDA));
  EXPECT_FALSE(is_accessible(ARROW_DEVICE_CPU, ARROW_DEVICE_CUDA_HOST));
  EXPECT_FALSE(is_accessible(ARROW_DEVICE_CUDA, ARROW_DEVICE_CPU));
  EXPECT_FALSE(is_accessible(ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_ROCM));
  EXPECT_FALSE(is_accessible(kUnknown, kUnknown));
  for (const DeviceAccess& access : kDeviceAccess) {
    EXPECT_NE(find_device(access.memory), nullptr) << access.memory;
    EXPECT_NE(find_device(access.device), nullptr) << access.device;
  }
}

TEST(Rules, DeviceTypeValuesOfDlpack) {
  std::string list;
  for (const DeviceInfo& device : kDevices) {
    list += (list.empty() ? "" : ",") + std::string(device.dlpack_name) + "=" +
            std::to_string(device.value);
  }
  Verdict verdict;
  verdict.ask(FletchingOracleCheckEnumerators, "DLDeviceType", list.c_str());
  for (const std::string& line : verdict.lines()) ADD_FAILURE() << line;
}

// DLPack defines the numbers first, so each device in Arrow's header has a DLPack name. The test
// above checks the names.
TEST(Rules, DeviceTypeDlpackFirst) {
  for (const DeviceInfo& device : kDevices) {
    EXPECT_TRUE(device.arrow_macro.empty() || !device.dlpack_name.empty()) << device.name;
  }
}

TEST(DataTypeCodeTable, HasDlpackNumbers) {
  std::string list;
  for (const DataTypeCodeInfo& code : kDataTypeCodes) {
    list += (list.empty() ? "" : ",") + std::string(code.dlpack_name) + "=" +
            std::to_string(code.value);
  }
  Verdict verdict;
  verdict.ask(FletchingOracleCheckEnumerators, "DLDataTypeCode", list.c_str());
  for (const std::string& line : verdict.lines()) ADD_FAILURE() << line;
}

TEST(DataTypeCodeTable, FindsEachCodeByNumber) {
  std::set<std::string_view> names;
  for (const DataTypeCodeInfo& code : kDataTypeCodes) {
    EXPECT_EQ(find_data_type_code(code.value), &code) << code.name;
    EXPECT_EQ(data_type_code_name(code.value), code.name);
    EXPECT_TRUE(names.insert(code.name).second) << code.name << " is a duplicate";
  }
}

TEST(DataTypeCodeTable, AcceptsUnknownNumbers) {
  EXPECT_EQ(find_data_type_code(99), nullptr);
  EXPECT_EQ(data_type_code_name(99), "unknown(99)");
}

}  // namespace
}  // namespace fletching::testing
