#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "group/communicator.h"
#include "group/group_numbers.h"
#include "group/shrinking.h"
#include "mesh/mesh.h"

namespace ringbolt::group {

/// The groups of this rank, and how new ones are made of them: a client of the mesh. Thread-safe.
/// Owns the mesh. Held by groups, requests and communicators' deleters: it leaves with the last of them, on whichever
/// thread that is, which must not hold the lock.
class Groups final : public mesh::Client, public std::enable_shared_from_this<Groups> {
 public:
  /// Joins a mesh: blocks until all ranks are there and connected. Throws JoinError and base::Error.
  static std::shared_ptr<Groups> join(const mesh::MeshPlan& plan);
  /// Leaves it.
  ~Groups() override;
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  mesh::Mesh& mesh() { return mesh_; }
  const mesh::Mesh& mesh() const { return mesh_; }
  /// The mesh's: taken for all that follows, but where it says otherwise.
  base::Mutex& lock() RINGBOLT_RETURNS_LOCK(mesh_.lock) { return mesh_.lock; }
  uint32_t rank() const { return mesh_.rank(); }
  uint32_t n_ranks() const { return mesh_.n_ranks(); }

  /// The group of these ranks of the mesh, of which this rank is number `self`. Its schedules do without the cables
  /// that are `avoided` ([fabric cable]; those beyond its end are not): these must be the same on all its ranks.
  /// `origin`: see Communicator. Ends, taking the lock, when nobody holds it; the mesh stays until then. Throws
  /// JoinError: there is a group of that number.
  /// What has come early for it is given to it before this returns.
  std::shared_ptr<Communicator> make_communicator(uint16_t id, std::vector<uint32_t> members, uint32_t self,
                                                  std::vector<bool> avoided, uint16_t origin = 0)
      RINGBOLT_REQUIRES(mesh_.lock);
  /// Whether cables that are not `avoided` join these ranks, through others, too.
  /// `ranks`: at least one. Reads what does not change, so without the lock.
  bool are_joined(const std::vector<uint32_t>& ranks, const std::vector<bool>& avoided) const;
  /// The ranks that are left of a group, once its members have agreed who that is: a collective call of those. Takes
  /// the lock. Blocks until `deadline_ns` at most. Throws JoinError: the deadline has passed, or the others have gone
  /// on without this rank.
  std::shared_ptr<Communicator> shrink(const std::shared_ptr<Communicator>& communicator, uint64_t deadline_ns)
      RINGBOLT_EXCLUDES(mesh_.lock);
  /// Fails all calls of all groups, and all later ones.
  void break_off(const Status& status) RINGBOLT_REQUIRES(mesh_.lock);
  /// The first number, of those for groups that are split, that no group of this rank has had.
  uint16_t next_group_id() const RINGBOLT_REQUIRES(mesh_.lock) { return numbers_.next_split(); }
  /// [number]: whether this rank can give it to a group that is split off, again or for the first time.
  std::vector<bool> free_group_ids() const RINGBOLT_REQUIRES(mesh_.lock) {
    return numbers_.free_for_split(groups_under_way());
  }
  /// Keeps numbers for groups that all ranks are about to make: false if this rank has given one of them away. What
  /// comes for them is kept until make_communicator() or unreserve(), after which those that have not been made never
  /// are.
  /// Whoever gets true says unreserve() later, made or not.
  bool reserve(std::span<const uint16_t> ids) RINGBOLT_REQUIRES(mesh_.lock) {
    return numbers_.reserve(ids, groups_under_way());
  }
  void unreserve(std::span<const uint16_t> ids) RINGBOLT_REQUIRES(mesh_.lock);
  /// Sees to it that a call goes on that wants a turn.
  /// In a mesh of one rank it does all of the work at once; else it never blocks.
  void see_to(Call& call) RINGBOLT_REQUIRES(mesh_.lock);

  // mesh::Client
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override
      RINGBOLT_REQUIRES(mesh_.lock);
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override
      RINGBOLT_REQUIRES(mesh_.lock);
  void on_message(uint32_t from, uint16_t kind, std::span<const std::byte> bytes) override
      RINGBOLT_REQUIRES(mesh_.lock);
  void on_rank_failed(uint32_t rank, const Status& status) override RINGBOLT_REQUIRES(mesh_.lock);
  void on_rank_given_up(uint32_t rank, bool is_certain) override RINGBOLT_REQUIRES(mesh_.lock);
  bool advance(uint64_t now_ns) override RINGBOLT_REQUIRES(mesh_.lock);
  bool is_busy() const override RINGBOLT_REQUIRES(mesh_.lock);

 private:
  struct Early {
    engine::ChunkHeader header;
    engine::Receipt receipt;
    std::vector<std::byte> word;  // empty: a chunk
  };
  explicit Groups(std::unique_ptr<mesh::Mesh> mesh);

  bool may_come(uint16_t group) const RINGBOLT_REQUIRES(mesh_.lock);
  std::vector<bool> groups_under_way() const RINGBOLT_REQUIRES(mesh_.lock);
  Communicator* communicator(uint16_t group) const RINGBOLT_REQUIRES(mesh_.lock);
  void end(const Communicator* communicator) RINGBOLT_EXCLUDES(mesh_.lock);
  void tell_failure(const Communicator& communicator, const Status& status) RINGBOLT_REQUIRES(mesh_.lock);

  // shrink.cpp
  Shrinking* shrinking(uint16_t group) RINGBOLT_REQUIRES(mesh_.lock);
  void send_shrinking(uint16_t group, uint32_t to, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(mesh_.lock);
  void hear_shrinking(uint32_t from, uint16_t group, std::span<const std::byte> bytes) RINGBOLT_REQUIRES(mesh_.lock);

  std::unique_ptr<mesh::Mesh> owned_;
  mesh::Mesh& mesh_;
  // Not owned: each takes itself out when its last holder goes (end()).
  std::map<uint16_t, Communicator*> communicators_ RINGBOLT_GUARDED_BY(mesh_.lock);
  /// Of groups that this rank has not made yet.
  std::map<uint16_t, std::vector<Early>> early_ RINGBOLT_GUARDED_BY(mesh_.lock);
  GroupNumbers numbers_ RINGBOLT_GUARDED_BY(mesh_.lock);
  // Never taken out: members may still ask for a vote when the group is gone here.
  std::map<uint16_t, std::unique_ptr<Shrinking>> shrinkings_ RINGBOLT_GUARDED_BY(mesh_.lock);  // [group]
};

}  // namespace ringbolt::group
