// One unreliable connection to one peer, set up with exactly the masks and values that JACCL uses.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "rdma_library.h"

namespace ringbolt::jaccl {

/// What ranks tell each other about a queue pair: 32 bytes, host byte order.
struct PeerRecord {
  int32_t lid = -1;
  int32_t qp_num = -1;
  int32_t psn = -1;
  int32_t undefined = 0;
  std::array<uint8_t, 16> gid{};
};
static_assert(sizeof(PeerRecord) == 32);

inline constexpr int kPsn = 7;
inline constexpr int kQueueDepth = 32;
inline constexpr int kCompletionEntries = 64;

/// Not thread-safe. Functions throw std::runtime_error with what the library answered.
class PeerLink {
 public:
  PeerLink(const RdmaLibrary& rdma, const std::string& device_name);
  ~PeerLink();
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;

  PeerRecord record() const;
  /// RESET -> RTS towards the peer.
  void connect(const PeerRecord& peer);

  /// Registers memory in this link's domain; returns an index for the posts.
  size_t add_memory(void* memory, size_t length_bytes);

  void post_send(uint64_t wr_id, size_t memory, uint32_t length_bytes);
  void post_receive(uint64_t wr_id, size_t memory, uint32_t length_bytes);
  /// Completions that are there now.
  std::vector<ibv_wc> poll();

  uint32_t qp_num() const { return qp_->qp_num; }

 private:
  void open(const std::string& device_name);
  void find_gid();
  void modify(ibv_qp_attr& attr, int mask, const char* step);

  const RdmaLibrary* rdma_;
  ibv_context* context_ = nullptr;
  ibv_pd* pd_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
  ibv_port_attr port_{};
  ibv_gid gid_{};
  std::vector<ibv_mr*> memory_;
};

}  // namespace ringbolt::jaccl
