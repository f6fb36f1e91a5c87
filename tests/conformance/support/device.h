// The device under test: the first one listed, or RINGBOLT_TEST_DEVICE.
#pragma once

#include "handles.h"

namespace ringbolt::conformance {

/// An open device with what the tests ask of it all the time.
struct Device {
  Context context;
  ibv_device_attr attr{};
  ibv_port_attr port{};
  uint8_t port_num = 1;
  uint8_t gid_index = 1;
  ibv_gid gid{};
};

/// Throws SetUpError when there is none. GID index: RINGBOLT_TEST_GID_INDEX, else 1.
Device open_device();

Pd make_pd(const Device& device);
Cq make_cq(const Device& device, int entries, ibv_comp_channel* channel = nullptr,
           void* context = nullptr);
Channel make_channel(const Device& device);

/// Whether `fd` becomes readable within so many milliseconds.
bool is_readable(int fd, int wait_ms);

/// Makes reads of `fd` return EAGAIN instead of waiting.
void set_nonblocking(int fd);

/// Waits for an async event of the device and acknowledges it. Throws after the deadline.
ibv_async_event wait_async_event(const Device& device);

/// True when no async event is waiting.
bool has_no_async_event(const Device& device);

}  // namespace ringbolt::conformance
