#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/connection.h"
#include "bootstrap/side_channel.h"

namespace ringbolt::bootstrap {

/// Which exchange: goes into FrameHeader::kind.
enum class Exchange : uint16_t { all_gather = 1, barrier = 2 };
const char* name_of(Exchange exchange);

/// Of a `lost` frame: an errno, and whether the rank left in order; behind them its address, as rank 0 saw it.
inline constexpr size_t kLostBytes = 8;

/// The connections of a SideChannel after all have met: those of rank 0 to everybody, or the one to rank 0. See
/// SideChannel for what the functions do. Owned by its SideChannel, and used by one thread at a time, as that is.
/// epoll holds descriptors of connections_, and forgets each as it is closed. No function throws but the constructor
/// and for want of memory.
class SideChannel::Connections {
 public:
  /// `config` is only used until it returns. `connections`: by rank, owned from here on. Throws base::Error: no
  /// descriptors are left.
  Connections(const Config& config, std::vector<Connection> connections);
  ~Connections();
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  uint32_t rank() const { return rank_; }
  uint32_t n_ranks() const { return n_ranks_; }
  int fd() const { return epoll_.get(); }

  Outcome<std::vector<std::vector<std::byte>>> exchange(Exchange which, std::span<const std::byte> mine,
                                                        uint64_t deadline_ns);
  base::Result<void> send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes, bool is_latest_only);
  uint64_t hosts_answering(uint32_t within_ms) const;
  std::vector<Event> poll();

 private:
  using Shares = std::vector<std::optional<std::vector<std::byte>>>;
  bool is_root() const { return rank_ == 0; }

  // connections.cpp: connections and messages. Waits for up to timeout_ms, then serves what is ready. It may end
  // connections; callers look again.
  void step(int timeout_ms);
  // `peer` has a connection. It may be closed afterwards.
  void serve(uint32_t peer, bool has_input);
  void take_frames(uint32_t peer);
  void watch(uint32_t peer);
  // Without effect where there is no connection. Never blocks; who does not read for long is ended.
  void queue(uint32_t peer, const FrameHeader& header, const Payload& payload);
  void queue_to_all_but(uint32_t excluded, const FrameHeader& header, const Payload& payload);
  // Rank 0 alone. May move the frame's payload out.
  void forward(uint32_t from, Frame& frame);
  // Closes the connection, adds the event, tells all others on rank 0, and fails the exchanges. Without effect the
  // second time. `where`: its address, of a rank that this one has no connection to.
  void end(uint32_t peer, Event::Kind how, int errno_value, std::string where = {});
  void add_event(Event event, bool is_latest_only);
  // Makes fd() readable, or not.
  void mark_pending(bool is_pending);

  // exchanges.cpp Rank 0 by the first, the others by the second.
  void take_from_rank(uint32_t peer, Frame& frame);
  void take_from_root(Frame& frame);
  void take_share(uint32_t peer, Frame& frame);
  void take_shares(const Frame& frame);
  // Rank 0: of the shares that are there, kMaxGatheredBytes at most.
  size_t gathered_bytes() const;
  // Rank 0. Sets result_ and sends all shares once each rank's is there.
  void finish_if_complete();
  void fail(int errno_value, std::string text, uint32_t except);
  void tell_progress();

  const uint32_t rank_;
  const uint32_t n_ranks_;
  // As in Config.
  const uint64_t roster_again_ms_;
  const uint64_t silent_ms_;
  std::vector<Connection> connections_;  ///< by rank; without one, closed
  std::vector<bool> is_output_watched_;
  std::vector<bool> is_gone_;  ///< lost or left
  base::UniqueFd epoll_;
  base::UniqueFd pending_;  ///< an eventfd, readable while there are events, except during an exchange
  bool is_marked_ = false;
  std::vector<Event> events_;
  std::vector<bool> event_is_latest_only_;
  size_t event_bytes_ = 0;

  // Wraps after 2^32, on all ranks alike.
  uint32_t n_exchanges_ = 0;  ///< begun or, on rank 0, begun by others
  std::optional<Exchange> current_;
  std::string first_caller_;  ///< rank 0: "rank 2 called barrier"
  Exchange first_kind_ = Exchange::barrier;
  // Rank 0: of the exchange under way, by rank.
  Shares shares_;
  std::optional<std::vector<std::vector<std::byte>>> result_;
  // Rank 0: how many shares the last roster named.
  size_t n_told_ = 0;
  uint64_t tell_again_ns_ = 0;
  std::string missing_ = "rank 0";  ///< whom the exchange waits for, as far as is known
  uint64_t heard_ns_ = 0;  ///< not rank 0: when that has said so, or anything else; at first the exchange's start
  // Set once: the group's exchanges have failed for good. Messages go on.
  std::optional<Failure> failure_;
};

}  // namespace ringbolt::bootstrap
