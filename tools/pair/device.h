#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "pair/transport.h"
#include "probe/verbs_objects.h"

namespace ringbolt::tools::pair {

/// An open device and what its port says. Calls throw ProbeFailure. Not thread-safe.
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
  /// Of one message, as the port says.
  uint32_t most_message_bytes() const { return attributes_.max_msg_sz; }
  /// What ibv_query_device says.
  const ibv_device_attr& limits() const { return limits_; }
  /// Width times speed, as ibv_query_port reports it.
  double port_rate_gbps() const;

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

}  // namespace ringbolt::tools::pair
