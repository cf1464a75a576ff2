// SPDX-License-Identifier: Apache-2.0
//
// The device report from C99. Arguments: the expected entry of a device type as NAME PRESENCE PART,
// where PART is a substring of its reason, version, library or first device. They may be omitted.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fletching/c_api.h"

static const struct FletchingDeviceReportEntry* find(const struct FletchingDeviceReport* report,
                                                     const char* name) {
  for (int64_t i = 0; i < FletchingDeviceReportCount(report); ++i) {
    const struct FletchingDeviceReportEntry* entry = FletchingDeviceReportGet(report, i);
    if (strcmp(entry->name, name) == 0) return entry;
  }
  return NULL;
}

static void test_arguments(void) {
  struct FletchingMessage message;
  CHECK(FletchingDeviceReportCreate(NULL, &message) != 0);
  CHECK(strcmp(message.text, "report: NULL: expected an address for the report") == 0);
  CHECK(FletchingDeviceReportCount(NULL) == 0);
  CHECK(FletchingDeviceReportGet(NULL, 0) == NULL);
  FletchingDeviceReportDestroy(NULL);
}

static int wait_nothing(void* context, void* event, int64_t device_id,
                        struct FletchingMessage* message) {
  (void)context, (void)event, (void)device_id, (void)message;
  return 0;
}

// An entry without a built-in query names the required waiter and whether it is registered.
static void test_waiters(void) {
  struct FletchingDeviceReport* report = NULL;
  struct FletchingWaiter waiter = {0};
  waiter.synchronize = wait_nothing;
  CHECK(FletchingDeviceReportCreate(&report, NULL) == 0);
  const struct FletchingDeviceReportEntry* entry = find(report, "oneapi");
  CHECK(entry->presence == FLETCHING_PRESENCE_UNKNOWN);
  CHECK(strstr(entry->reason, "register the waiter") != NULL);
  CHECK(strstr(find(report, "vpi")->reason, "always NULL") != NULL);
  FletchingDeviceReportDestroy(report);
  CHECK(FletchingRegisterWaiter(ARROW_DEVICE_ONEAPI, &waiter, NULL) == 0);
  CHECK(FletchingDeviceReportCreate(&report, NULL) == 0);
  CHECK(strstr(find(report, "oneapi")->reason, "a waiter is registered") != NULL);
  FletchingDeviceReportDestroy(report);
  CHECK(FletchingUnregisterWaiter(ARROW_DEVICE_ONEAPI) == 1);
}

static void test_entries(void) {
  struct FletchingMessage message;
  struct FletchingDeviceReport* report = NULL;
  CHECK(FletchingDeviceReportCreate(&report, &message) == 0);
  CHECK(message.text[0] == '\0');
  const int64_t count = FletchingDeviceReportCount(report);
  CHECK(count == 16);
  CHECK(FletchingDeviceReportGet(report, -1) == NULL);
  CHECK(FletchingDeviceReportGet(report, count) == NULL);
  for (int64_t i = 0; i < count; ++i) {
    const struct FletchingDeviceReportEntry* entry = FletchingDeviceReportGet(report, i);
    const int is_there = entry->presence == FLETCHING_PRESENCE_REAL;
    CHECK(is_there == (entry->n_devices > 0));
    CHECK(is_there == (entry->reason[0] == '\0'));
    for (int64_t k = 0; k < entry->n_devices; ++k) CHECK(entry->devices[k].name[0] != '\0');
  }
  const struct FletchingDeviceReportEntry* cpu = find(report, "cpu");
  CHECK(cpu->device_type == ARROW_DEVICE_CPU);
  CHECK(cpu->presence == FLETCHING_PRESENCE_REAL);
  CHECK(cpu->devices[0].id == -1);
  FletchingDeviceReportDestroy(report);
}

static void test_expected_entry(char** expected) {
  struct FletchingDeviceReport* report = NULL;
  CHECK(FletchingDeviceReportCreate(&report, NULL) == 0);
  const struct FletchingDeviceReportEntry* entry = find(report, expected[0]);
  CHECK(entry != NULL);
  if (entry == NULL) {
    FletchingDeviceReportDestroy(report);
    return;
  }
  const char* device = entry->n_devices > 0 ? entry->devices[0].name : "";
  const int has_part =
      strstr(entry->reason, expected[2]) != NULL || strstr(entry->version, expected[2]) != NULL ||
      strstr(entry->library, expected[2]) != NULL || strstr(device, expected[2]) != NULL;
  if (entry->presence != atoi(expected[1]) || !has_part) {
    fprintf(stderr,
            "%s: presence %d, expected %s; and \"%s\" should be in one of\n%s\n%s\n%s\n%s\n",
            expected[0], (int)entry->presence, expected[1], expected[2], entry->reason,
            entry->version, entry->library, device);
    ++failures;
  }
  FletchingDeviceReportDestroy(report);
}

int main(int count, char** arguments) {
  test_arguments();
  test_entries();
  test_waiters();
  for (int i = 1; i + 2 < count; i += 3) test_expected_entry(arguments + i);
  return failures != 0;
}
