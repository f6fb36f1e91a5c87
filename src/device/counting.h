#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "cluster/counter_page.h"
#include "device/drops.h"
#include "transport/rc_requester.h"
#include "transport/rc_responder.h"
#include "transport/uc_responder.h"
#include "wire/packet.h"

/// What a port counts. Bytes are those of InfiniBand packets, from the BTH to the ICRC, in words of 4; a message
/// through memory counts as the packets that it would have been. docs/metrics.md says what moves each counter.
namespace ringbolt::device {

/// Packets, and their words of 4 bytes.
struct Load {
  uint64_t packets = 0;
  uint64_t words = 0;
  friend bool operator==(const Load&, const Load&) = default;
};

inline constexpr uint32_t kPacketWords = 4;  ///< a BTH and an ICRC
inline constexpr uint32_t kRethWords = 4;
inline constexpr uint32_t kAethWords = 1;
inline constexpr uint32_t kDethWords = 2;
inline constexpr uint32_t kImmediateWords = 1;  ///< or a key to invalidate

/// Of a path MTU as the verbs number it: it is 2 to this power.
constexpr uint32_t mtu_shift(ibv_mtu mtu) { return 7 + (static_cast<uint32_t>(mtu) & 7U); }

/// A message of `length` bytes at a path MTU of 2^`mtu_shift` bytes; `extra_words` are its headers beyond BTHs.
constexpr Load load_of(uint32_t length, uint32_t mtu_shift, uint32_t extra_words) {
  const uint64_t packets = length == 0 ? 1 : (uint64_t{length - 1} >> mtu_shift) + 1;
  return {packets, packets * kPacketWords + (uint64_t{length} + 3) / 4 + extra_words};
}
/// What answers a READ.
constexpr Load read_answer(uint32_t length, uint32_t mtu_shift) {
  const Load answer = load_of(length, mtu_shift, kAethWords);
  return {answer.packets, answer.words + (answer.packets > 1 ? kAethWords : 0)};  // on the first packet and the last
}
inline constexpr Load kReadRequest{1, kPacketWords + kRethWords};
inline constexpr Load kAtomicRequest{1, kPacketWords + 7};
inline constexpr Load kAtomicAnswer{1, kPacketWords + kAethWords + 2};

/// A packet that came.
inline Load load_of(const wire::PacketView& view) {
  const wire::Bth& bth = view.headers.bth;
  const size_t trailer = bth.pad_count + wire::seal_bytes(bth) + wire::kIcrcBytes;
  return {1, (wire::header_bytes(bth.opcode) + view.payload.size() + trailer) / 4};
}

inline void count_sent(cluster::CounterLane& lane, const Load& load) {
  lane.add(kLaneXmitPackets, load.packets);
  lane.add(kLaneXmitWords, load.words);
}
inline void count_received(cluster::CounterLane& lane, const Load& load) {
  lane.add(kLaneRcvPackets, load.packets);
  lane.add(kLaneRcvWords, load.words);
}

/// A cell of a port's counters for as long as a queue pair lives. Not thread-safe; each lane has its own lock.
/// Holds the page of its port. The cell is this one's alone, so that counting needs no atomic addition; note() goes to
/// words that all share, by one.
class CountingCell {
 public:
  explicit CountingCell(std::shared_ptr<cluster::CounterPage> page) : page_(std::move(page)), cell_(page_->take()) {}
  ~CountingCell() { page_->give_back(cell_); }
  CountingCell(const CountingCell&) = delete;
  CountingCell& operator=(const CountingCell&) = delete;

  cluster::CounterLane& first() { return cell_.first; }
  cluster::CounterLane& second() { return cell_.second; }
  /// What happens seldom.
  void note(RingboltSharedWord word, uint64_t count = 1) { page_->add(word, count); }

 private:
  const std::shared_ptr<cluster::CounterPage> page_;
  cluster::CounterCell& cell_;
};

/// What protocol engines have counted so far, and the port has been told.
struct ToldCounters {
  transport::RequesterCounters requester;
  transport::ResponderCounters responder;
  transport::UcResponderCounters uc_responder;
};

// counting.cpp: each adds what is new since the last call.
void count_news(const transport::RequesterCounters& now, transport::RequesterCounters& told, CountingCell& cell);
void count_news(const transport::ResponderCounters& now, transport::ResponderCounters& told, CountingCell& cell);
void count_news(const transport::UcResponderCounters& now, transport::UcResponderCounters& told, CountingCell& cell);

/// A send, or a receive, that completes with an error. Not for success.
void count_failed_send(ibv_wc_status status, CountingCell& cell);
void count_failed_receive(ibv_wc_status status, CountingCell& cell);

}  // namespace ringbolt::device
