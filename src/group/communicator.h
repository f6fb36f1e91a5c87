#pragma once

#include <sys/eventfd.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "collective/element.h"
#include "collective/problem.h"
#include "collective/topology.h"
#include "engine/engine.h"
#include "fabric/graph.h"
#include "group/asked.h"
#include "group/call.h"
#include "group/call_numbers.h"
#include "group/early_chunks.h"
#include "group/messages.h"
#include "group/plan_cache.h"
#include "group/short_calls.h"
#include "group/uneven.h"
#include "group/word.h"
#include "ringbolt/status.h"

namespace ringbolt::group {

/// The ranks of one group, as this rank sees them, and the calls of the group. Used under the mesh's lock.
/// Calls and executions that it makes are its own or shared with requests; the engine outlives it, graph and model
/// are copied. Nothing here blocks.
class Communicator final : private engine::Awaiting {
 public:
  /// `members`: ranks of the mesh, by rank of the group; `graph`: the cables between them, connected. `engine` is null
  /// in a mesh of one rank. `model`: of the cables. Both are the same on all ranks. `avoided`: see avoided().
  /// `origin`: the number of the group that it is what is left of, or 0: should two of those get one number, their
  /// calls don't match.
  Communicator(engine::Engine* engine, uint16_t id, std::vector<uint32_t> members, uint32_t self,
               const fabric::Graph& graph, const collective::CostModel& model, std::vector<bool> avoided = {},
               uint16_t origin = 0);
  ~Communicator();

  /// Not in a mesh of one rank: calls of one rank send nothing.
  engine::Engine& engine() { return *engine_; }
  uint16_t id() const { return id_; }
  uint32_t rank() const { return rank_; }
  uint32_t n_ranks() const { return static_cast<uint32_t>(members_.size()); }
  /// `rank`: below n_ranks(). The rank of the mesh.
  uint32_t member(uint32_t rank) const { return members_[rank]; }
  /// This and the other references are good as long as this, and what they show does not change.
  const std::vector<uint32_t>& members() const { return members_; }
  /// The rank in this group of a rank of the mesh; kNoRank if it is no member.
  static constexpr uint32_t kNoRank = CallNumbers::kNobody;
  uint32_t rank_of(uint32_t world_rank) const {
    const bool is_of_all = world_rank < members_.size() && members_[world_rank] == world_rank;  // ranks, the group
    return is_of_all ? world_rank : find_member(world_rank);
  }
  bool has(uint32_t world_rank) const { return rank_of(world_rank) != kNoRank; }
  const collective::Topology& topology() const { return topology_; }
  /// [fabric cable]: left out of its schedules.
  /// May be shorter than there are cables, or empty: those beyond its end are not left out.
  const std::vector<bool>& avoided() const { return avoided_; }

  /// Begins a collective. What makes no sense, or comes after a failure, is done at once, with a status that says so.
  /// `asked` has been found to be in order (arguments.h). Throws std::bad_alloc.
  std::shared_ptr<Call> begin(const Asked& asked, uint64_t deadline_ns);
  /// An all_to_all with so many elements to each rank and from each: its shares are asked of all ranks first, by a
  /// collective of the same number.
  std::shared_ptr<Call> begin_uneven(Asked asked, std::span<const size_t> sent, std::span<const size_t> received,
                                     uint64_t deadline_ns);
  /// A collective whose arguments make no sense here takes its number all the same, and the other ranks, whose calls
  /// may make sense, hear of it.
  void refuse_collective(const Status& status);
  /// The same for a caller who gives it its deadline, waits until it is done, and then says so with end_waited(): under
  /// the lock, but for the time in World::wait(). Null: see `refused`.
  /// The pointer is good until end_waited().
  Call* begin_waited(const Asked& asked, Status& refused);
  void end_waited(Call& call) {
    call.is_waited = false;
    retire_done();
  }

  // short_calls.cpp: collectives that have been called before
  /// Makes the next call like that, which has just been begun, a prepared one, if it is short.
  void prepare_short(const ShortKey& key, const Asked& asked);
  /// begin_waited() of a call that is prepared, in a fraction of its time. Null if there is none, or anything is out of
  /// the ordinary, so that it has to be begun the other way: nothing has happened then. It ends like one of those, and
  /// its caller says end_short().
  ShortCall* begin_short(ShortKey key, const void* input, void* output);
  /// It is over; how, if it has failed.
  void end_short(ShortCall& call, Status& status);
  /// A chunk of that call, which begins when all before it have ended, says so to `peer`.
  void note_told(uint32_t peer, uint32_t number) { numbers_.note_told(peer, number); }
  /// Begins one end of a message.
  std::shared_ptr<Call> begin_send(const void* data, uint64_t bytes, collective::Type type, uint32_t peer,
                                   uint64_t deadline_ns);
  std::shared_ptr<Call> begin_receive(void* data, uint64_t bytes, collective::Type type, uint32_t peer,
                                      uint64_t deadline_ns);
  /// As refuse_collective(), of one end of a message.
  void refuse_message(bool is_send, uint32_t peer, const Status& status);

  /// What arrives for this group. `source`: of the mesh, a member.
  /// The receipt is released, settled or held by an execution when this returns. Everything in the header is a peer's
  /// word: what no call here has is dropped, or ends the call that it claims to be of.
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt);
  void on_word(const engine::ChunkHeader& header, const Word& word);

  /// Lets all calls go on, and ends those whose deadline has passed. Whether one of them has more to do at once.
  bool advance(uint64_t now_ns);
  bool is_busy() const {
    return std::any_of(active_.begin(), active_.end(), [](const auto& call) { return !call->is_done(); });
  }
  /// Whether a call like that can begin at once; else its schedule is made first, which takes seconds for many ranks.
  bool knows(const Asked& asked) const { return plans_.knows(asked.what); }
  /// Fails a call here and tells the other ranks, if it is not done.
  /// Never blocks: words wait in the engine.
  void fail(Call& call, const Status& status);
  /// Fails all calls, and all later ones.
  /// For good: a communicator that is broken is only good for shrinking.
  void break_off(const Status& status);
  /// Likewise, on all ranks.
  void abort(const std::string& reason);
  const Status& broken() const { return broken_; }

  /// A descriptor that becomes readable when a call that nobody waits for has ended, or the group has broken. Whoever
  /// reads its 8 bytes makes it unreadable until the next one. Lives as long as this. Throws base::Error: there is
  /// none.
  int progress_fd();
  void tell_progress() {
    if (progress_.is_open()) {
      (void)eventfd_write(progress_.get(), 1);
    }
  }

 private:
  /// An all_to_all that awaits the counts of all ranks.
  struct Uneven {
    Asked asked;
    std::shared_ptr<Counts> counts;  // held by `counting` as well, which may outlive the all_to_all
    std::shared_ptr<Call> counting;
    std::shared_ptr<Call> call;
  };
  uint32_t find_member(uint32_t world_rank) const;
  /// Null if there is none. It lives until retire_done().
  Call* find(const CallId& id) const;
  /// The call of that number that somebody has asked for, whatever its phase.
  Call* find_asked(const CallId& id) const;
  CallId id_of(const engine::ChunkHeader& header) const;
  std::shared_ptr<Call> begin_numbered(const CallId& id, const Asked& asked, uint64_t deadline_ns);
  std::shared_ptr<Call> refuse(Status status);
  std::shared_ptr<Call> refuse_numbered(const CallId& id, const Status& status);
  PlanCache::Plan* plan_of(const Asked& asked, Status& refused);
  void begin_planned(Call& call, PlanCache::Plan& plan, const Asked& asked);
  collective::Operands operands_of(const CallShape& shape, const Asked& asked) const;
  /// Every call under way but a short one is among active_, which nothing else joins: the short one goes first.
  void activate(std::shared_ptr<Call> call) {
    hand_over_short();
    active_.push_back(std::move(call));
  }
  void go_on_with_short();
  bool take_short(const engine::ChunkHeader& header, const engine::Receipt& receipt);
  bool on_awaited(const engine::ChunkHeader& header, const engine::Receipt& receipt) override;
  /// From here on the short call under way, if there is one, is a call like all others. Whatever is done to calls, but
  /// for the chunks that they await, says this first.
  void hand_over_short();
  std::shared_ptr<Call> begin_message(bool is_send, std::byte* data, uint64_t bytes, collective::Type type,
                                      uint32_t peer, uint64_t deadline_ns);
  void go_on_with_uneven();
  void begin_counted(Uneven& uneven);
  static constexpr size_t kMostIdle = 8;
  /// A peer that fails calls without end can't fill this rank's memory; a word that is dropped costs a deadline.
  static constexpr size_t kMostEarlyWords = 1024;

  void prepare(Call& call, std::unique_ptr<collective::Execution> execution, const collective::Operands& operands);
  bool may_go(const CallId& id) const { return numbers_.rank_behind(id) == kNoRank; }
  void let_go(Call& call);
  /// A chunk says it, too.
  /// `header.source` is a member.
  void hear_ended_before(const engine::ChunkHeader& header) {
    if (header.ended_before && header.group == id_) {
      numbers_.hear_ended_before(rank_of(header.source), header.call);
    }
  }
  void take(Call& call, const engine::ChunkHeader& header, const engine::Receipt& receipt);
  void hear_used(Call& call, const engine::ChunkHeader& header);
  void differ(Call& call, uint32_t peer);
  void dispute_early(const CallId& id);
  void tell(const Call& call, const Word& word) { tell(call.id(), call.signature(), word); }
  void tell(const CallId& id, uint32_t signature, const Word& word);
  void tell_one(uint32_t peer, const CallId& id, uint32_t signature, const Word& word);
  void hear_failure(Call& call, uint32_t peer, const Word& word);
  void retire_done();
  void note_retired(uint32_t n_retired) {
    n_retired_ += n_retired;
    if (n_retired_ >= CallNumbers::kCallsPerWord && engine_ != nullptr && broken_.is_ok()) {
      const bool has_told_all =
          numbers_.tell_finished(active_, [this](uint32_t peer, bool is_message, uint32_t number) {
            tell_one(peer, {is_message, 0, 0, number}, 0, {WordKind::finished, 0, {}});
          });
      n_retired_ = has_told_all ? 0 : CallNumbers::kCallsPerWord - 1;
    }
  }
  void forget_early(const CallId& id);
  Status timed_out(const Call& call) const;
  Status timed_out_uneven(const Call& call) const;

  // not owned: the mesh's, which lives as long as this
  engine::Engine* engine_;
  uint16_t id_;
  std::vector<uint32_t> members_;
  uint32_t rank_;
  collective::Topology topology_;
  uint16_t origin_;
  uint32_t cables_crc_;
  std::vector<bool> avoided_;
  PlanCache plans_;
  CallNumbers numbers_;
  uint32_t n_retired_ = 0;  // since the last look at what to tell
  // Begun and not retired: held, under way, or done and still waited for.
  std::vector<std::shared_ptr<Call>> active_;
  std::vector<std::shared_ptr<Call>> idle_;  // that have ended, for other calls
  ShortCalls short_calls_;
  // Of short_calls_, which does not replace one that is in use.
  ShortCall* short_ = nullptr;  // under way, and not handed over: nothing is active then
  EarlyChunks early_;
  struct EarlyWord {
    uint32_t peer = 0;
    Word word;
  };
  std::map<CallId, EarlyWord> early_words_;
  std::deque<uint32_t> failed_;  // numbers of the latest collectives that have failed here
  std::vector<std::shared_ptr<Uneven>> uneven_;
  SelfMessages self_messages_;
  Status broken_;
  base::UniqueFd progress_;  // of those groups alone that have been asked for it
};

}  // namespace ringbolt::group
