#include "pair/device.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "bringup/gid_choice.h"
#include "bringup/survey.h"
#include "failure.h"
#include "node_environment.h"
#include "verbs/codes.h"

namespace ringbolt::tools::pair {
namespace {

// Of READs and atomics: more on one queue pair gains nothing, and the number goes into eight bits.
constexpr int kMostOutstanding = 16;
// What a Mac's driver counts its queues in (docs/profiles.md).
constexpr uint64_t kFrameBytes = 4096;

uint8_t depth_of(int most) { return static_cast<uint8_t>(std::clamp(most, 1, kMostOutstanding)); }

/// Of an empty name the first.
verbs::Context open_device(const verbs::Library& library, const std::string& name) {
  try {
    const std::vector<std::string> names = verbs::device_names(library);
    if (names.empty()) {
      throw ProbeFailure("the verbs library has no device");
    }
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      throw ProbeFailure(fmt::format("there is no device {}; there are: {}", name, fmt::join(names, ", ")));
    }
    return verbs::Context(library, name);
  } catch (const base::Error& error) {
    throw ProbeFailure(error.what());
  }
}

/// The index of the GID that bring-up would take.
uint8_t choose_gid(const verbs::Context& context, uint8_t port, ibv_gid& gid) {
  try {
    const bringup::GidChoice choice = bringup::choose_gid(bringup::read_gid_table(context, port));
    if (!choice.chosen) {
      throw ProbeFailure(fmt::format("{}: {}", context.device(), choice.text()));
    }
    gid = bringup::ibv_gid_of(choice.chosen->gid);
    return choice.chosen->index;
  } catch (const base::Error& error) {
    throw ProbeFailure(error.what());
  }
}

}  // namespace

std::string verbs_path(const std::string& wanted) {
  if (wanted == "ours") {
    return library_folder() + "/libibverbs.so.1";
  }
  if (wanted == "system") {
    for (const char* folder : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib"}) {
      std::string path = std::string(folder) + "/libibverbs.so.1";
      if (::access(path.c_str(), R_OK) == 0) {
        return path;
      }
    }
    throw UsageError("the system has no libibverbs.so.1; install rdma-core, or give --verbs a path");
  }
  if (::access(wanted.c_str(), R_OK) != 0) {
    throw UsageError("there is no verbs library " + wanted + "; --verbs takes ours, system or a path");
  }
  // A name without a slash would be looked up on the library path.
  return std::filesystem::absolute(wanted).string();
}

verbs::Library open_verbs(const std::string& path) {
  const verbs::Library library = verbs::Library::open(path);
  const verbs::Calls& calls = library.calls();
  std::string missing;
  for (const auto& [is_there, name] : {std::pair{calls.query_device != nullptr, "ibv_query_device"},
                                       {calls.create_comp_channel != nullptr, "ibv_create_comp_channel"},
                                       {calls.destroy_comp_channel != nullptr, "ibv_destroy_comp_channel"},
                                       {calls.get_cq_event != nullptr, "ibv_get_cq_event"},
                                       {calls.ack_cq_events != nullptr, "ibv_ack_cq_events"},
                                       {calls.create_ah != nullptr, "ibv_create_ah"},
                                       {calls.destroy_ah != nullptr, "ibv_destroy_ah"},
                                       {calls.wc_status_str != nullptr, "ibv_wc_status_str"}}) {
    if (!is_there) {
      missing += (missing.empty() ? "" : ", ") + std::string(name);
    }
  }
  if (!missing.empty()) {
    throw base::Error(ENOSYS, "find functions", path, "it lacks " + missing + ", which this command measures with");
  }
  return library;
}

void fail_call(const char* call, int error) {
  throw ProbeFailure(fmt::format("{}: {}", call, base::reason_of(std::abs(error))));
}

Device::Device(const verbs::Library& library, const std::string& name, const PortChoice& choice)
    : library_(library), context_(open_device(library, name)), port_(choice.port) {
  pd_ = own(verbs().alloc_pd(context()), "ibv_alloc_pd");
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
  // enum ibv_mtu: 1 is 256 bytes, 5 is 4096.
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

uint64_t Device::most_message_bytes() const {
  const uint64_t fits = static_cast<uint64_t>(std::max(limits_.max_qp_wr, 1)) * kFrameBytes;
  const uint64_t most = attributes_.max_msg_sz != 0 ? attributes_.max_msg_sz : fits;  // 0: the port does not say
  return counts_frames() ? std::min(most, fits) : most;
}

uint64_t Device::depth_of_message(uint64_t bytes) const {
  return counts_frames() ? std::max<uint64_t>((bytes + kFrameBytes - 1) / kFrameBytes, 1) : 1;
}

OwnedVerbs<ibv_cq> Device::make_cq(uint64_t entries, ibv_comp_channel* channel) const {
  return own(verbs().create_cq(context(), static_cast<int>(entries), nullptr, channel, 0), "ibv_create_cq");
}

double Device::port_rate_gbps() const { return verbs::rate_gbps(attributes_.active_width, attributes_.active_speed); }

Region::Region(const Device& device, size_t bytes, unsigned remote_access, const char* fewer, size_t most_bytes) {
  const size_t whole = rounded_up(bytes, kPageBytes);
  if (whole > most_bytes) {
    throw ProbeFailure(fmt::format("{} bytes of buffers are too many: give smaller {}", whole, fewer));
  }
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kPageBytes, whole)));
  if (memory_ == nullptr) {
    fail_call("aligned_alloc", ENOMEM);
  }
  std::memset(memory_.get(), 0, whole);
  const auto access = static_cast<int>(IBV_ACCESS_LOCAL_WRITE | remote_access);
  region_ = device.own(device.verbs().reg_mr(device.pd(), data(), whole, access), "ibv_reg_mr");
}

}  // namespace ringbolt::tools::pair
