#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "pair/peer.h"
#include "pair/transport.h"

namespace ringbolt::tools::perf {

using pair::text_of;
using pair::Transport;

enum class Operation : uint8_t { kSend, kWrite, kRead, kAtomic };
/// How much of each message its receiver compares: every byte; the stamps at both ends and the first bytes; nothing.
enum class Check : uint8_t { kFull, kSample, kNone };
enum class AtomicKind : uint8_t { kFetchAdd, kCompareSwap };

inline constexpr std::array kOperations{Operation::kSend, Operation::kWrite, Operation::kRead, Operation::kAtomic};
inline constexpr std::array kChecks{Check::kFull, Check::kSample, Check::kNone};
inline constexpr std::array kAtomicKinds{AtomicKind::kFetchAdd, AtomicKind::kCompareSwap};

/// What is measured. Both ends of a run must have the same.
struct Parameters {
  Operation operation = Operation::kSend;
  Transport transport = Transport::kRc;
  AtomicKind atomic_kind = AtomicKind::kFetchAdd;
  bool has_latency = false;
  bool has_bandwidth = true;
  bool is_bidirectional = false;
  Check latency_check = Check::kSample;
  Check bandwidth_check = Check::kFull;
  std::vector<uint64_t> sizes;  ///< bytes, ascending; 0: a UD datagram as large as the path takes
  uint32_t queue_pairs = 1;     ///< of bandwidth
  uint64_t iterations = 0;      ///< for each size and figure; 0: duration_s says
  double duration_s = 0;        ///< for each size and figure, if iterations is 0
  double most_s = 0;            ///< of `matrix`: for each figure, whatever iterations says; 0: perf's own rule
  bool may_lose = true;         ///< UC and UD; else that is a failure
  friend bool operator==(const Parameters&, const Parameters&) = default;
};

/// What each end chooses for itself. 0: the default.
/// Depths count requests of one queue pair. objection_to() has what can't be had together.
struct Tuning : pair::PortChoice {
  uint32_t tx_depth = 0;
  uint32_t rx_depth = 0;
  uint32_t signal_every = 0;
  uint32_t post_list = 1;
  int inline_bytes = -1;  ///< -1: as much as the device gives, for latency; none for bandwidth
  bool has_events = false;
  double line_rate_gbps = -1;  ///< negative: as the ends' ports say; 0: none, nothing is judged
};

/// Less than this is not worth a figure: the run goes on until it has taken so long, except where `most_s` is set.
inline constexpr uint64_t kLeastRunNs = 10'000'000;

const char* text_of(Operation operation);  ///< "send"
const char* text_of(Check check);          ///< "full"
const char* text_of(AtomicKind kind);      ///< "fetch_add"

/// One operation of the device: "RC SEND".
std::string title_of(const Parameters& parameters);

/// What of these can't be had together, in words for the user; empty: all is well. Thread-safe.
std::string objection_to(const Parameters& parameters, const Tuning& tuning);

/// What both ends of a measurement must have been asked for alike.
std::vector<pair::HelloEntry> entries_of(const Parameters& parameters);

/// Powers of two from 2 to `most` bytes, as perftest's -a takes them.
std::vector<uint64_t> all_sizes(uint64_t most);

/// How many messages of one size a queue pair holds. Message m is sent from slot m % slots_used() and lands in slot
/// m % receive_slots.
struct Depths {
  uint32_t in_flight = 0;      ///< posted and not completed, at most
  uint32_t send_slots = 0;     ///< at least two more than in_flight
  uint32_t receive_slots = 0;  ///< also the window: sent and not yet known to be checked
  uint32_t signal_every = 0;   ///< of the posted, every so many'th completes visibly; at most in_flight
  uint32_t post_list = 1;
  bool has_one_place = false;  ///< nothing is compared: all messages of a queue pair share one, as in perftest

  /// By default as many as fit a budget of memory that stays in a processor's cache. Thread-safe.
  /// Of latency, where one message is under way, as few as do.
  static Depths of(uint64_t size_bytes, const Parameters& parameters, const Tuning& tuning, bool is_latency);
  /// For a device whose queues hold no more than `most` messages.
  /// Keeps the invariants that are told above; never below one message.
  void limit(uint64_t most);
};

/// How many of its slots an end sends from, to one that receives in `receive_slots`: the latter should be no multiple
/// of it, so that what a slot held before never is what it should hold next. Both ends compute it. Thread-safe.
/// Both at least 1 and `send_slots` at least 2.
uint32_t slots_used(uint32_t send_slots, uint32_t receive_slots);

}  // namespace ringbolt::tools::perf
