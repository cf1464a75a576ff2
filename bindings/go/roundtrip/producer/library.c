#include "library.h"

#define FUNCTIONS FLETCHING_GO_PRODUCER_FUNCTIONS
#define THEIRS(name) FletchingProducer##name
#define OURS(name) fletching_go_producer_##name
#include "forward.h"

static const struct FletchingExtDevEvent* event_at(uintptr_t event) {
  return (const struct FletchingExtDevEvent*)event;
}

int fletching_go_producer_ext_dev_query(uintptr_t event) {
  return event_at(event)->query(event_at(event));
}

void fletching_go_producer_ext_dev_synchronize(uintptr_t event) {
  event_at(event)->synchronize(event_at(event));
}

int fletching_go_producer_ext_dev_wait_on(uintptr_t event, uintptr_t queue) {
  return event_at(event)->wait_on(event_at(event), (struct FletchingExtDevQueue*)queue);
}
