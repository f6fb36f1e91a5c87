// Which devices there are.

#include <endian.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "abi/objects.h"
#include "base/c_border.h"
#include "base/companion.h"
#include "base/error.h"
#include "device/port.h"

#undef ibv_get_device_list

namespace ringbolt::abi {
namespace {

/// Its one user is the list that it goes into.
Device* make_device(std::shared_ptr<const device::Port> port) {
  auto* made = new Device;
  made->c.node_type = IBV_NODE_CA;
  const int transport = port->profile.look.transport;  // may be none of the enumeration's
  static_assert(sizeof transport == sizeof made->c.transport_type);
  std::memcpy(&made->c.transport_type, &transport, sizeof transport);
  std::snprintf(made->c.name, sizeof made->c.name, "%s", port->name.c_str());
  std::snprintf(made->c.dev_name, sizeof made->c.dev_name, "uverbs%u", port->index);
  std::snprintf(made->c.dev_path, sizeof made->c.dev_path, "/sys/class/infiniband_verbs/uverbs%u", port->index);
  std::snprintf(made->c.ibdev_path, sizeof made->c.ibdev_path, "/sys/class/infiniband/%s", port->name.c_str());
  made->port = std::move(port);
  return made;
}

/// The list as programs hold it: pointers, then a null. `errno` says why there is none.
ibv_device** make_list(int* count) {
  std::vector<std::shared_ptr<const device::Port>> ports;
  try {
    ports = device::list_ports();
  } catch (const base::Error& error) {
    // The verbs have no way to say more than a number, and a number is not enough to find a wrong variable.
    std::fprintf(stderr, "ringbolt: %s\n", error.what());
    return refuse<ibv_device*>(error.errno_value());
  }
  struct FreeList {
    void operator()(ibv_device** list) const { ibv_free_device_list(list); }
  };
  std::unique_ptr<ibv_device*, FreeList> list(
      static_cast<ibv_device**>(std::calloc(ports.size() + 1, sizeof(ibv_device*))));
  if (list == nullptr) {
    return refuse<ibv_device*>(ENOMEM);
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    list.get()[i] = &make_device(ports[i])->c;
  }
  *count = static_cast<int>(ports.size());
  return list.release();
}

}  // namespace

/// A device lives as long as the list or a context that was opened from it: programs free the list first
/// (ibv_get_device_list(3)).
void release_device(Device& device) {
  if (device.users.fetch_sub(1) == 1) {
    delete &device;
  }
}

}  // namespace ringbolt::abi

using ringbolt::abi::Device;

extern "C" {

ibv_device** ibv_get_device_list(int* count) try {
  // Here, for everybody comes by, a foreign librdmacm included; whatever that then does, the verbs work.
  static_cast<void>(ringbolt::base::is_companion_ours("librdmacm.so.1", "ringbolt_rdmacm"));
  int found = 0;
  if (count != nullptr) {
    *count = 0;
  }
  ibv_device** list = ringbolt::abi::make_list(&found);
  if (count != nullptr) {
    *count = found;
  }
  return list;
} catch (...) {
  return ringbolt::base::caught_null();
}

void ibv_free_device_list(ibv_device** list) try {
  if (list == nullptr) {
    return;
  }
  for (ibv_device** each = list; *each != nullptr; ++each) {
    ringbolt::abi::release_device(Device::of(*each));
  }
  std::free(list);
} catch (...) {
  ringbolt::base::caught_nothing();
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

__be64 ibv_get_device_guid(ibv_device* device) try {
  const ringbolt::device::Port& port = *Device::of(device).port;
  return htobe64(ringbolt::profile::shown_guid(port.profile.look, port.guid, port.index));
} catch (...) {
  return ringbolt::base::caught_as<__be64>(0);
}

int ibv_get_device_index(ibv_device* device) try {
  return static_cast<int>(Device::of(device).port->index);
} catch (...) {
  return ringbolt::base::caught_as(-1);
}

}  // extern "C"
