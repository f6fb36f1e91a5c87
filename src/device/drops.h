#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/debug_log.h"
#include "base/mutex.h"
#include "cluster/counter_page.h"

namespace ringbolt::device {

/// Why a packet from the network came to nothing. Reliable connections repeat it; for others it is lost.
enum class Drop : uint8_t {
  bad_checksum,        ///< its ICRC does not fit
  unreadable,          ///< its headers make no packet
  foreign_partition,   ///< its P_Key is not the default one
  bad_management,      ///< to queue pair 1, but no management datagram
  unknown_queue_pair,  ///< there is none of that number
  not_ready,           ///< the queue pair is not connected, or in error
  wrong_type,          ///< its opcode is for another type of queue pair
  wrong_source,        ///< it comes from an address that the queue pair is not connected to
  unsealed,            ///< it comes from that address, but does not carry what only the peer there can know
  inbox_full,          ///< more packets wait for the queue pair than there is room for
  wrong_qkey,          ///< a datagram with another Q_Key
  no_receive,          ///< a datagram that finds no receive posted
};
inline constexpr size_t kDrops = static_cast<size_t>(Drop::no_receive) + 1;

/// The reason in words: "a wrong checksum".
const char* reason_of(Drop why);

/// Counts the dropped packets of each port, and with RINGBOLT_LOG=debug says so on standard error: the first of each
/// kind, then one a second at most. Thread-safe.
class Drops {
 public:
  Drops() : is_logged_(base::is_debug_log_wanted()) {}

  /// Packets of that network interface are counted under that name.
  void add_port(uint32_t interface_index, const std::string& name,
                std::shared_ptr<cluster::CounterPage> counters = nullptr);
  /// Packets of unknown interfaces are counted together.
  void count(uint32_t interface_index, Drop why);
  /// Where that interface's port counts; null for unknown ones.
  cluster::CounterPage* counters_of(uint32_t interface_index) const;

  struct Port {
    std::string name;
    std::array<uint64_t, kDrops> counts{};
  };
  /// Ports in the order in which they were added, behind the unknown ones.
  std::vector<Port> read() const;

 private:
  struct Entry {
    explicit Entry(std::string its_name) : name(std::move(its_name)) {}
    std::string name;
    std::shared_ptr<cluster::CounterPage> page;
    uint32_t interface_index = 0;
    std::array<std::atomic<uint64_t>, kDrops> counts{};
    std::array<base::LinePace, kDrops> paces;
    Entry* next = nullptr;
  };

  const Entry* find(uint32_t interface_index) const;
  Entry* find(uint32_t interface_index) { return const_cast<Entry*>(std::as_const(*this).find(interface_index)); }

  const bool is_logged_;
  // Of interfaces that no port is on. Entries are added at the front of a list and never taken out: readers need no
  // lock.
  Entry others_{"network"};
  std::atomic<Entry*> first_{nullptr};
  mutable base::Mutex adding_;
  std::vector<std::unique_ptr<Entry>> entries_ RINGBOLT_GUARDED_BY(adding_);
};

}  // namespace ringbolt::device
