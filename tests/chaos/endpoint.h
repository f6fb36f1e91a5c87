// The verbs objects of one round: everything a queue pair needs, made together and destroyed together.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ringbolt::chaos {

inline constexpr std::uint32_t kWindow = 16;
inline constexpr std::size_t kSlotBytes = 65536;
inline constexpr std::size_t kDatagramBytes = 4096;
inline constexpr std::size_t kGrhBytes = 40;
inline constexpr std::uint32_t kQkey = 0x11112222;

/// What a round is like; both sides are told the same, except `side`.
struct RoundSettings {
  std::uint32_t round = 0;
  ibv_qp_type type = IBV_QPT_RC;
  bool sleeps_on_events = false;
  std::uint64_t seed = 0;
  std::uint32_t side = 0;
  std::uint8_t timeout = 14;
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
};

/// What one side has to know of the other.
struct PeerInfo {
  std::uint32_t qp_num = 0;
  std::uint32_t psn = 0;
  std::uint32_t rkey = 0;
  std::uint64_t address = 0;
  ibv_gid gid{};
};

/// Parts of the registered memory. Written by the peer: `target` and, beneath it, a counter for fetch-and-add.
enum class Area : std::size_t { send, receive, target, source, fetched, counter, count };

/// Deleters: destroying in the order of the members below must succeed, or the test has found something.
template <class T, int (*Destroy)(T*)>
struct Destroyer {
  void operator()(T* object) const {
    const int error = Destroy(object);
    if (error != 0) complain(error);
  }
  static void complain(int error);
};
template <class T, int (*Destroy)(T*)>
using Owned = std::unique_ptr<T, Destroyer<T, Destroy>>;

/// A queue pair with its memory and queues. Not thread-safe.
class Endpoint {
 public:
  /// Creates everything and brings the queue pair to INIT. Throws std::runtime_error naming the call and errno.
  Endpoint(ibv_context* context, int gid_index, const RoundSettings& settings);

  const RoundSettings& settings() const { return settings_; }
  PeerInfo info() const;

  /// Brings the queue pair to RTS towards the peer. Returns 0 or the errno of the refused call.
  int connect(const PeerInfo& peer);

  ibv_qp* qp() const { return qp_.get(); }
  ibv_cq* cq() const { return cq_.get(); }
  ibv_comp_channel* channel() const { return channel_.get(); }
  ibv_ah* address_handle() const { return ah_.get(); }
  std::uint32_t lkey() const { return mr_->lkey; }

  /// The bytes of one slot of an area.
  std::span<std::byte> slot(Area area, std::size_t index);
  /// Where the peer's slot of an area lies, for one-sided operations.
  static std::uint64_t remote_offset(Area area, std::size_t index);

 private:
  int connect_reliable_or_unreliable(const PeerInfo& peer);
  int connect_datagram(const PeerInfo& peer);

  RoundSettings settings_;
  int gid_index_;
  ibv_gid gid_{};
  std::uint32_t psn_ = 0;
  std::vector<std::byte> memory_;
  Owned<ibv_pd, ibv_dealloc_pd> pd_;
  Owned<ibv_mr, ibv_dereg_mr> mr_;
  Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  Owned<ibv_cq, ibv_destroy_cq> cq_;
  Owned<ibv_qp, ibv_destroy_qp> qp_;
  Owned<ibv_ah, ibv_destroy_ah> ah_;
};

/// Ends the process with a message: a call that must succeed did not.
[[noreturn]] void die(const std::string& message);

template <class T, int (*Destroy)(T*)>
void Destroyer<T, Destroy>::complain(int error) {
  die("destroying an object failed with errno " + std::to_string(error));
}

}  // namespace ringbolt::chaos
