#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/lock_guard.h"
#include "base/mutex.h"
#include "base/unique_fd.h"
#include "bootstrap/config.h"
#include "bootstrap/side_channel.h"
#include "engine/engine.h"
#include "fabric/agreement.h"
#include "fabric/liveness.h"
#include "mesh/bring_up.h"
#include "mesh/client_table.h"
#include "mesh/watch.h"
#include "ringbolt/status.h"

namespace ringbolt::mesh {

struct MeshPlan {
  /// Its `timeout_ms` bounds all of join().
  bootstrap::Config meeting;
  /// As verbs::Library::open() takes it.
  std::string verbs = "auto";
  engine::Checksums checksums = engine::Checksums::carried;  ///< RINGBOLT_CRC
  bool is_measured = true;                                   ///< RINGBOLT_MEASURE
  bringup::DeviceMatrix matrix = {};
  fabric::LivenessKnobs liveness = {};
};

/// All ranks that have met, and what moves their chunks: the side channel, the engine over the cables, the watch of
/// which rank and cable is alive, and a thread that sees to all of it while nobody waits. What chunks are about its
/// clients know. Thread-safe.
/// Owns the side channel, the descriptors and the thread, and a share of the station, of which a driver call that is
/// left behind may hold another. It does not own its clients.
class Mesh : public engine::Receiver, private Watch::Surroundings {
 public:
  /// Blocks until all ranks are there and connected. Throws JoinError and base::Error.
  /// Gives up after the meeting's timeout, with JoinError; EINVAL: more ranks than fabric::kMaxWatchedRanks.
  static std::unique_ptr<Mesh> join(const MeshPlan& plan);
  /// Leaves: its clients take part until then.
  /// Blocks for about a second at most for others, and 0.1 s for each cable that is being connected anew. Without
  /// `lock`, from no client's function, and when no other thread is in wait().
  ~Mesh() override;

  /// Taken for all that follows, but for wait().
  base::Mutex lock;

  uint32_t rank() const { return side_channel_.rank(); }
  uint32_t n_ranks() const { return side_channel_.n_ranks(); }
  /// Does not change any more: without the lock, except for what the station moves (engine()).
  const BroughtUp& made() const { return made_; }
  /// Guarded by `lock`, but for Engine::own(). Null in a mesh of one rank.
  engine::Engine* engine() RINGBOLT_REQUIRES(lock) { return made_.station ? &made_.station->engine() : nullptr; }

  /// From now on the client is given what comes in its channels, and what has come in them before. Throws
  /// std::bad_alloc.
  /// The client outlives the mesh, and is called before this returns.
  template <class SomeClient>
  void attach(SomeClient& client, Channels channels) RINGBOLT_REQUIRES(lock) {
    clients_.attach(client, channels);
  }
  /// To a rank, or bootstrap::kEveryone, through the side channel, of a kind that is not the mesh's own (mesh/word.h).
  /// False: there is no way.
  bool send_message(uint32_t to, uint16_t kind, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(lock) {
    return side_channel_.send(to, kind, bytes).has_value();
  }
  /// Clients have something to do at once: Client::advance() is called, by the thread if nobody waits.
  /// Never blocks: it writes an eventfd.
  void want_turn() RINGBOLT_REQUIRES(lock);

  /// [fabric cable]: whether this rank takes it to be down. News of cables takes its time: others may differ.
  /// Empty in a mesh of one rank.
  std::vector<bool> down_cables() const RINGBOLT_REQUIRES(lock) { return watch_.cables().down(); }
  /// Ranks that have failed, and how; and those of them whose processes have ended for certain.
  /// Grows only. The reference is good as long as the lock is held.
  const std::map<uint32_t, Status>& failed_ranks() const RINGBOLT_REQUIRES(lock) { return watch_.ranks().failed(); }
  fabric::RankSet ended_ranks() const RINGBOLT_REQUIRES(lock) { return watch_.ranks().ended(); }
  /// A status with what is known of ranks that are silent, if what it is about took too long. Takes the lock.
  Status explained(Status status) RINGBOLT_EXCLUDES(lock) {
    if (status.code == ETIMEDOUT) {  // nothing else is: a call that ends well must not wait for the lock
      const base::LockGuard guard(lock);
      status = watch_.ranks().explained(std::move(status));
    }
    return status;
  }

  /// Waits until `is_done`, which is asked under the lock and comes true by what arrives or by a deadline of its own.
  /// Moves chunks meanwhile: by polling at first, then asleep. Takes the lock.
  /// Has no deadline of its own, and blocks for ever if is_done() never comes true. It must not throw: the mesh would
  /// count a caller for ever who waits. Several threads may wait at the same time.
  void wait(const std::function<bool()>& is_done) RINGBOLT_EXCLUDES(lock) {
    const base::LockGuard guard(lock);
    wait_locked(is_done, 0);
  }
  /// Likewise, under `lock`, which it gives back at times. `now_ns`: if the caller has just looked, else 0.
  void wait_locked(const std::function<bool()>& is_done, uint64_t now_ns) RINGBOLT_REQUIRES(lock);
  /// A few polls of that, under `lock` all the time, and without a look at the clock: that takes as long as a poll, and
  /// something short is mostly over by then (`what.is_over()`). False if it is not.
  /// False also once in kBriefWaitsPerLook calls without a poll: then wait_locked(), which looks at the clock.
  template <class Short>
  [[nodiscard]] bool wait_briefly(const Short& what) RINGBOLT_REQUIRES(lock) {
    if (++n_brief_ % kBriefWaitsPerLook == 0) {
      return false;  // what goes by the clock wants its turn
    }
    n_waiting_.store(n_waiting_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    for (uint32_t n_polls = 1; n_polls < kPollsPerLook && !what.is_over(); ++n_polls) {
      progress(now_ns_);
    }
    if (!what.is_over()) {
      n_waiting_.store(n_waiting_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
      return false;
    }
    end_waiting(now_ns_);
    return true;
  }

  // engine::Receiver: called from within the engine.
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override RINGBOLT_REQUIRES(lock);
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override RINGBOLT_REQUIRES(lock);
  void on_beat(uint32_t cable, std::span<const std::byte> bytes) override RINGBOLT_REQUIRES(lock);
  void on_cable_failed(uint32_t cable) override RINGBOLT_REQUIRES(lock);

 private:
  Mesh(const MeshPlan& plan, bootstrap::SideChannel side_channel, BroughtUp made);

  // mesh.cpp
  bool progress(uint64_t now_ns) RINGBOLT_REQUIRES(lock);
  bool advance_clients(uint64_t now_ns) RINGBOLT_REQUIRES(lock);

  void watch(uint64_t now_ns) RINGBOLT_REQUIRES(lock);

  // Watch::Surroundings
  bool send(uint32_t to, uint16_t kind, std::span<const std::byte> bytes, bool is_latest_only) override
      RINGBOLT_REQUIRES(lock) {
    return side_channel_.send(to, kind, bytes, is_latest_only).has_value();
  }
  uint64_t hosts_answering(uint32_t within_ms) override RINGBOLT_REQUIRES(lock) {
    return side_channel_.hosts_answering(within_ms);
  }
  void on_message(uint32_t from, uint16_t kind, std::span<const std::byte> bytes) override RINGBOLT_REQUIRES(lock);
  void on_rank_failed(uint32_t rank, const Status& status) override RINGBOLT_REQUIRES(lock);
  void on_rank_given_up(uint32_t rank, bool is_certain) override RINGBOLT_REQUIRES(lock);

  // thread.cpp
  void run() RINGBOLT_EXCLUDES(lock);
  void leave() RINGBOLT_EXCLUDES(lock);
  /// Whether something may have come. Several threads may sleep at the same time, on the same descriptors.
  bool sleep_until_something(uint64_t most_ns) RINGBOLT_EXCLUDES(lock);
  void nap(uint64_t most_ns);
  void give_way() RINGBOLT_REQUIRES(lock);
  /// So often a poller looks at the clock, which takes as long as a poll; so many brief waits in a row may be over
  /// before anybody has.
  static constexpr uint32_t kPollsPerLook = 8;
  static constexpr uint32_t kBriefWaitsPerLook = 8;
  void end_waiting(uint64_t now_ns) RINGBOLT_REQUIRES(lock);
  bool finish_sending() RINGBOLT_REQUIRES(lock);
  void leave_to_thread(bool has_left_queue) RINGBOLT_REQUIRES(lock);
  bool is_left_busy() const RINGBOLT_REQUIRES(lock);
  void arm() RINGBOLT_REQUIRES(lock);

  bootstrap::SideChannel side_channel_;
  BroughtUp made_;
  ClientTable clients_ RINGBOLT_GUARDED_BY(lock);
  Watch watch_ RINGBOLT_GUARDED_BY(lock);
  uint64_t next_advance_ns_ RINGBOLT_GUARDED_BY(lock) = 0;
  uint32_t n_unadvanced_ RINGBOLT_GUARDED_BY(lock) =
      0;  ///< times that something has come since clients were gone through
  // base::now_ns() of the latest look at the clock, by any thread.
  uint64_t now_ns_ RINGBOLT_GUARDED_BY(lock) = 0;
  uint32_t polls_per_yield_ RINGBOLT_GUARDED_BY(lock) = 32;
  uint32_t n_brief_ RINGBOLT_GUARDED_BY(lock) = 0;  ///< of wait_briefly()
  // These are written under the lock, but is_ending_, so a load and a store do for a sum. The thread reads them
  // without it, to choose between sleeps: one that has changed meanwhile costs a nap, no chunk.
  std::atomic<int> n_waiting_ = 0;
  std::atomic<uint64_t> last_waited_ns_ = 0;
  std::atomic<bool> wants_turn_ = false;  // some client has more to do at once
  std::atomic<bool> has_left_queue_ = false;
  uint64_t relayed_before_ RINGBOLT_GUARDED_BY(lock) = 0;  // when the last caller went
  uint64_t n_idle_leaves_ RINGBOLT_GUARDED_BY(lock) = 0;   // callers that have gone since one that has relayed
  // Set by the destructor before it writes wake_.
  std::atomic<bool> is_ending_ = false;
  // An eventfd: want_turn(), callers that leave work behind, and the destructor write it; the thread alone reads it.
  base::UniqueFd wake_;
  // A timerfd, which leave_to_thread() sets and nap() reads.
  base::UniqueFd relay_timer_;
  // The last member, as it uses all others; joined by the destructor. None in a mesh of one rank.
  std::thread thread_;
};

}  // namespace ringbolt::mesh
