#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "bootstrap/circle.h"
#include "bootstrap/config.h"
#include "engine/engine.h"
#include "fabric/liveness.h"
#include "group/bring_up.h"
#include "group/communicator.h"
#include "group/courier.h"
#include "group/group_numbers.h"
#include "group/mending.h"
#include "group/reconnection.h"
#include "group/shrinking.h"

namespace ringbolt::group {

struct WorldPlan {
  bootstrap::Config meeting;
  std::string verbs = "auto";
  engine::Checksums checksums = engine::Checksums::carried;  ///< RINGBOLT_CRC
  bool is_measured = true;                                   ///< RINGBOLT_MEASURE
  bringup::DeviceMatrix matrix = {};
  fabric::LivenessKnobs liveness = {};
};

/// All ranks that have met, and what moves their chunks: the side channel, the engine over the cables, who watches
/// which rank and cable is alive, and a thread that sees to all of it while nobody waits in a call.
class World : public engine::Receiver, public std::enable_shared_from_this<World> {
 public:
  /// Blocks until all ranks are there and connected. Throws JoinError and base::Error.
  static std::shared_ptr<World> join(const WorldPlan& plan);
  ~World() override;

  uint32_t rank() const { return circle_.rank(); }
  uint32_t n_ranks() const { return circle_.n_ranks(); }

  /// Taken for all that follows, but for wait().
  base::Mutex& lock() RINGBOLT_RETURNS_LOCK(lock_) { return lock_; }
  /// Guarded by lock(), but for Engine::own(). Null in a world of one rank.
  engine::Engine* engine() RINGBOLT_REQUIRES(lock_) { return made_.station ? &made_.station->engine() : nullptr; }
  const BroughtUp& made() const { return made_; }
  /// The group of these ranks of the world, of which this rank is number `self`. Its schedules do without the cables
  /// that are `avoided` ([fabric cable]; those beyond its end are not): these must be the same on all its ranks.
  /// `origin`: see Communicator. Ends, taking the lock, when nobody holds it; the world stays until then. Throws
  /// JoinError: there is a group of that number.
  std::shared_ptr<Communicator> make_communicator(uint16_t id, std::vector<uint32_t> members, uint32_t self,
                                                  std::vector<bool> avoided, uint16_t origin = 0)
      RINGBOLT_REQUIRES(lock_);
  /// Whether cables that are not `avoided` join these ranks, through others, too.
  bool are_joined(const std::vector<uint32_t>& ranks, const std::vector<bool>& avoided) const;
  /// [fabric cable]: whether this rank takes it to be down. News of cables takes its time: others may differ.
  std::vector<bool> down_cables() const RINGBOLT_REQUIRES(lock_);
  /// The ranks that are left of a group, once its members have agreed who that is: a collective call of those. Takes
  /// the lock. Blocks until `deadline_ns` at most. Throws JoinError: the deadline has passed, or the others have gone
  /// on without this rank.
  std::shared_ptr<Communicator> shrink(const std::shared_ptr<Communicator>& communicator, uint64_t deadline_ns)
      RINGBOLT_EXCLUDES(lock_);
  /// Fails all calls of all groups, and all later ones.
  void break_off(const Status& status) RINGBOLT_REQUIRES(lock_);
  /// The first number, of those for groups that are split, that no group of this rank has had.
  uint16_t next_group_id() const RINGBOLT_REQUIRES(lock_) { return numbers_.next_split(); }
  /// [number]: whether this rank can give it to a group that is split off, again or for the first time.
  std::vector<bool> free_group_ids() const RINGBOLT_REQUIRES(lock_) {
    return numbers_.free_for_split(groups_under_way());
  }
  /// Keeps numbers for groups that all ranks are about to make: false if this rank has given one of them away. What
  /// comes for them is kept until make_communicator() or unreserve(), after which those that have not been made never
  /// are.
  bool reserve(std::span<const uint16_t> ids) RINGBOLT_REQUIRES(lock_) {
    return numbers_.reserve(ids, groups_under_way());
  }
  void unreserve(std::span<const uint16_t> ids) RINGBOLT_REQUIRES(lock_);
  /// Sees to it that a call goes on that wants a turn.
  void see_to(Call& call) RINGBOLT_REQUIRES(lock_);
  /// Takes part in what couriers of all ranks carry, from now on; `sink` must outlive the world. Once, at the
  /// beginning; null in a world of one rank. Works under lock() as well.
  Courier* start_courier(Courier::Sink& sink) RINGBOLT_REQUIRES(lock_);
  /// Ranks that have failed, and how.
  const std::map<uint32_t, Status>& failed_ranks() const RINGBOLT_REQUIRES(lock_) { return failed_; }

  /// A status with what is known of ranks that are silent, if its call took too long. Takes the lock.
  Status explained(Status status) RINGBOLT_EXCLUDES(lock_);

  /// Waits until `is_done`, which is asked under the lock and comes true by what arrives or by a deadline of its own.
  /// Moves chunks meanwhile: by polling at first, then asleep. Takes the lock.
  void wait(const std::function<bool()>& is_done) RINGBOLT_EXCLUDES(lock_) {
    const base::LockGuard guard(lock_);
    wait_locked(is_done, 0);
  }
  /// Likewise, under lock(), which it gives back at times. `now_ns`: if the caller has just looked, else 0.
  void wait_locked(const std::function<bool()>& is_done, uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  /// A few polls of that, under lock() all the time, and without a look at the clock: that takes as long as a poll, and
  /// a short call is mostly over by then. False if it is not.
  [[nodiscard]] bool wait_briefly(const ShortCall& call) RINGBOLT_REQUIRES(lock_);

  // engine::Receiver: called from within the engine.
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override RINGBOLT_REQUIRES(lock_);
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override RINGBOLT_REQUIRES(lock_);
  void on_beat(uint32_t cable, std::span<const std::byte> bytes) override RINGBOLT_REQUIRES(lock_);
  void on_cable_failed(uint32_t cable) override RINGBOLT_REQUIRES(lock_);

 private:
  World(const WorldPlan& plan, bootstrap::Circle circle, BroughtUp made);

  // world.cpp
  struct Early {
    engine::ChunkHeader header;
    engine::Receipt receipt;
    std::vector<std::byte> word;
  };
  bool progress(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  bool advance_calls(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  bool may_come(uint16_t group) const RINGBOLT_REQUIRES(lock_);
  std::vector<bool> groups_under_way() const RINGBOLT_REQUIRES(lock_);
  Communicator* communicator(uint16_t group) const RINGBOLT_REQUIRES(lock_);
  void end(const Communicator* communicator) RINGBOLT_EXCLUDES(lock_);
  bool is_member(const Communicator& communicator, const engine::ChunkHeader& header) const;

  // watch.cpp: what is heard and told
  void watch(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void hurry() RINGBOLT_REQUIRES(lock_) { next_beat_ns_ = next_watch_ns_ = 0; }
  void beat(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  std::vector<std::byte> beat_bytes(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void hear_beat(std::span<const std::byte> bytes, std::optional<uint32_t> cable) RINGBOLT_REQUIRES(lock_);
  bool agrees_that_works(uint32_t fabric_cable) RINGBOLT_REQUIRES(lock_);
  void hear_cables(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void hear_ports(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void hear_hosts(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void hear_side_channel(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void hear_message(const bootstrap::Event& event) RINGBOLT_REQUIRES(lock_);
  void hear_end(const bootstrap::Event& event, uint64_t now_ns) RINGBOLT_REQUIRES(lock_);

  // failing.cpp: what follows from it
  void apply(const fabric::LivenessChange& change) RINGBOLT_REQUIRES(lock_);
  void change_cable(uint32_t fabric_cable, bool is_up, const std::string& why) RINGBOLT_REQUIRES(lock_);
  void set_cable(uint32_t fabric_cable, bool is_up, const std::string& why) RINGBOLT_REQUIRES(lock_);
  std::string cables_of(uint32_t rank) const;
  bool leads_to_failed(uint32_t fabric_cable) const RINGBOLT_REQUIRES(lock_);
  void fail_rank(uint32_t rank, const Status& status, bool is_certain) RINGBOLT_REQUIRES(lock_);
  void tell_failure(const Communicator& communicator, const Status& status) RINGBOLT_REQUIRES(lock_);
  void fail_unreachable() RINGBOLT_REQUIRES(lock_);

  // healing.cpp: cables that have failed
  void mend(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void mend_one(uint32_t cable, uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  void end_reconnecting(uint32_t cable) RINGBOLT_REQUIRES(lock_);
  void tell_mending(uint32_t cable) RINGBOLT_REQUIRES(lock_);
  void hear_mending(uint32_t from, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(lock_);

  // shrink.cpp
  Shrinking* shrinking(uint16_t group) RINGBOLT_REQUIRES(lock_);
  void send_shrinking(uint16_t group, uint32_t to, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(lock_);
  void hear_shrinking(uint32_t from, uint16_t group, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(lock_);

  // thread.cpp
  void run() RINGBOLT_EXCLUDES(lock_);
  void leave() RINGBOLT_EXCLUDES(lock_);
  bool sleep_until_something(uint64_t most_ns) RINGBOLT_EXCLUDES(lock_);
  void nap(uint64_t most_ns);
  void give_way() RINGBOLT_REQUIRES(lock_);
  void end_waiting(uint64_t now_ns) RINGBOLT_REQUIRES(lock_);
  bool finish_sending() RINGBOLT_REQUIRES(lock_);
  void leave_to_thread(bool has_left_queue) RINGBOLT_REQUIRES(lock_);
  bool is_left_busy() const RINGBOLT_REQUIRES(lock_);
  void arm() RINGBOLT_REQUIRES(lock_);

  base::Mutex lock_;
  bootstrap::Circle circle_;
  BroughtUp made_;
  std::optional<fabric::Liveness> liveness_ RINGBOLT_GUARDED_BY(lock_);
  fabric::LivenessKnobs knobs_ RINGBOLT_GUARDED_BY(lock_);
  std::map<uint16_t, Communicator*> communicators_ RINGBOLT_GUARDED_BY(lock_);
  std::unique_ptr<Courier> courier_ RINGBOLT_GUARDED_BY(lock_);
  /// Of groups that this rank has not made yet.
  std::map<uint16_t, std::vector<Early>> early_ RINGBOLT_GUARDED_BY(lock_);
  GroupNumbers numbers_ RINGBOLT_GUARDED_BY(lock_);
  std::map<uint32_t, Status> failed_ RINGBOLT_GUARDED_BY(lock_);
  fabric::RankSet ended_ RINGBOLT_GUARDED_BY(lock_) = 0;  // of these, whose processes have ended for certain
  /// Ranks that may yet be back, and what is known of them.
  std::map<uint32_t, std::string> silent_ RINGBOLT_GUARDED_BY(lock_);
  std::map<uint16_t, std::unique_ptr<Shrinking>> shrinkings_ RINGBOLT_GUARDED_BY(lock_);  // [group]
  std::vector<bool> is_leaving_ RINGBOLT_GUARDED_BY(lock_);                               // [rank]
  std::vector<std::string> down_cables_ RINGBOLT_GUARDED_BY(lock_);  // [fabric cable]: why, empty while it is up
  /// [fabric cable]: changes so far, so that an odd one is down; all ranks agree on the greatest that any has told.
  std::vector<uint16_t> cable_versions_ RINGBOLT_GUARDED_BY(lock_);
  std::vector<Mending> mendings_ RINGBOLT_GUARDED_BY(lock_);                             // [local cable]
  std::vector<std::unique_ptr<Reconnection>> reconnections_ RINGBOLT_GUARDED_BY(lock_);  // [local cable]: under way
  std::vector<uint64_t> received_bytes_ RINGBOLT_GUARDED_BY(lock_);  // [local cable]: when last looked at
  /// [local cable]: its port says so, and has not been seen active since.
  std::vector<bool> has_lost_port_ RINGBOLT_GUARDED_BY(lock_);
  uint64_t incarnation_;
  uint64_t turn_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint64_t next_beat_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;  // through the side channel
  uint64_t next_watch_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint64_t next_mend_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint64_t next_port_look_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint64_t next_advance_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint32_t n_unadvanced_ RINGBOLT_GUARDED_BY(lock_) =
      0;  ///< times that something has come since calls were gone through
  uint64_t now_ns_ RINGBOLT_GUARDED_BY(lock_) = 0;
  uint32_t polls_per_yield_ RINGBOLT_GUARDED_BY(lock_) = 32;
  uint32_t n_brief_ RINGBOLT_GUARDED_BY(lock_) = 0;  ///< short calls that had to wait
  std::atomic<int> n_waiting_ = 0;
  std::atomic<uint64_t> last_waited_ns_ = 0;
  std::atomic<bool> wants_turn_ = false;  // some call has more to do at once
  std::atomic<bool> has_left_queue_ = false;
  uint64_t relayed_before_ RINGBOLT_GUARDED_BY(lock_) = 0;  // when the last caller went
  uint64_t n_idle_leaves_ RINGBOLT_GUARDED_BY(lock_) = 0;   // callers that have gone since one that has relayed
  std::atomic<bool> is_ending_ = false;
  base::UniqueFd wake_;
  base::UniqueFd relay_timer_;
  std::thread thread_;
};

}  // namespace ringbolt::group
