#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "cluster/counter_layout.h"

namespace ringbolt::cluster {

/// Counts of one queue pair under one of its locks: one writer at a time, so that counting takes no locked instruction.
/// Plain words, each added to in one instruction: whoever reads them does so through the kernel, never in this process.
struct alignas(64) CounterLane {
  std::array<uint64_t, RINGBOLT_COUNTER_LANE_WORDS> words{};

  /// Under the lane's lock only (CounterCell), or two additions at once lose one.
  void add(RingboltLaneWord word, uint64_t count) { words[word] += count; }
};

/// What one queue pair counts in. Never set back: its numbers are part of the port's for ever.
struct CounterCell {
  CounterLane first;   ///< under the send lock
  CounterLane second;  ///< under the receive lock
};

/// The counters of one port as this process writes them: blocks of a file that all processes of the port share
/// (docs/formats/counters.md). A block belongs to the process that holds the file's lock on it, which the kernel takes
/// away when that ends, however it does; what was counted stays in the file. Thread-safe.
class CounterPage {
 public:
  /// Whose the port is: this process' own, or a peer's, for which it counts too.
  enum class Port : uint8_t { own, peers };
  /// Makes the file, with mode 0600, if it is missing, and takes a block. Throws base::Error naming the path: EINVAL
  /// for a file that is none of ours, else what open, lock or space refuse. `page_bytes` is that of the system's
  /// memory; tests name greater ones.
  static std::shared_ptr<CounterPage> open(const std::string& path, Port port = Port::own, size_t page_bytes = 0);
  /// A block, and the memory that was mapped for it.
  struct MappedBlock {
    void* memory = nullptr;
    size_t length_bytes = 0;
    std::byte* words = nullptr;  ///< the block; null: there is none
  };
  /// Counts that nobody reads: for a port whose file can't be used.
  static std::shared_ptr<CounterPage> in_own_memory();
  ~CounterPage();
  CounterPage(const CounterPage&) = delete;
  CounterPage& operator=(const CounterPage&) = delete;

  /// A cell for one queue pair, to be given back when nothing is counted in it any more. Valid as long as the page.
  /// Takes a further block if need be, which costs system calls; without space it counts in own memory.
  /// Throws std::bad_alloc.
  CounterCell& take();
  /// Any thread may call it; allocates nothing, so it never fails. The next take() may hand the same cell out again,
  /// with its numbers as they are.
  void give_back(CounterCell& cell);

  /// Adds to what happens seldom. Never blocks.
  void add(RingboltSharedWord word, uint64_t count = 1) { shared_[word].fetch_add(count, std::memory_order_relaxed); }

 private:
  CounterPage() = default;
  /// Locks and maps the next block that no other process has. Without one: `words` null, and errno says why.
  MappedBlock map_block() RINGBOLT_REQUIRES(mutex_);
  /// Takes over the mapping until the page ends, and makes its cells free. Memory for that must have been reserved
  /// where a throw would leak the mapping.
  void adopt(const MappedBlock& block) RINGBOLT_REQUIRES(mutex_);

  base::UniqueFd file_;  // the locks live as long as it
  Port port_ = Port::own;
  size_t page_bytes_ = RINGBOLT_COUNTER_BLOCK_BYTES;
  // Of the first block, set before anybody else knows the page: so add() reads it without the lock.
  std::atomic<uint64_t>* shared_ = nullptr;
  base::Mutex mutex_;
  // Blocks below it are ours or were others' when we looked; block 0 is the head. It only rises.
  uint64_t next_block_ RINGBOLT_GUARDED_BY(mutex_) = 1;
  std::vector<MappedBlock> blocks_ RINGBOLT_GUARDED_BY(mutex_);
  std::vector<CounterCell*> free_ RINGBOLT_GUARDED_BY(mutex_);
};

/// Adds up the file at `path`. ENOENT: nobody has counted there yet; EINVAL: it is no file of counters; else what open
/// or read say. Never maps it, so that a file that shrinks meanwhile does no harm. Thread-safe.
base::Result<RingboltCounterSum> read_counters(const std::string& path);

/// All counters as programs see them, in the order in which they are listed.
inline std::span<const RingboltCounter> all_counters() { return kRingboltCounters; }

}  // namespace ringbolt::cluster
