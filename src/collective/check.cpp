#include "collective/check.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "collective/check_structure.h"
#include "collective/checked_memory.h"
#include "collective/expected_output.h"
#include "collective/happenings.h"
#include "collective/layout.h"
#include "collective/symbols.h"

namespace ringbolt::collective {
namespace {

/// Up to so many ranks, accesses to memory are looked at on all; of more, on kWatchedOfMany, spread over all.
constexpr uint32_t kMostWatchedRanks = 64;
constexpr uint32_t kWatchedOfMany = 16;

struct TransferState {
  uint32_t sender = 0;    ///< number of a step among all
  uint32_t receiver = 0;  ///< the same
  bool has_chunk = false;
  Symbols symbols;
  uint32_t event = 0;  ///< that sent the chunk
};

struct StepState {
  const Step* step = nullptr;
  uint32_t rank = 0;
  uint32_t index = 0;      ///< among those of its rank
  uint32_t first_end = 0;  ///< of its transfers, in Transfers::of_ends
  uint32_t n_chunks = 1;
  uint32_t n_done = 0;
  uint32_t last_event = Happenings::kNone;
  uint32_t waits = kNoStep;  ///< place in waits_, of those that others of its rank have for it
};

/// What others of its rank wait for at a step.
struct Waits {
  std::vector<uint32_t> waiters;  ///< numbers of steps
  std::vector<uint32_t> events;   ///< of each chunk
};

/// A place in a rank's memory. Input and output are one memory if the call is in place.
struct Place {
  size_t memory = 0;
  uint64_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct RankState {
  uint32_t first_step = 0;  ///< of all
  std::optional<int64_t> in_place_shift;
  bool is_watched = true;
  std::array<CheckedMemory, 3> memories;
};

/// Used once. Holds all transfers and memories as symbols; `schedule`, `problem` and `transfers` must stay.
class Run {
 public:
  Run(const Schedule& schedule, const Problem& problem, const Transfers& transfers, bool is_in_place)
      : schedule_(schedule),
        problem_(problem),
        transfer_of_ends_(transfers.of_ends),
        is_in_place_(is_in_place),
        ranks_(problem.n_ranks),
        transfers_(transfers.transfers.size()) {
    for (uint32_t rank = 0; rank < problem.n_ranks; ++rank) {
      add_rank(rank);
    }
    for (size_t index = 0; index < transfers_.size(); ++index) {
      const Transfer& transfer = transfers.transfers[index];
      transfers_[index].sender = ranks_[transfer.key.from].first_step + transfer.sender;
      transfers_[index].receiver = ranks_[transfer.key.to].first_step + transfer.receiver;
    }
  }

  /// What is wrong, or nothing.
  std::string run() {
    for (auto step = static_cast<uint32_t>(steps_.size()); step-- > 0;) {
      ready_.push_back(step);
    }
    while (!ready_.empty() && objection_.empty()) {
      StepState& state = steps_[ready_.back()];
      ready_.pop_back();
      // Depth first, as far as one step can go: any order will do, since accesses that race are found by what is
      // waited for.
      while (objection_.empty() && can_go(state)) {
        go(state);
      }
    }
    if (objection_.empty()) {
      check_end();
    }
    return objection_.empty() ? objection_ : (is_in_place_ ? "in place: " : "") + objection_;
  }

  uint64_t n_chunks() const { return n_chunks_; }
  uint64_t transfer_bytes() const { return transfer_bytes_; }

 private:
  void add_rank(uint32_t rank) {
    RankState& state = ranks_[rank];
    state.first_step = static_cast<uint32_t>(steps_.size());
    state.in_place_shift = is_in_place_ ? in_place_shift(problem_, rank) : std::nullopt;
    const uint32_t distance = problem_.n_ranks <= kMostWatchedRanks ? 1 : problem_.n_ranks / kWatchedOfMany;
    state.is_watched = (rank + problem_.n_ranks - problem_.root) % problem_.n_ranks % distance == 0;
    for (const Step& step : schedule_.programs[rank].steps) {
      StepState& added = steps_.emplace_back();
      added.step = &step;
      added.rank = rank;
      added.index = static_cast<uint32_t>(steps_.size() - 1) - state.first_step;
      added.first_end = n_ends_;
      added.n_chunks =
          std::max<uint32_t>(1, static_cast<uint32_t>((step.bytes + step.chunk_bytes - 1) / step.chunk_bytes));
      n_ends_ += n_transfers_of(step.sources) + n_transfers_of(step.targets);
      for (const Source& source : step.sources) {
        if (source.kind == Source::Kind::local && source.after != kNoStep) {
          add_waiter(steps_[state.first_step + source.after], state.first_step + added.index);
        }
      }
    }
    if (const uint64_t bytes = input_bytes(problem_, rank); bytes > 0) {
      const Place input = place_of(rank, Buffer::input, 0);
      const Origins origins({rank, 0}, problem_.n_ranks <= Origins::kMostListed);
      state.memories[input.memory].write(input.offset, {{bytes, origins}});
    }
  }

  void add_waiter(StepState& state, uint32_t waiter) {
    if (state.waits == kNoStep) {
      state.waits = static_cast<uint32_t>(waits_.size());
      waits_.emplace_back();
    }
    waits_[state.waits].waiters.push_back(waiter);
  }

  template <class End>
  static uint32_t n_transfers_of(const std::vector<End>& ends) {
    return static_cast<uint32_t>(std::ranges::count(ends, End::Kind::transfer, &End::kind));
  }

  void object(const StepState& state, const std::string& what) {
    if (objection_.empty()) {
      objection_ = fmt::format("{}, chunk {}: {}", step_text(state.rank, state.index), state.n_done, what);
    }
  }

  Place place_of(uint32_t rank, Buffer buffer, uint64_t offset) const {
    const std::optional<int64_t>& shift = ranks_[rank].in_place_shift;
    if (!shift || buffer == Buffer::scratch) {
      return {static_cast<size_t>(buffer), offset};
    }
    const int64_t base = buffer == Buffer::input ? std::max<int64_t>(*shift, 0) : std::max<int64_t>(-*shift, 0);
    return {0, offset + static_cast<uint64_t>(base)};
  }

  Piece chunk_of(const Step& step, uint32_t chunk) const {
    const uint64_t start = static_cast<uint64_t>(chunk) * step.chunk_bytes;
    return {start, std::min<uint64_t>(step.chunk_bytes, step.bytes - start)};
  }

  const StepState& waited_for(const StepState& state, const Source& source) const {
    return steps_[ranks_[state.rank].first_step + source.after];
  }

  /// How many chunks of the step that it waits for must be done before the next chunk.
  /// The rule of Source::after, by position: chunks of two steps need not begin at the same bytes.
  uint32_t n_needed(const StepState& state, const Source& source) const {
    const StepState& other = waited_for(state, source);
    if (source.after_all) {
      return other.n_chunks;
    }
    std::optional<uint64_t> first;
    for (const Target& target : other.step->targets) {
      if (target.kind == Target::Kind::local && target.buffer == source.buffer) {
        first = target.offset;
      }
    }
    for (const Source& read : other.step->sources) {
      const bool has_no_target = std::ranges::count(other.step->targets, Target::Kind::local, &Target::kind) == 0;
      if (has_no_target && read.kind == Source::Kind::local && read.buffer == source.buffer) {
        first = read.offset;
      }
    }
    const Piece part = chunk_of(*state.step, state.n_done);
    const uint64_t start = std::max(source.offset + part.offset, first.value_or(0));
    const uint64_t end = std::min(source.offset + part.offset + part.bytes, first.value_or(0) + other.step->bytes);
    if (!first || start >= end) {
      return 0;
    }
    return static_cast<uint32_t>((end - 1 - *first) / other.step->chunk_bytes) + 1;
  }

  bool can_go(const StepState& state) const {
    if (state.n_done == state.n_chunks) {
      return false;
    }
    uint32_t end = state.first_end;
    for (const Source& source : state.step->sources) {
      if (source.kind == Source::Kind::transfer) {
        if (!transfers_[transfer_of_ends_[end++]].has_chunk) {
          return false;
        }
      } else if (source.after != kNoStep && waited_for(state, source).n_done < n_needed(state, source)) {
        return false;
      }
    }
    for (const Target& target : state.step->targets) {
      if (target.kind == Target::Kind::transfer && transfers_[transfer_of_ends_[end++]].has_chunk) {
        return false;
      }
    }
    return true;
  }

  /// Works on the next chunk.
  void go(StepState& state) {
    const Step& step = *state.step;
    const Piece part = chunk_of(step, state.n_done);
    const uint32_t event = happenings_.add();
    rank_of_events_.push_back(state.rank);
    std::vector<Place> reads;
    const auto rows = collect(state, part, reads);
    if (!rows) {
      return;
    }
    auto sum = sum_of(*rows);
    if (!sum) {
      object(state, "it adds up what has had its last touch");
      return;
    }
    for (Symbol& symbol : *sum) {
      if (step.finishes && symbol.is_finished) {
        object(state, "it finishes what is finished");
      }
      symbol.is_finished = symbol.is_finished || step.finishes;
    }
    deliver(state, event, part, *sum, reads);
    state.last_event = event;
    ++state.n_done;
    ++n_chunks_;
    if (state.waits != kNoStep) {
      Waits& waits = waits_[state.waits];
      waits.events.push_back(event);
      ready_.insert(ready_.end(), waits.waiters.begin(), waits.waiters.end());
    }
  }

  /// What the sources have, and where it is read; the newest event waits for it. Nothing if that is not there.
  std::optional<std::vector<Symbols>> collect(const StepState& state, const Piece& part, std::vector<Place>& reads) {
    std::vector<Symbols> rows;
    uint32_t end = state.first_end;
    happenings_.wait_for(state.last_event);
    for (const Source& source : state.step->sources) {
      if (source.kind == Source::Kind::transfer) {
        TransferState& transfer = transfers_[transfer_of_ends_[end++]];
        happenings_.wait_for(transfer.event);
        rows.push_back(std::move(transfer.symbols));
        transfer.has_chunk = false;
        if (steps_[transfer.sender].n_done < steps_[transfer.sender].n_chunks) {
          ready_.push_back(transfer.sender);
        }
        continue;
      }
      const uint32_t needed = source.after == kNoStep ? 0 : n_needed(state, source);
      happenings_.wait_for(needed == 0 ? Happenings::kNone
                                       : waits_[waited_for(state, source).waits].events[needed - 1]);
      const Place place = place_of(state.rank, source.buffer, source.offset + part.offset);
      uint64_t hole = 0;
      auto symbols = ranks_[state.rank].memories[place.memory].read(place.offset, part.bytes, &hole);
      if (!symbols) {
        object(state, fmt::format("{} offset {} is read before it is written", buffer_text(source.buffer),
                                  source.offset + part.offset + (hole - place.offset)));
        return std::nullopt;
      }
      rows.push_back(std::move(*symbols));
      reads.push_back(place);
    }
    return rows;
  }

  void deliver(const StepState& state, uint32_t event, const Piece& part, const Symbols& sum,
               const std::vector<Place>& reads) {
    const Step& step = *state.step;
    uint32_t end = state.first_end + n_transfers_of(step.sources);
    for (const Target& target : step.targets) {
      if (target.kind == Target::Kind::transfer) {
        TransferState& transfer = transfers_[transfer_of_ends_[end++]];
        transfer.has_chunk = true;
        transfer.symbols = sum;
        transfer.event = event;
        transfer_bytes_ += part.bytes;
        ready_.push_back(transfer.receiver);
        continue;
      }
      const Place place = place_of(state.rank, target.buffer, target.offset + part.offset);
      if (step.sources.size() == 1 && reads.size() == 1 && reads.front() == place && !step.finishes) {
        continue;  // a copy onto itself, in place: nothing moves
      }
      note(state, event, place, part.bytes, true);
      ranks_[state.rank].memories[place.memory].write(place.offset, sum);
    }
    for (const Place& place : reads) {
      note(state, event, place, part.bytes, false);
    }
  }

  void note(const StepState& state, uint32_t event, const Place& place, uint64_t bytes, bool is_write) {
    RankState& rank = ranks_[state.rank];
    if (!rank.is_watched) {
      return;
    }
    if (auto race =
            rank.memories[place.memory].note({state.index, event}, place.offset, bytes, is_write, happenings_)) {
      object(state, *race);
    }
  }

  /// Once nothing can go on any more.
  void check_end() {
    for (const StepState& state : steps_) {
      if (state.n_done < state.n_chunks) {
        object(state, "it waits for ever");
        return;
      }
    }
    const ExpectedOutputs expected(problem_);
    for (uint32_t rank = 0; rank < problem_.n_ranks && objection_.empty(); ++rank) {
      check_output(rank, expected.of(rank));
      if (problem_.operation == Operation::barrier && problem_.n_ranks >= 2) {
        check_barrier(rank);
      }
    }
  }

  void check_output(uint32_t rank, const std::vector<Expected>& pieces) {
    const Place place = place_of(rank, Buffer::output, 0);
    for (const Expected& expected : pieces) {
      uint64_t hole = 0;
      const auto symbols =
          ranks_[rank].memories[place.memory].read(place.offset + expected.output.offset, expected.output.bytes, &hole);
      if (!symbols) {
        objection_ = fmt::format("rank {}: output offset {} is never written", rank, hole - place.offset);
        return;
      }
      uint64_t offset = 0;
      for (const Symbol& symbol : *symbols) {
        Origins origins = expected.origins;
        origins.shift(offset);
        check_symbol(rank, expected.output.offset + offset, symbol, origins);
        offset += symbol.bytes;
      }
    }
  }

  void check_symbol(uint32_t rank, uint64_t output_offset, const Symbol& symbol, const Origins& expected) {
    std::string problem;
    if (!symbol.origins.is_same_set(expected)) {
      problem = fmt::format("comes from {} (rank@input offset), which should be {} from {}@{} on",
                            symbol.origins.text(), expected.count() == 1 ? "one" : "one of each rank",
                            expected.first().rank, expected.first().offset);
    } else if (schedule_.is_rank_ordered && !(symbol.is_left_fold && symbol.origins.is_ascending())) {
      problem = "is not added up in the order of ranks";
    } else if (symbol.is_finished != reduces(problem_.operation)) {
      problem = "is not finished";
    }
    if (!problem.empty() && objection_.empty()) {
      objection_ = fmt::format("rank {}: output offset {}, {} bytes: {}", rank, output_offset, symbol.bytes, problem);
    }
  }

  /// When all steps of the rank are done, every other one must have begun.
  void check_barrier(uint32_t rank) {
    std::vector<uint32_t> last;
    const auto first = steps_.begin() + ranks_[rank].first_step;
    for (auto state = first; state != first + static_cast<std::ptrdiff_t>(schedule_.programs[rank].steps.size());
         ++state) {
      last.push_back(state->last_event);
    }
    std::vector<bool> has_begun(problem_.n_ranks);
    for (const uint32_t event : happenings_.up_to(last)) {
      has_begun[rank_of_events_[event]] = true;
    }
    if (const auto other = std::ranges::find(has_begun, false); other != has_begun.end()) {
      objection_ =
          fmt::format("rank {} leaves the barrier before it has heard of rank {}", rank, other - has_begun.begin());
    }
  }

  const Schedule& schedule_;
  const Problem& problem_;
  const std::vector<uint32_t>& transfer_of_ends_;
  bool is_in_place_;
  std::vector<RankState> ranks_;
  std::vector<TransferState> transfers_;
  std::vector<StepState> steps_;  // of all ranks, one after the other
  std::vector<Waits> waits_;
  uint32_t n_ends_ = 0;          // of transfers, of the steps so far
  std::vector<uint32_t> ready_;  // steps that may go on
  Happenings happenings_;
  std::vector<uint32_t> rank_of_events_;
  uint64_t n_chunks_ = 0;
  uint64_t transfer_bytes_ = 0;
  std::string objection_;
};

}  // namespace

tl::expected<CheckedSchedule, std::string> check(const Schedule& schedule, const Problem& problem,
                                                 const fabric::Graph& graph, const Limits& limits) {
  const auto transfers = check_structure(schedule, problem, graph, limits);
  if (!transfers) {
    return tl::unexpected(transfers.error());
  }
  CheckedSchedule checked;
  for (const bool is_in_place : {false, true}) {
    if (is_in_place && !in_place_shift(problem, problem.root)) {
      continue;  // there is no such call
    }
    Run run(schedule, problem, *transfers, is_in_place);
    if (std::string objection = run.run(); !objection.empty()) {
      return tl::unexpected(std::move(objection));
    }
    checked.n_chunks = run.n_chunks();
    checked.transfer_bytes = run.transfer_bytes();
  }
  for (const Program& program : schedule.programs) {
    checked.most_steps = std::max(checked.most_steps, static_cast<uint32_t>(program.steps.size()));
  }
  for (const Transfer& transfer : transfers->transfers) {
    checked.most_transfers = std::max(checked.most_transfers, transfer.key.number + 1);
  }
  return checked;
}

}  // namespace ringbolt::collective
