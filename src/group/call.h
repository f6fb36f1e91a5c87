#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "collective/element.h"
#include "collective/executor.h"
#include "collective/point_to_point.h"
#include "collective/problem.h"
#include "collective/short_execution.h"
#include "engine/engine.h"
#include "ringbolt/status.h"

namespace ringbolt::group {

class Communicator;

/// An all_to_all of uneven shares is two collectives of one number: its ranks count before they exchange.
enum class Phase : uint8_t { only, counting, counted };

/// Numbers of calls: collectives of a group have one sequence, messages one for each pair of ranks and direction.
/// All wrap at 2^32 and are compared by the sign of their difference (engine::is_before()).
struct CallId {
  bool is_message = false;
  uint32_t source = 0;  ///< of a message: ranks of the group
  uint32_t destination = 0;
  uint32_t number = 0;
  Phase phase = Phase::only;
  friend auto operator<=>(const CallId&, const CallId&) = default;

  CallId in(Phase other) const {
    CallId id = *this;
    id.phase = other;
    return id;
  }
  /// Of the same number: whether that is an all_to_allv at one rank and something else at the other.
  bool is_rival_of(const CallId& other) const { return (phase == Phase::only) != (other.phase == Phase::only); }
};

constexpr bool reduces(collective::Operation operation) {
  return operation == collective::Operation::all_reduce || operation == collective::Operation::reduce_scatter ||
         operation == collective::Operation::reduce;
}

/// What a call is, as far as its ranks must agree in it and people want to know it.
struct CallShape {
  bool is_message = false;
  Phase phase = Phase::only;
  collective::Operation operation = collective::Operation::barrier;  // of a collective
  collective::Type type = collective::Type::uint8;
  collective::Reduction reduction = collective::Reduction::sum;
  bool is_reduction = false;
  uint32_t root = 0;
  // Together; of a message its length.
  uint64_t bytes = 0;          ///< of all shares
  uint32_t shares_crc = 0;     ///< of all shares, one by one
  uint32_t algorithm_crc = 0;  ///< of the algorithm's name
  uint32_t schedule_crc = 0;   ///< of the cables that it was chosen for, and of the one that was chosen
  bool needs_rank_order = false;

  /// Its two highest bits are the phase, by which the two collectives of one number are told apart.
  /// Two calls that differ have the same one by chance in 2^30.
  uint32_t signature() const;
  /// "all_reduce of 10 float32 (sum)".
  std::string text() const;
};

constexpr uint32_t kPhaseShift = 30;
/// Two bits of the hash give way to the phase: any two of a good hash would do.
constexpr uint32_t signature_of(Phase phase, uint32_t hash) {
  return static_cast<uint32_t>(phase) << kPhaseShift | hash >> (32 - kPhaseShift);
}
constexpr Phase phase_of(uint32_t signature) { return static_cast<Phase>(signature >> kPhaseShift); }

/// A call under way: an execution, and its way through the engine. Used under the mesh's lock, except is_done() and,
/// once that is true, status().
/// Its communicator must outlive it, but for is_done() and status(). Shared by the communicator's list and by
/// requests, either of which may be the last to hold it.
class Call final : public collective::PointToPoint {
 public:
  /// `signature`: of the shape.
  /// `deadline_ns`: base::now_ns(); UINT64_MAX: none of its own. Held until let_go().
  Call(Communicator& communicator, const CallId& id, const CallShape& shape, uint32_t signature, uint64_t deadline_ns);
  ~Call() override;

  /// Makes a call that has ended another one, of the same shape.
  /// Nobody else may hold it or look at it at that time.
  void renew(const CallId& id);
  /// The same for one that has only carried a short call's chunks.
  void renumber(uint32_t number) {
    id_.number = number;
    deadline_ns_ = UINT64_MAX;
  }

  const CallId& id() const { return id_; }
  uint32_t signature() const { return signature_; }
  const CallShape& shape() const { return shape_; }
  uint64_t deadline_ns() const { return deadline_ns_; }
  void set_deadline(uint64_t deadline_ns) { deadline_ns_ = deadline_ns; }

  /// Gives it its work, which it begins when it is let go.
  /// The operands' memory is the program's until the call is done, and stays as it is.
  void prepare(std::unique_ptr<collective::Execution> execution, const collective::Operands& operands);
  void let_go();
  /// Goes on with what another execution has begun, whose chunks this call carries.
  void go_on(collective::ShortExecution& from, const collective::Operands& operands);
  /// All collectives of its group before it have ended whenever it begins: its chunks say so, and no word has to.
  void begin_after_all_others() { follows_ended_ = true; }
  bool is_held() const { return is_held_; }
  bool is_prepared() const { return execution_ != nullptr; }
  /// What it is, once that is known: of a call that is not prepared, or not yet another one.
  void become(const CallShape& shape, uint32_t signature) {
    shape_ = shape;
    signature_ = signature;
  }
  /// Only if is_prepared(). Good until take_execution().
  collective::Execution& execution() { return *execution_; }
  /// Does what can be done; ends the call when it is all.
  void advance();

  /// There is more to do at once than one advance() does.
  bool wants_turn() const { return !is_held_ && !is_done() && execution_->wants_turn(); }
  /// By any thread. Pairs with the release in finish(): status, and the data that the call has brought, are there.
  bool is_done() const { return is_done_.load(std::memory_order_acquire); }
  /// Does not change once the call is done, until renew().
  const Status& status() const { return status_; }
  /// Ends it, once; gives back what it holds.
  /// The first one counts; later ones do nothing.
  void finish(Status status);
  /// Only of a call that is done: then nothing looks at its execution any more.
  std::unique_ptr<collective::Execution> take_execution() { return std::move(execution_); }

  /// A rank has called something else: it has been told what this rank has called.
  bool is_disputed = false;
  /// Its caller has a pointer to it alone, and waits: it is not tidied away before that has seen how it ended.
  bool is_waited = false;
  /// Nobody but its communicator holds it.
  bool is_reusable = false;
  /// Lives as long as it does: memory that it works on.
  std::shared_ptr<void> memory = {};

  // collective::PointToPoint
  /// Nothing: the engine has no memory just now; it is asked for again with the next turn.
  std::optional<Slot> take_slot(uint32_t length_bytes) override;
  void send(Slot slot, uint32_t length_bytes, uint32_t peer, std::span<const uint32_t> via,
            const collective::ChunkTag& tag) override;
  void fill(Slot slot, const std::byte* from, uint32_t length_bytes) override;
  [[nodiscard]] bool send_copy(const std::byte* from, uint32_t length_bytes, uint32_t peer,
                               std::span<const uint32_t> via, const collective::ChunkTag& tag) override;
  void cancel(Slot slot) override;
  void tell_used(uint32_t peer, const collective::ChunkTag& tag) override;

 protected:
  void release(uint64_t parcel) override;
  Place settle(uint64_t parcel, std::span<const std::byte> bytes) override;

 private:
  engine::Address address(uint32_t peer, const collective::ChunkTag& tag) const;
  engine::Address chunk_address(uint32_t peer, const collective::ChunkTag& tag);

  Communicator& communicator_;
  CallId id_;
  CallShape shape_;
  uint32_t signature_;
  uint64_t deadline_ns_;
  std::unique_ptr<collective::Execution> execution_;
  collective::Operands operands_;
  bool is_held_ = true;
  bool follows_ended_ = false;
  // Written under the lock, read without it by Request::is_done().
  std::atomic<bool> is_done_ = false;
  Status status_;
};

}  // namespace ringbolt::group
