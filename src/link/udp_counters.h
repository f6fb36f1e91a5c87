#pragma once

#include <atomic>
#include <cstdint>

namespace ringbolt::link {

/// What an endpoint has seen since it was opened. `Word` is uint64_t in the copy that programs get.
template <class Word>
// Those that count_alone() counts are changed under the lock for receiving only, the others by any thread.
struct UdpCounts {
  Word received_packets{0};
  Word received_bytes{0};      ///< BTH to ICRC
  Word received_datagrams{0};  ///< system calls: packets / datagrams says how well GRO does
  Word sent_packets{0};
  Word sent_bytes{0};
  Word sent_messages{0};         ///< packets / messages says how well GSO does
  Word forwarded_packets{0};     ///< passed on to the process that they belong to
  Word forward_failures{0};      ///< that process does not take them now: dropped
  Word dropped_runts{0};         ///< shorter than a BTH and an ICRC, or no multiple of 4
  Word dropped_oversize{0};      ///< longer than kMaxUdpPacketBytes
  Word dropped_strangers{0};     ///< DestQP in a slot that nobody has
  Word dropped_malformed{0};     ///< without the control data that says which address they came to, cut off, ...
  Word no_buffer{0};             ///< times that every buffer was held by somebody: packets wait in the kernel
  Word send_full{0};             ///< times that the socket was full: EAGAIN, ENOBUFS
  Word send_refused{0};          ///< packets that the kernel refused: no route, too long, ...
  Word unreachable{0};           ///< ECONNREFUSED, EHOSTUNREACH and their like, from ICMP or a route
  Word segmentation_refused{0};  ///< GSO calls that had to be repeated packet by packet
  Word group_changes{0};         ///< times that the sharing of the port was set anew
};

using UdpCounters = UdpCounts<uint64_t>;

/// The same while it is being counted. Thread-safe.
using UdpTally = UdpCounts<std::atomic<uint64_t>>;

/// Not one moment's picture, but each count is right.
UdpCounters read(const UdpTally& tally);

inline void count(std::atomic<uint64_t>& word, uint64_t by = 1) { word.fetch_add(by, std::memory_order_relaxed); }

/// For words that only one thread changes at a time: no locked instruction.
inline void count_alone(std::atomic<uint64_t>& word, uint64_t by = 1) {
  word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
}

}  // namespace ringbolt::link
