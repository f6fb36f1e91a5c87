// Continuous verified traffic over one endpoint: a window of SEND, WRITE with READ-back, READ and fetch-and-add.
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "endpoint.h"
#include "pattern.h"

namespace ringbolt::chaos {

/// What has happened so far.
struct TrafficCounts {
  std::uint64_t posted = 0;
  std::uint64_t completed = 0;
  std::uint64_t verified = 0;
  std::uint64_t received = 0;
  std::uint64_t flushed = 0;
};

/// Keeps kWindow operations in flight and checks every byte that arrives. Not thread-safe.
///
/// Reliable: SENDs must arrive complete and in order; a WRITE is read back and compared; a READ of the peer's constant
/// source is compared; fetch-and-add must count in steps of one. Unreliable: whatever arrives must be right.
class Traffic {
 public:
  Traffic(Endpoint& endpoint, const PeerInfo& peer);

  /// Posts until the window is full, unless draining or broken.
  void post();
  /// Handles up to one batch of completions; returns how many there were. Ends the process on wrong data.
  int poll();
  /// Stops posting; operations in flight go on.
  void drain() { is_draining_ = true; }

  bool is_idle() const { return in_flight_ == 0; }
  /// The first error status of a completion, IBV_WC_SUCCESS while there was none.
  ibv_wc_status first_error() const { return first_error_; }
  /// The same of our own requests alone: receives may be flushed first when none of ours was under way.
  ibv_wc_status first_send_error() const { return first_send_error_; }
  const TrafficCounts& counts() const { return counts_; }

 private:
  enum class Step : std::uint8_t { free, send, write, read_back, read_source, fetch_add };
  struct Slot {
    Step step = Step::free;
    std::uint32_t length = 0;
    Origin origin{};
  };

  void post_receive(std::size_t index);
  void post_slot(std::size_t index);
  void post_operation(std::size_t index, ibv_wr_opcode opcode, Area local, Area remote, std::uint32_t length);
  void on_receive(const ibv_wc& completion);
  void on_sent(const ibv_wc& completion);
  void on_error(const ibv_wc& completion);
  void verify(std::span<const std::byte> bytes, const Origin& origin, const char* what);
  std::uint32_t side_of_peer() const { return 1 - endpoint_.settings().side; }

  Endpoint& endpoint_;
  PeerInfo peer_;
  std::mt19937_64 random_;
  std::array<Slot, kWindow> slots_{};
  std::uint64_t next_send_ = 1;
  std::uint64_t next_receive_ = 1;
  std::uint64_t next_write_ = 1;
  std::uint64_t next_count_ = 0;
  std::uint32_t in_flight_ = 0;
  bool is_draining_ = false;
  ibv_wc_status first_error_ = IBV_WC_SUCCESS;
  ibv_wc_status first_send_error_ = IBV_WC_SUCCESS;
  TrafficCounts counts_;
};

}  // namespace ringbolt::chaos
