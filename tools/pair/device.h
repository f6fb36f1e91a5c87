#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>

#include "pair/transport.h"
#include "verbs/objects.h"

namespace ringbolt::tools::pair {

/// The library that `wanted` means: "ours" (beside this command), "system" (the distribution's, wherever
/// LD_LIBRARY_PATH leads), or a path. Throws UsageError if there is none.
std::string verbs_path(const std::string& wanted);

/// Opens the library at that path, which must also have what measurements need beyond any library: address handles,
/// completion channels, ibv_query_device. Throws base::Error naming the library, or the calls that it lacks.
verbs::Library open_verbs(const std::string& path);

template <class T>
using OwnedVerbs = verbs::Owned<T>;

/// Ends a measurement because `call` failed with `error`, an errno; also with its negative, which some providers
/// return. Throws ProbeFailure.
/// Its words are errno's; 0 makes no sense.
[[noreturn]] void fail_call(const char* call, int error);

/// An open device and what its port says. Calls throw ProbeFailure. Not thread-safe.
/// Owns context and protection domain. `library` must outlive it; all that is made with it goes first.
class Device {
 public:
  /// `name`: empty for the first one.
  Device(const verbs::Library& library, const std::string& name, const PortChoice& choice);

  const verbs::Library& library() const { return library_; }
  const verbs::Calls& verbs() const { return library_.calls(); }
  ibv_context* context() const { return context_.get(); }
  ibv_pd* pd() const { return pd_.get(); }
  const std::string& name() const { return context_.device(); }
  uint8_t port() const { return port_; }
  const ibv_gid& gid() const { return gid_; }
  uint8_t gid_index() const { return gid_index_; }
  uint16_t lid() const { return attributes_.lid; }
  /// What one packet carries: of the port, or less if the choice says so.
  uint32_t mtu_bytes() const { return mtu_bytes_; }
  /// READs and atomics in flight: as target, and as initiator.
  uint8_t target_depth() const { return target_depth_; }
  uint8_t initiator_depth() const { return initiator_depth_; }
  bool has_rc() const { return limits_.max_qp_rd_atom > 0; }
  bool has_ud() const { return limits_.max_ah > 0; }
  /// It has the shape of a Mac's: one scatter entry, and neither RC nor UD. The depths of its queues are in frames.
  bool counts_frames() const { return !has_rc() && !has_ud() && limits_.max_sge == 1; }
  /// How many of a queue's depth one message takes.
  uint64_t depth_of_message(uint64_t bytes) const;
  /// Of one message: as the port says, or as fits a queue.
  uint64_t most_message_bytes() const;
  /// What ibv_query_device says.
  const ibv_device_attr& limits() const { return limits_; }
  /// Width times speed, as ibv_query_port reports it.
  double port_rate_gbps() const;

  /// Takes over what `call` returned; throws with errno if that is null.
  template <class T>
  OwnedVerbs<T> own(T* made, const char* call) const {
    if (made == nullptr) {
      fail_call(call, errno);
    }
    return OwnedVerbs<T>(made, verbs::Close(library_));
  }
  OwnedVerbs<ibv_cq> make_cq(uint64_t entries, ibv_comp_channel* channel = nullptr) const;

 private:
  const verbs::Library& library_;
  verbs::Context context_;
  OwnedVerbs<ibv_pd> pd_;
  uint8_t port_;
  ibv_port_attr attributes_{};
  ibv_device_attr limits_{};
  ibv_gid gid_{};
  uint8_t gid_index_ = 0;
  uint32_t mtu_bytes_ = 0;
  uint8_t target_depth_ = 1;
  uint8_t initiator_depth_ = 1;
};

/// Registered memory of whole pages, zero at first. Not thread-safe.
/// Owns memory and registration, which goes before it.
class Region {
 public:
  Region() = default;
  static constexpr size_t kMostBytes = size_t{8} << 30U;
  /// `fewer`: what to give less of where it is above `most_bytes`, for messages: "-s or -q".
  Region(const Device& device, size_t bytes, unsigned remote_access, const char* fewer, size_t most_bytes = kMostBytes);

  std::byte* data() const { return memory_.get(); }
  uint64_t address() const { return reinterpret_cast<uintptr_t>(memory_.get()); }
  uint32_t local_key() const { return region_->lkey; }
  uint32_t remote_key() const { return region_->rkey; }
  /// Gives the registration up: 0, or what ibv_dereg_mr returned.
  int drop(const Device& device) { return region_ ? device.verbs().dereg_mr(region_.release()) : 0; }

  /// Devices that map whole pages want regions to begin on them; the largest page in use has so many bytes.
  static constexpr size_t kPageBytes = 16384;
  static constexpr size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  std::unique_ptr<std::byte, Free> memory_;
  OwnedVerbs<ibv_mr> region_;
};

}  // namespace ringbolt::tools::pair
