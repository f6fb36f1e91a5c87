#include "pair/device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "base/error.h"
#include "probe/probe_failure.h"
#include "verbs/codes.h"

namespace ringbolt::tools::pair {
namespace {

constexpr int kMostOutstanding = 16;

uint8_t depth_of(int most) { return static_cast<uint8_t>(std::clamp(most, 1, kMostOutstanding)); }

}  // namespace

Device::Device(const verbs::Library& library, const std::string& name, const PortChoice& choice)
    : library_(library), context_(open_device(library, name)), port_(choice.port) {
  pd_ = own(library, verbs().alloc_pd(context()), "ibv_alloc_pd");
  if (const int error = verbs::query_port(verbs(), context(), port_, attributes_)) {
    throw ProbeFailure(fmt::format("{} has no port {}: {}", this->name(), port_, base::reason_of(std::abs(error))));
  }
  if (attributes_.state != IBV_PORT_ACTIVE) {
    throw ProbeFailure(fmt::format("port {} of {} is not active: is its cable plugged in?", port_, this->name()));
  }
  if (choice.gid_index >= 0) {
    gid_index_ = static_cast<uint8_t>(choice.gid_index);
    if (verbs().query_gid(context(), port_, choice.gid_index, &gid_) != 0) {
      throw ProbeFailure(fmt::format("{} has no GID at index {} (-x)", this->name(), choice.gid_index));
    }
  } else {
    gid_index_ = choose_gid(context_, port_, gid_);
  }
  const uint32_t port_mtu = 128U << static_cast<unsigned>(attributes_.active_mtu);
  if (choice.mtu_bytes > port_mtu) {
    throw ProbeFailure(fmt::format("-m {} is above the MTU of the port, {} bytes", choice.mtu_bytes, port_mtu));
  }
  mtu_bytes_ = choice.mtu_bytes != 0 ? choice.mtu_bytes : port_mtu;
  if (const int error = verbs().query_device(context(), &limits_)) {
    fail_call("ibv_query_device", error);
  }
  target_depth_ = depth_of(limits_.max_qp_rd_atom);
  initiator_depth_ = depth_of(limits_.max_qp_init_rd_atom);
}

double Device::port_rate_gbps() const { return verbs::rate_gbps(attributes_.active_width, attributes_.active_speed); }

}  // namespace ringbolt::tools::pair
