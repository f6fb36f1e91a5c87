// What can be asked of a device and its port (ibv_query_device(3), ibv_query_port(3), ibv_query_gid(3),
// ibv_query_pkey(3)).

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "abi/attributes.h"
#include "abi/gid_entries.h"
#include "abi/objects.h"
#include "base/c_border.h"
#include "device/call_faults.h"

#undef ibv_query_port

namespace ringbolt::abi {
namespace {

/// Full membership of the default partition.
constexpr uint16_t kDefaultPkey = 0xffff;

/// EINVAL: there is no such port, or the port's table has no such index.
int refuse_place(const char* call, uint32_t port_num, int64_t index, uint32_t length) {
  return base::refused(EINVAL, call, [&] {
    return port_num != 1
               ? base::Explanation{fmt::format("there is no port {}: each device has port 1", port_num),
                                   "ports are counted from 1"}
               : base::Explanation{fmt::format("no index {} with these flags: the table has {}", index, length),
                                   "count from 0 to gid_tbl_len or pkey_tbl_len of ibv_query_port"};
  });
}

/// Calls `ask` with the GID table of the context's port as it is at this moment.
template <class Ask>
auto ask_gids(ibv_context* context, Ask&& ask) {
  const device::Port& port = port_of(context);
  // A snapshot, held until the answer is written: another thread may learn of new addresses.
  const auto addresses = port.addresses();
  const profile::Look& look = port.profile.look;
  return ask(GidEntries(addresses->shown, look.gid_table_length, look.gids, port.netdev_index));
}

}  // namespace

int query_port(ibv_context* context, uint8_t port_num, ibv_port_attr* attributes, size_t size) {
  if (port_num != 1) {
    return refuse_place("ibv_query_port", port_num, 0, 1);
  }
  const device::Port& port = port_of(context);
  const ibv_port_attr all = port_attributes(port.profile, {port.is_up(), port.mtu, port.guid, port.speed_gbps});
  // `size` is what the program's header has: older ones are shorter, newer ones longer.
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &all, std::min(size, sizeof all));
  return 0;
}

int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    size_t size) {
  if (input != nullptr && input->comp_mask != 0) {
    return base::refused(EINVAL, "ibv_query_device_ex", [&] {
      return base::Explanation{fmt::format("comp_mask of the input is {:#x}", input->comp_mask), "leave it 0"};
    });
  }
  ibv_device_attr_ex all{};
  if (const int error = ibv_query_device(context, &all.orig_attr)) {
    return error;
  }
  all.phys_port_cnt_ex = 1;
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &all, std::min(size, sizeof all));
  return 0;
}

}  // namespace ringbolt::abi

using ringbolt::abi::GidEntries;

extern "C" {

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) try {
  const ringbolt::device::Port& port = ringbolt::abi::port_of(context);
  ringbolt::device::inject_at_query(port);
  *attributes = ringbolt::abi::device_attributes(port.profile, port.guid, port.index);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

// The exported symbol takes the structure of 2006, which ends before the newer fields.
int ibv_query_port(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attributes) try {
  // Up to where port_cap_flags2 begins (abi/layout.cpp).
  constexpr size_t kLegacyBytes = 48;
  return ringbolt::abi::query_port(context, port_num, reinterpret_cast<ibv_port_attr*>(attributes), kLegacyBytes);
} catch (...) {
  return ringbolt::base::caught_errno();
}

/// Newer than some headers. The port's nominal rate in units of 100 Mb/s, whether it is up or not. EINVAL.
int ibv_query_port_speed(ibv_context* context, uint32_t port_num, uint64_t* speed) try {
  constexpr uint64_t kUnitsPerGbps = 10;
  if (port_num != 1 || speed == nullptr) {
    return ringbolt::abi::refuse_place("ibv_query_port_speed", port_num, 0, 1);
  }
  *speed = ringbolt::abi::port_of(context).speed_gbps * kUnitsPerGbps;
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_query_gid(ibv_context* context, uint8_t port_num, int index, ibv_gid* gid) try {
  return ringbolt::abi::ask_gids(context, [&](const GidEntries& table) {
    if (port_num != 1 || !table.has(index)) {
      errno = ringbolt::abi::refuse_place("ibv_query_gid", port_num, index, table.length());
      return -1;
    }
    ringbolt::abi::note_lookup(context);
    *gid = table.at(static_cast<uint32_t>(index));
    return 0;
  });
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

/// ENODATA, for an empty slot, is an answer to who looks at all of them.
int _ibv_query_gid_ex(ibv_context* context, uint32_t port_num, uint32_t index, ibv_gid_entry* entry, uint32_t flags,
                      size_t entry_size) try {
  return ringbolt::abi::ask_gids(context, [&](const GidEntries& table) {
    if (port_num != 1 || !table.has(index) || flags != 0) {
      return ringbolt::abi::refuse_place("ibv_query_gid_ex", port_num, index, table.length());
    }
    ringbolt::abi::note_lookup(context);
    return table.write(index, entry, entry_size);
  });
} catch (...) {
  return ringbolt::base::caught_errno();
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max_entries, uint32_t flags,
                             size_t entry_size) try {
  if (flags != 0) {
    return -EINVAL;
  }
  ringbolt::abi::note_lookup(context);
  return ringbolt::abi::ask_gids(
      context, [&](const GidEntries& table) { return table.write_all(entries, max_entries, entry_size); });
} catch (...) {
  return -ringbolt::base::caught_errno();
}

int ibv_query_pkey(ibv_context*, uint8_t port_num, int index, __be16* pkey) try {
  if (port_num != 1 || index != 0) {
    errno = ringbolt::abi::refuse_place("ibv_query_pkey", port_num, index, 1);
    return -1;
  }
  *pkey = htobe16(ringbolt::abi::kDefaultPkey);
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int ibv_get_pkey_index(ibv_context*, uint8_t port_num, __be16 pkey) try {
  if (port_num == 1 && pkey == htobe16(ringbolt::abi::kDefaultPkey)) {
    return 0;
  }
  errno = ringbolt::base::refused(EINVAL, "ibv_get_pkey_index", [&] {
    return ringbolt::base::Explanation{fmt::format("no P_Key {:#x} at port {}", be16toh(pkey), port_num),
                                       "the default P_Key, 0xffff, is the one that there is, at port 1"};
  });
  return -1;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

}  // extern "C"
