#include "device.h"

#include <fcntl.h>
#include <poll.h>

#include <cstdlib>

#include "deadline.h"

namespace ringbolt::conformance {
namespace {

ibv_device* pick(ibv_device** list, const char* wanted) {
  for (ibv_device** device = list; *device != nullptr; ++device) {
    if (wanted == nullptr || std::strcmp(ibv_get_device_name(*device), wanted) == 0) {
      return *device;
    }
  }
  throw SetUpError(wanted == nullptr ? std::string("no verbs device is listed")
                                     : std::string("no verbs device is named ") + wanted);
}

}  // namespace

Device open_device() {
  Device device;
  ibv_device** list = must(ibv_get_device_list(nullptr), "ibv_get_device_list");
  const std::unique_ptr<ibv_device*, void (*)(ibv_device**)> owner(list, ibv_free_device_list);
  ibv_device* chosen = pick(list, std::getenv("RINGBOLT_TEST_DEVICE"));
  device.context.reset(must(ibv_open_device(chosen), "ibv_open_device"));
  if (const char* index = std::getenv("RINGBOLT_TEST_GID_INDEX")) {
    device.gid_index = static_cast<uint8_t>(std::atoi(index));
  }
  ibv_context* context = device.context.get();
  must_succeed(ibv_query_device(context, &device.attr), "ibv_query_device");
  must_succeed(ibv_query_port(context, device.port_num, &device.port), "ibv_query_port");
  must_succeed(ibv_query_gid(context, device.port_num, device.gid_index, &device.gid),
               "ibv_query_gid");
  return device;
}

Pd make_pd(const Device& device) {
  return Pd(must(ibv_alloc_pd(device.context.get()), "ibv_alloc_pd"));
}

Cq make_cq(const Device& device, int entries, ibv_comp_channel* channel, void* context) {
  return Cq(
      must(ibv_create_cq(device.context.get(), entries, context, channel, 0), "ibv_create_cq"));
}

Channel make_channel(const Device& device) {
  return Channel(must(ibv_create_comp_channel(device.context.get()), "ibv_create_comp_channel"));
}

bool is_readable(int fd, int wait_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, wait_ms) == 1 && (entry.revents & POLLIN) != 0;
}

void set_nonblocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  must_succeed(fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 0 : errno, "fcntl(O_NONBLOCK)");
}

ibv_async_event wait_async_event(const Device& device) {
  if (!is_readable(device.context->async_fd, Deadline().remaining_ms())) {
    throw SetUpError("no async event came");
  }
  ibv_async_event event{};
  must_succeed(ibv_get_async_event(device.context.get(), &event) == 0 ? 0 : errno,
               "ibv_get_async_event");
  ibv_ack_async_event(&event);
  return event;
}

bool has_no_async_event(const Device& device) { return !is_readable(device.context->async_fd, 0); }

}  // namespace ringbolt::conformance
