#include "pair/device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "probe/probe_failure.h"

namespace ringbolt::tools::pair {
namespace {

constexpr int kMostOutstanding = 16;

uint8_t depth_of(int most) { return static_cast<uint8_t>(std::clamp(most, 1, kMostOutstanding)); }

}  // namespace

Device::Device(const VerbsLibrary& verbs, const std::string& name, const PortChoice& choice)
    : verbs_(verbs), context_(open_device(verbs, name)), port_(choice.port) {
  name_ = verbs.get_device_name(context_->device);
  pd_ = own(verbs, verbs.alloc_pd(context()), "ibv_alloc_pd");
  if (const int error = verbs.query_port(context(), port_, &attributes_)) {
    throw ProbeFailure(fmt::format("{} has no port {}: {}", name_, port_, std::strerror(std::abs(error))));
  }
  if (attributes_.state != IBV_PORT_ACTIVE) {
    throw ProbeFailure(fmt::format("port {} of {} is not active: is its cable plugged in?", port_, name_));
  }
  if (choice.gid_index >= 0) {
    gid_index_ = static_cast<uint8_t>(choice.gid_index);
    if (verbs.query_gid(context(), port_, choice.gid_index, &gid_) != 0) {
      throw ProbeFailure(fmt::format("{} has no GID at index {} (-x)", name_, choice.gid_index));
    }
  } else {
    gid_index_ = choose_gid(verbs, context(), port_, gid_);
  }
  const uint32_t port_mtu = 128U << static_cast<unsigned>(attributes_.active_mtu);
  if (choice.mtu_bytes > port_mtu) {
    throw ProbeFailure(fmt::format("-m {} is above the MTU of the port, {} bytes", choice.mtu_bytes, port_mtu));
  }
  mtu_bytes_ = choice.mtu_bytes != 0 ? choice.mtu_bytes : port_mtu;
  if (const int error = verbs.query_device(context(), &limits_)) {
    fail_call("ibv_query_device", error);
  }
  target_depth_ = depth_of(limits_.max_qp_rd_atom);
  initiator_depth_ = depth_of(limits_.max_qp_init_rd_atom);
}

double Device::port_rate_gbps() const { return rate_of_codes(attributes_.active_width, attributes_.active_speed); }

ibv_mtu mtu_code(uint32_t bytes) {
  ibv_mtu code = IBV_MTU_256;
  while (code < IBV_MTU_4096 && (256U << static_cast<unsigned>(code)) <= bytes) {
    code = static_cast<ibv_mtu>(code + 1);
  }
  return code;
}

double rate_of_codes(uint8_t width, uint8_t speed) {
  double lanes = 0;
  switch (width) {
    case 1:
      lanes = 1;
      break;
    case 2:
      lanes = 4;
      break;
    case 4:
      lanes = 8;
      break;
    case 8:
      lanes = 12;
      break;
    case 16:
      lanes = 2;
      break;
    default:
      break;
  }
  // IBA volume 1, PortInfo: LinkSpeedActive and its extensions, in Gb/s of a lane.
  switch (speed) {
    case 1:
      return lanes * 2.5;
    case 2:
      return lanes * 5;
    case 4:
      return lanes * 10;
    case 8:
      return lanes * 10;
    case 16:
      return lanes * 14;
    case 32:
      return lanes * 25;
    case 64:
      return lanes * 50;
    case 128:
      return lanes * 100;
    default:
      return 0;
  }
}

}  // namespace ringbolt::tools::pair
