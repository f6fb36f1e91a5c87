// Opening a device, and what can be asked of it.

#include <endian.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include "abi/objects.h"
#include "abi/process_registry.h"
#include "abi/recorded.h"
#include "base/c_border.h"
#include "base/error.h"
#include "device/call_faults.h"
#include "device/gid_table.h"
#include "device/limits.h"

#undef ibv_query_port

namespace ringbolt::abi {

void release_device(Device& device);

namespace {

constexpr uint16_t kDefaultPkey = 0xffff;
constexpr uint32_t kVendorOfSoftware = 0xffffff;  // as the kernel's software device says
constexpr uint8_t kPhysicalLinkUp = 5;
constexpr uint8_t kPhysicalDisabled = 3;

int compat_query_device(ibv_context* context, ibv_device_attr* attributes) {
  return ibv_query_device(context, attributes);
}
int compat_query_port(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attributes) {
  return ibv_query_port(context, port_num, attributes);
}

void fill_calls(WideVerbsContext& wide) {
  using base::caught_null;
  using base::guarded;
  using base::guarded_within;
  using base::put;
  verbs_context& known = wide.known;
  put(known.query_port, guarded<query_port>);
  put(known.create_cq_ex, guarded<create_cq_ex, caught_null>);
  put(known.query_device_ex, guarded<query_device_ex>);
  put(known.create_qp_ex, guarded<create_qp_ex, caught_null>);
  put(known.create_srq_ex, guarded<create_srq_ex, caught_null>);
  ibv_context_ops& ops = known.context.ops;
  put(ops._compat_query_device, guarded<compat_query_device>);
  put(ops._compat_query_port, guarded<compat_query_port>);
  put(ops.alloc_mw, guarded<alloc_mw, caught_null>);
  put(ops.bind_mw, guarded<bind_mw>);
  put(ops.dealloc_mw, guarded<dealloc_mw>);
  put(ops.poll_cq, guarded_within<poll_cq>());
  put(ops.req_notify_cq, guarded<request_notification>);
  put(ops.post_srq_recv, guarded_within<post_srq_receive>());
  put(ops.post_send, guarded_within<post_send>());
  put(ops.post_recv, guarded_within<post_receive>());
  record_calls<poll_cq, request_notification, post_send, post_receive, post_srq_receive>(ops);
  if (base::is_explaining()) {
    explain_calls(ops);
  }
  if (shadow() != nullptr) [[unlikely]] {
    sanitize_calls(ops);
  }
}

/// Active speed as the architecture encodes it for four lanes: the smallest that carries the port's nominal rate.
uint8_t speed_code(uint32_t gbps) {
  struct Step {
    uint32_t lane_gbps;
    uint8_t code;
  };
  constexpr Step kSteps[] = {{10, 4}, {14, 16}, {25, 32}, {50, 64}};
  const auto* step = std::ranges::find_if(kSteps, [&](const Step& one) { return one.lane_gbps * 4 >= gbps; });
  return step == std::end(kSteps) ? uint8_t{128} : step->code;
}

}  // namespace

/// Writes at most `size` bytes of the entry, as much as its caller knows.
static void fill_gid_entry(const device::Port& port, const ibv_gid& gid, uint32_t index, void* entry, size_t size) {
  ibv_gid_entry all{};
  all.gid = gid;
  all.gid_index = index;
  all.port_num = 1;
  all.gid_type = profile::is_version_1(port.profile.look.gids, index) ? IBV_GID_TYPE_ROCE_V1 : IBV_GID_TYPE_ROCE_V2;
  const uint32_t netdev = port.netdev_index;
  all.ndev_ifindex = netdev != 0 && netdev < device::kFirstStreamInterface ? netdev : 1;  // 1: the loopback interface
  std::memset(entry, 0, size);
  std::memcpy(entry, &all, std::min(size, sizeof all));
}

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

int query_port(ibv_context* context, uint8_t port_num, ibv_port_attr* attributes, size_t size) {
  if (port_num != 1) {
    return refuse_place("ibv_query_port", port_num, 0, 1);
  }
  const device::Port& port = Context::of(context).impl->port();
  const bool is_up = port.is_up();
  const profile::Profile& like = port.profile;
  ibv_port_attr all{};
  all.state = is_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
  all.max_mtu = IBV_MTU_4096;
  all.active_mtu = port.mtu;
  all.gid_tbl_len = static_cast<int>(like.look.gid_table_length);
  all.lid = profile::shown_lid(like.look, port.guid);
  all.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
  all.max_msg_sz = profile::limited(like.limits.message_bytes, device::kMaxMessageBytes);
  all.pkey_tbl_len = 1;
  all.max_vl_num = 1;
  all.active_width = like.look.width;
  all.active_speed = profile::limited(like.look.speed, speed_code(port.speed_gbps));
  all.phys_state = is_up ? kPhysicalLinkUp : kPhysicalDisabled;
  all.link_layer = IBV_LINK_LAYER_ETHERNET;
  std::memset(attributes, 0, size);
  std::memcpy(attributes, &all, std::min(size, sizeof all));
  return 0;
}

uint32_t gid_table_length(ibv_context* context) {
  return Context::of(context).impl->port().profile.look.gid_table_length;
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

using ringbolt::abi::Context;
using ringbolt::abi::Device;
namespace device = ringbolt::device;
namespace profile = ringbolt::profile;

extern "C" {

ibv_context* ibv_open_device(ibv_device* c) try {
  Device& opened = Device::of(c);
  auto context = std::make_unique<Context>();
  ringbolt::abi::prepare(context->wide);
  context->impl = std::make_unique<device::Context>(opened.port, ringbolt::abi::process_for(opened.port->fabric));
  ringbolt::abi::fill_calls(context->wide);
  ibv_context* result = context->c();
  result->device = c;
  // Nothing is asked through it, but programs duplicate it to share a device between processes.
  context->command = ringbolt::base::UniqueFd(open("/dev/null", O_RDWR | O_CLOEXEC));
  result->cmd_fd = context->command.get();
  result->async_fd = context->impl->events().descriptor();
  result->num_comp_vectors = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  pthread_mutex_init(&result->mutex, nullptr);
  ringbolt::abi::remember(context.get());
  opened.users.fetch_add(1);
  static_cast<void>(context.release());
  return result;
} catch (const ringbolt::base::Error& error) {
  std::fprintf(stderr, "ringbolt: %s\n", error.what());
  return ringbolt::abi::refuse<ibv_context>(error.errno_value());
} catch (...) {
  return ringbolt::base::caught_null();
}

int ibv_close_device(ibv_context* c) try {
  Context& context = Context::of(c);
  ringbolt::abi::forget(&context);
  if (context.objects.load() != 0) {
    return 0;  // what the program still holds works on; the memory stays until it exits
  }
  Device& opened = Device::of(c->device);
  delete &context;
  ringbolt::abi::release_device(opened);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_query_device(ibv_context* context, ibv_device_attr* attributes) try {
  const device::Port& port = Context::of(context).impl->port();
  device::inject_at_query(port);
  ibv_device_attr all{};
  std::snprintf(all.fw_ver, sizeof all.fw_ver, "ringbolt");
  all.node_guid = all.sys_image_guid = htobe64(profile::shown_guid(port.profile.look, port.guid, port.index));
  const profile::Limits& like = port.profile.limits;
  const auto granted = [](uint32_t limit, uint32_t own) { return static_cast<int>(profile::limited(limit, own)); };
  all.max_mr_size = profile::limited(like.advertised_mr_bytes, UINT64_MAX);
  all.page_size_cap = 0xfffff000;
  all.vendor_id = ringbolt::abi::kVendorOfSoftware;
  all.max_qp = granted(like.advertised_qp, device::kMaxQueuePairs);
  all.max_qp_wr = granted(like.qp_wr, device::kMaxQueueDepth);
  all.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_SYS_IMAGE_GUID;
  all.max_sge = all.max_sge_rd = granted(like.sge, device::kMaxSge);
  all.max_cq = granted(like.cq, device::kMaxObjects);
  all.max_pd = granted(like.pd, device::kMaxObjects);
  all.max_cqe = granted(like.cqe, device::kMaxCqe);
  all.max_mr = granted(like.mr, ringbolt::link::kRegionCount);
  if ((like.qp_types & profile::kUd) != 0) {
    all.max_ah = static_cast<int>(device::kMaxObjects);
  }
  if (port.profile.allows(profile::kRead)) {
    all.max_qp_rd_atom = all.max_qp_init_rd_atom = granted(like.read_atomic, device::kMaxReadAtomic);
    all.max_res_rd_atom = all.max_qp_rd_atom * all.max_qp;
  }
  all.atomic_cap = port.profile.allows(profile::kAtomic) ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
  if ((like.qp_types & profile::kRc) != 0) {
    all.device_cap_flags |= IBV_DEVICE_RC_RNR_NAK_GEN;
  }
  if (like.has_srq) {
    all.device_cap_flags |= IBV_DEVICE_SRQ_RESIZE;
    all.max_srq_sge = static_cast<int>(device::kMaxSge);
    all.max_srq = static_cast<int>(device::kMaxObjects);
    all.max_srq_wr = static_cast<int>(device::kMaxSrqDepth);
  }
  if (like.has_windows) {
    all.device_cap_flags |= IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS;
    all.max_mw = static_cast<int>(device::kMaxObjects);
  }
  all.max_pkeys = 1;
  all.phys_port_cnt = 1;
  *attributes = all;
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

// The exported symbol takes the structure of 2006, which ends before the newer fields.
int ibv_query_port(ibv_context* context, uint8_t port_num, _compat_ibv_port_attr* attributes) try {
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
  *speed = Context::of(context).impl->port().speed_gbps * kUnitsPerGbps;
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

int ibv_query_gid(ibv_context* context, uint8_t port_num, int index, ibv_gid* gid) try {
  if (port_num != 1 || index < 0 || static_cast<uint32_t>(index) >= ringbolt::abi::gid_table_length(context)) {
    errno = ringbolt::abi::refuse_place("ibv_query_gid", port_num, index, ringbolt::abi::gid_table_length(context));
    return -1;
  }
  ringbolt::abi::note_lookup(context);
  const auto addresses = Context::of(context).impl->port().addresses();
  const auto& gids = addresses->shown;
  *gid = static_cast<size_t>(index) < gids.size() ? gids[static_cast<size_t>(index)] : ibv_gid{};
  return 0;
} catch (...) {
  return ringbolt::base::caught_minus_one();
}

int _ibv_query_gid_ex(ibv_context* context, uint32_t port_num, uint32_t index, ibv_gid_entry* entry, uint32_t flags,
                      size_t entry_size) try {
  if (port_num != 1 || index >= ringbolt::abi::gid_table_length(context) || flags != 0) {
    return ringbolt::abi::refuse_place("ibv_query_gid_ex", port_num, index, ringbolt::abi::gid_table_length(context));
  }
  ringbolt::abi::note_lookup(context);
  const device::Port& port = Context::of(context).impl->port();
  const auto addresses = port.addresses();
  if (index >= addresses->shown.size() || device::is_zero(addresses->shown[index])) {
    return ENODATA;  // an answer to who looks at all of them
  }
  ringbolt::abi::fill_gid_entry(port, addresses->shown[index], index, entry, entry_size);
  return 0;
} catch (...) {
  return ringbolt::base::caught_errno();
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, size_t max_entries, uint32_t flags,
                             size_t entry_size) try {
  if (flags != 0) {
    return -EINVAL;
  }
  ringbolt::abi::note_lookup(context);
  const device::Port& port = Context::of(context).impl->port();
  const auto addresses = port.addresses();
  auto* at = reinterpret_cast<std::byte*>(entries);
  size_t count = 0;
  for (size_t i = 0; i < addresses->shown.size(); ++i) {
    if (device::is_zero(addresses->shown[i])) {
      continue;
    }
    if (count == max_entries) {
      return -EINVAL;
    }
    ringbolt::abi::fill_gid_entry(port, addresses->shown[i], static_cast<uint32_t>(i), at + count * entry_size,
                                  entry_size);
    ++count;
  }
  return static_cast<ssize_t>(count);
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
