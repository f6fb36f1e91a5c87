#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "bootstrap/circle.h"
#include "bootstrap/config.h"
#include "engine/engine.h"
#include "fabric/liveness.h"
#include "group/bring_up.h"
#include "group/communicator.h"

namespace ringbolt::group {

struct WorldPlan {
  bootstrap::Config meeting;
  std::string verbs = "auto";
  bool has_crc = true;
  bringup::DeviceMatrix matrix = {};
  fabric::LivenessKnobs liveness = {};
};

/// All ranks that have met, and what moves their chunks: the side channel, the engine over the cables, who watches
/// which rank and cable is alive, and a thread that sees to all of it while nobody waits in a call.
class World : public engine::Receiver {
 public:
  /// Blocks until all ranks are there and connected. Throws JoinError and base::Error.
  static std::shared_ptr<World> join(const WorldPlan& plan);
  ~World() override;

  uint32_t rank() const { return circle_.rank(); }
  uint32_t n_ranks() const { return circle_.n_ranks(); }

  /// Taken for all that follows, but for wait().
  std::mutex& lock() { return lock_; }
  engine::Engine* engine() { return made_.station ? &made_.station->engine() : nullptr; }
  const BroughtUp& made() const { return made_; }
  /// The group of these ranks of the world, of which this rank is number `self`. Ends when nobody holds it.
  std::shared_ptr<Communicator> make_communicator(uint16_t id, std::vector<uint32_t> members, uint32_t self);
  /// The first number that no group of this rank has had.
  uint16_t next_group_id() const { return next_group_id_; }
  /// Ranks that have failed, and how.
  const std::map<uint32_t, Status>& failed_ranks() const { return failed_; }

  /// Waits until `is_done`, which is asked under the lock and comes true by what arrives or by a deadline of its own.
  /// Moves chunks meanwhile: by polling at first, then asleep. Takes the lock.
  void wait(const std::function<bool()>& is_done);

  // engine::Receiver
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override;
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override;
  void on_beat(uint32_t cable, std::span<const std::byte> bytes) override;
  void on_cable_failed(uint32_t cable) override;

 private:
  World(const WorldPlan& plan, bootstrap::Circle circle, BroughtUp made);

  // world.cpp
  struct Early {
    engine::ChunkHeader header;
    engine::Receipt receipt;
    std::vector<std::byte> word;
  };
  bool progress(uint64_t now_ns);
  std::shared_ptr<Communicator> communicator(uint16_t group) const;
  bool is_member(const Communicator& communicator, const engine::ChunkHeader& header) const;

  // watch.cpp
  void watch(uint64_t now_ns);
  void beat(uint64_t now_ns);
  std::vector<std::byte> beat_bytes(uint64_t now_ns);
  void hear_beat(std::span<const std::byte> bytes, std::optional<uint32_t> cable);
  void change_cable(uint32_t fabric_cable, bool is_up, const std::string& why);
  void hear_side_channel(uint64_t now_ns);
  void apply(const fabric::LivenessChange& change);
  void set_cable(uint32_t fabric_cable, bool is_up, const std::string& why);
  void fail_rank(uint32_t rank, const Status& status);
  void fail_unreachable();
  void say_goodbye();
  bool have_all_said_goodbye() const;

  // thread.cpp
  void run();
  void take_leave();
  bool sleep_until_something(uint64_t most_ns);
  void nap(uint64_t most_ns);
  void arm();

  std::mutex lock_;
  bootstrap::Circle circle_;
  BroughtUp made_;
  std::optional<fabric::Liveness> liveness_;
  fabric::LivenessKnobs knobs_;
  std::map<uint16_t, std::weak_ptr<Communicator>> communicators_;
  std::map<uint16_t, std::vector<Early>> early_;  // of groups that this rank has not made yet
  uint16_t next_group_id_ = 1;
  std::map<uint32_t, Status> failed_;
  std::set<uint32_t> leaving_;  // ranks that need nothing more
  std::vector<std::string> down_cables_;  // [fabric cable]: why, empty while it is up
  std::vector<uint16_t> cable_versions_;  // [fabric cable]: changes so far, so that an odd one is down; all ranks agree
                                          // on the greatest that any has told
  uint64_t incarnation_;
  uint64_t turn_ = 0;
  uint64_t next_beat_ns_ = 0;
  uint64_t now_ns_ = 0;
  uint64_t watched_ns_ = 0;
  std::atomic<int> n_waiting_ = 0;
  std::atomic<uint64_t> last_waited_ns_ = 0;
  std::atomic<bool> is_ending_ = false;
  base::UniqueFd wake_;
  std::thread thread_;
};

}  // namespace ringbolt::group
