// SPDX-License-Identifier: Apache-2.0
//
// The device report, with one entry for each known device type.
#ifndef FLETCHING_CORE_DEVICE_REPORT_H
#define FLETCHING_CORE_DEVICE_REPORT_H

#include "fletching/devices.h"
#include "waiter.h"

enum { N_DEVICE_TYPES = sizeof device_types / sizeof device_types[0] };

// The devices of one runtime, shared by the entries of its device types.
struct listed_devices {
  struct found_devices found;
  struct FletchingFoundDevice* all;
  struct FletchingFoundDevice* managed;  // in the same allocation: devices with managed memory
  int64_t n_managed;
};

struct FletchingDeviceReport {
  struct listed_devices by_runtime[N_RUNTIMES];
  struct FletchingDeviceReportEntry entries[N_DEVICE_TYPES];
};

static void look_for_devices(const struct runtime* runtime, struct listed_devices* listed) {
  struct found_devices* found = &listed->found;
  no_failure(&found->failure);
  runtime->find_devices(found);
  if (found->failure.code != 0) {
    found->n_devices = 0;
  } else if (found->n_devices == 0) {
    (void)fail(&found->failure, ENOENT, "%s: %s is loaded, but finds no device", runtime->title,
               found->library);
  }
}

static bool list_devices(struct listed_devices* listed) {
  const struct found_devices* found = &listed->found;
  if (found->failure.code == ENOMEM) return false;
  if (found->n_devices == 0) return true;
  listed->all = calloc(2 * (size_t)found->n_devices, sizeof *listed->all);
  if (listed->all == NULL) return false;
  listed->managed = listed->all + found->n_devices;
  for (int64_t i = 0; i < found->n_devices; ++i) {
    const struct found_device* device = &found->devices[i];
    listed->all[i] = (struct FletchingFoundDevice){device->id, device->name};
    if (device->has_managed_memory) listed->managed[listed->n_managed++] = listed->all[i];
  }
  return true;
}

// Returns why no library can list the devices of a type.
static const char* why_unknown(ArrowDeviceType type) {
  if (FletchingHasWaiter(type)) return "a waiter is registered; it cannot list devices";
  if (device_has_no_event(type)) return "no known library; its sync_event is always NULL";
  return runtime_of(type)->no_devices;
}

static void fill_entry(struct FletchingDeviceReportEntry* entry, ArrowDeviceType type,
                       const struct listed_devices* listed) {
  static const struct FletchingFoundDevice host = {-1, "host memory"};
  const struct runtime* runtime = runtime_of(type);
  const struct found_devices* found = &listed->found;
  *entry = (struct FletchingDeviceReportEntry){.device_type = type,
                                               .name = device_name(type),
                                               .runtime = runtime->title,
                                               .library = "",
                                               .version = "",
                                               .reason = ""};
  if (type == ARROW_DEVICE_CPU) {
    entry->n_devices = 1;
    entry->devices = &host;
  } else if (runtime->find_devices == NULL) {
    entry->presence = FLETCHING_PRESENCE_UNKNOWN;
    entry->reason = why_unknown(type);
    return;
  } else {
    const bool is_managed = type == ARROW_DEVICE_CUDA_MANAGED;
    entry->library = found->library != NULL ? found->library : "";
    entry->version = found->version;
    entry->reason = found->failure.message.text;
    entry->n_devices = is_managed ? listed->n_managed : found->n_devices;
    entry->devices = is_managed ? listed->managed : listed->all;
    if (entry->n_devices == 0 && found->n_devices > 0) {
      entry->reason = "no device with managed memory";
    }
  }
  entry->presence = entry->n_devices > 0 ? FLETCHING_PRESENCE_REAL : FLETCHING_PRESENCE_ABSENT;
}

static bool fill_report(struct FletchingDeviceReport* report, struct failure* failure) {
  for (int i = 0; i < N_RUNTIMES; ++i) {
    struct listed_devices* listed = &report->by_runtime[i];
    const struct runtime* runtime = numbered_runtime(i);
    if (runtime->find_devices != NULL) look_for_devices(runtime, listed);
    if (!list_devices(listed)) return no_memory(failure);
  }
  for (int i = 0; i < N_DEVICE_TYPES; ++i) {
    const ArrowDeviceType type = device_types[i];
    fill_entry(&report->entries[i], type, &report->by_runtime[device_runtime(type)]);
  }
  return true;
}

int FletchingDeviceReportCreate(struct FletchingDeviceReport** place,
                                struct FletchingMessage* message) {
  struct failure failure;
  no_failure(&failure);
  if (place == NULL) {
    (void)fail(&failure, EINVAL, "report: NULL: expected an address for the report");
    return report(&failure, message);
  }
  struct FletchingDeviceReport* made = calloc(1, sizeof *made);
  if (made == NULL) (void)no_memory(&failure);
  if (made != NULL && !fill_report(made, &failure)) {
    FletchingDeviceReportDestroy(made);
    made = NULL;
  }
  *place = made;
  return report(&failure, message);
}

int64_t FletchingDeviceReportCount(const struct FletchingDeviceReport* report) {
  return report != NULL ? N_DEVICE_TYPES : 0;
}

const struct FletchingDeviceReportEntry* FletchingDeviceReportGet(
    const struct FletchingDeviceReport* report, int64_t index) {
  return index >= 0 && index < FletchingDeviceReportCount(report) ? &report->entries[index] : NULL;
}

void FletchingDeviceReportDestroy(struct FletchingDeviceReport* report) {
  if (report == NULL) return;
  for (int i = 0; i < N_RUNTIMES; ++i) {
    free(report->by_runtime[i].found.devices);
    free(report->by_runtime[i].all);
  }
  free(report);
}

#endif  // FLETCHING_CORE_DEVICE_REPORT_H
