#include "collective/check.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "collective/check_structure.h"
#include "collective/layout.h"
#include "collective/symbols.h"

namespace ringbolt::collective {
namespace {

/// For every step of every rank, how many of its chunks happened before.
using Clock = std::vector<uint32_t>;

struct Message {
  Symbols symbols;
  std::shared_ptr<const Clock> clock;
};

struct StepState {
  uint32_t number = 0;  ///< among those of all ranks
  uint32_t n_chunks = 1;
  uint32_t n_done = 0;
  bool is_waited_for = false;
  std::vector<std::shared_ptr<const Clock>> clocks;  ///< of each chunk if others wait for it, else of the last
};

/// A step has worked on bytes of a rank's memory.
struct Access {
  uint64_t bytes = 0;
  bool is_write = false;
  uint32_t step = 0;
  uint32_t chunk = 0;
};

/// A place in a rank's memory. Input and output are one memory if the call is in place.
struct Place {
  size_t memory = 0;
  uint64_t offset = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

struct RankState {
  std::vector<StepState> steps;
  std::array<SymbolicMemory, 3> memories;
  std::array<std::multimap<uint64_t, Access>, 3> accesses;  ///< by offset
};

/// Where output byte ranges come from.
struct Expected {
  Piece output;
  std::vector<Origin> origins;  ///< ascending by rank
};

std::vector<Expected> expected_of(const Problem& problem, uint32_t rank) {
  std::vector<Expected> expected;
  const auto from_all = [&](uint64_t offset) {
    std::vector<Origin> origins;
    for (uint32_t source = 0; source < problem.n_ranks; ++source) {
      origins.push_back({source, offset});
    }
    return origins;
  };
  const bool is_root = rank == problem.root;
  switch (problem.operation) {
    case Operation::reduce:
    case Operation::all_reduce:
      expected.push_back({{0, output_bytes(problem, rank)}, from_all(0)});
      break;
    case Operation::reduce_scatter:
      expected.push_back({{0, problem.shares[rank]}, from_all(pieces_of(problem)[rank].offset)});
      break;
    case Operation::gather:
    case Operation::all_gather:
      for (uint32_t source = 0; source < problem.n_ranks; ++source) {
        if (is_root || problem.operation == Operation::all_gather) {
          expected.push_back({pieces_of(problem)[source], {{source, 0}}});
        }
      }
      break;
    case Operation::broadcast:
      expected.push_back({{0, total_bytes(problem)}, {{problem.root, 0}}});
      break;
    case Operation::scatter:
      expected.push_back({{0, problem.shares[rank]}, {{problem.root, pieces_of(problem)[rank].offset}}});
      break;
    case Operation::all_to_all:
      for (uint32_t source = 0; source < problem.n_ranks; ++source) {
        expected.push_back({column_of(problem, rank)[source], {{source, row_of(problem, source)[rank].offset}}});
      }
      break;
    case Operation::barrier:
      break;
  }
  return expected;
}

/// Where the rank's input begins within its output in a call in place; a negative number if the output begins within
/// the input; nothing if the two are apart.
std::optional<int64_t> in_place_shift(const Problem& problem, uint32_t rank) {
  const bool is_root = rank == problem.root;
  const auto own = [&] { return static_cast<int64_t>(pieces_of(problem)[rank].offset); };
  switch (problem.operation) {
    case Operation::all_reduce:
      return 0;
    case Operation::reduce:
    case Operation::broadcast:
      return is_root ? std::optional<int64_t>(0) : std::nullopt;
    case Operation::all_gather:
      return own();
    case Operation::reduce_scatter:
      return -own();
    case Operation::gather:
      return is_root ? std::optional<int64_t>(own()) : std::nullopt;
    case Operation::scatter:
      return is_root ? std::optional<int64_t>(-own()) : std::nullopt;
    case Operation::all_to_all:
    case Operation::barrier:
      return std::nullopt;
  }
  return std::nullopt;
}

class Run {
 public:
  Run(const Schedule& schedule, const Problem& problem, bool is_in_place)
      : schedule_(schedule), problem_(problem), is_in_place_(is_in_place), ranks_(problem.n_ranks) {
    for (uint32_t rank = 0; rank < problem.n_ranks; ++rank) {
      for (const Step& step : schedule.programs[rank].steps) {
        StepState state;
        state.number = n_steps_++;
        state.n_chunks =
            std::max<uint32_t>(1, static_cast<uint32_t>((step.bytes + step.chunk_bytes - 1) / step.chunk_bytes));
        ranks_[rank].steps.push_back(std::move(state));
        for (const Source& source : step.sources) {
          if (source.kind == Source::Kind::local && source.after != kNoStep) {
            ranks_[rank].steps[source.after].is_waited_for = true;
          }
        }
      }
      if (const uint64_t bytes = input_bytes(problem, rank); bytes > 0) {
        const Place input = place_of(rank, Buffer::input, 0);
        ranks_[rank].memories[input.memory].write(input.offset, {{bytes, {{rank, 0}}}});
      }
    }
  }

  /// What is wrong, or nothing.
  std::string run() {
    for (bool goes_on = true; goes_on && objection_.empty();) {
      goes_on = false;
      for (uint32_t rank = 0; rank < problem_.n_ranks; ++rank) {
        for (uint32_t step = 0; step < ranks_[rank].steps.size() && objection_.empty(); ++step) {
          if (can_go(rank, step)) {
            goes_on = true;
            go(rank, step);
          }
        }
      }
    }
    if (objection_.empty()) {
      check_end();
    }
    return objection_.empty() ? objection_ : (is_in_place_ ? "in place: " : "") + objection_;
  }

  uint64_t n_chunks() const { return n_chunks_; }
  uint64_t lane_bytes() const { return lane_bytes_; }

 private:
  void object(uint32_t rank, uint32_t step, const std::string& what) {
    if (objection_.empty()) {
      objection_ = fmt::format("{}, chunk {}: {}", step_text(rank, step), ranks_[rank].steps[step].n_done, what);
    }
  }

  Place place_of(uint32_t rank, Buffer buffer, uint64_t offset) const {
    const auto shift = is_in_place_ ? in_place_shift(problem_, rank) : std::nullopt;
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

  /// How many chunks of the step that it waits for must be done before this chunk.
  uint32_t n_needed(uint32_t rank, const Step& step, const Source& source, uint32_t chunk) {
    const Step& other = schedule_.programs[rank].steps[source.after];
    const StepState& state = ranks_[rank].steps[source.after];
    if (source.after_all) {
      return state.n_chunks;
    }
    std::optional<uint64_t> first;
    for (const Target& target : other.targets) {
      if (target.kind == Target::Kind::local && target.buffer == source.buffer) {
        first = target.offset;
      }
    }
    for (const Source& read : other.sources) {
      const bool has_no_target = std::ranges::count(other.targets, Target::Kind::local, &Target::kind) == 0;
      if (has_no_target && read.kind == Source::Kind::local && read.buffer == source.buffer) {
        first = read.offset;
      }
    }
    const Piece part = chunk_of(step, chunk);
    const uint64_t start = std::max(source.offset + part.offset, first.value_or(0));
    const uint64_t end = std::min(source.offset + part.offset + part.bytes, first.value_or(0) + other.bytes);
    if (!first || start >= end) {
      return 0;
    }
    return static_cast<uint32_t>((end - 1 - *first) / other.chunk_bytes) + 1;
  }

  bool can_go(uint32_t rank, uint32_t index) {
    const Step& step = schedule_.programs[rank].steps[index];
    const StepState& state = ranks_[rank].steps[index];
    if (state.n_done == state.n_chunks) {
      return false;
    }
    for (const Source& source : step.sources) {
      if (source.kind == Source::Kind::lane) {
        if (!lanes_.contains({source.peer, rank, source.lane})) {
          return false;
        }
      } else if (source.after != kNoStep &&
                 ranks_[rank].steps[source.after].n_done < n_needed(rank, step, source, state.n_done)) {
        return false;
      }
    }
    return std::ranges::none_of(step.targets, [&](const Target& target) {
      return target.kind == Target::Kind::lane && lanes_.contains({rank, target.peer, target.lane});
    });
  }

  void merge(Clock& clock, const std::shared_ptr<const Clock>& other) const {
    for (size_t step = 0; other && step < clock.size(); ++step) {
      clock[step] = std::max(clock[step], (*other)[step]);
    }
  }

  void go(uint32_t rank, uint32_t index) {
    const Step& step = schedule_.programs[rank].steps[index];
    StepState& state = ranks_[rank].steps[index];
    const Piece part = chunk_of(step, state.n_done);
    auto clock = std::make_shared<Clock>(n_steps_);
    std::vector<Symbols> rows;
    std::vector<Place> reads;
    merge(*clock, state.clocks.empty() ? nullptr : state.clocks.back());
    for (const Source& source : step.sources) {
      if (source.kind == Source::Kind::lane) {
        auto message = lanes_.extract({source.peer, rank, source.lane});
        merge(*clock, message.mapped().clock);
        rows.push_back(std::move(message.mapped().symbols));
        continue;
      }
      if (source.after != kNoStep) {
        const uint32_t needed = n_needed(rank, step, source, state.n_done);
        merge(*clock, needed == 0 ? nullptr : ranks_[rank].steps[source.after].clocks[needed - 1]);
      }
      reads.push_back(place_of(rank, source.buffer, source.offset + part.offset));
      uint64_t hole = 0;
      auto symbols = ranks_[rank].memories[reads.back().memory].read(reads.back().offset, part.bytes, &hole);
      if (!symbols) {
        object(rank, index,
               fmt::format("{} offset {} is read before it is written", buffer_text(source.buffer),
                           source.offset + part.offset + (hole - reads.back().offset)));
        return;
      }
      rows.push_back(std::move(*symbols));
    }
    (*clock)[state.number] = state.n_done + 1;
    auto sum = sum_of(rows);
    if (!sum) {
      object(rank, index, "it adds up what has had its last touch");
      return;
    }
    for (Symbol& symbol : *sum) {
      if (step.finishes && symbol.is_finished) {
        object(rank, index, "it finishes what is finished");
      }
      symbol.is_finished = symbol.is_finished || step.finishes;
    }
    deliver(rank, index, part, *sum, clock, reads);
    if (!state.is_waited_for) {
      state.clocks.clear();
    }
    state.clocks.push_back(std::move(clock));
    ++state.n_done;
    ++n_chunks_;
  }

  void deliver(uint32_t rank, uint32_t index, const Piece& part, const Symbols& sum,
               const std::shared_ptr<const Clock>& clock, const std::vector<Place>& reads) {
    const Step& step = schedule_.programs[rank].steps[index];
    for (const Target& target : step.targets) {
      if (target.kind == Target::Kind::lane) {
        lanes_.emplace(LaneKey{rank, target.peer, target.lane}, Message{sum, clock});
        lane_bytes_ += part.bytes;
        continue;
      }
      const Place place = place_of(rank, target.buffer, target.offset + part.offset);
      if (step.sources.size() == 1 && reads.size() == 1 && reads.front() == place && !step.finishes) {
        continue;  // a copy onto itself, in place: nothing moves
      }
      record(rank, index, place, part.bytes, true, *clock);
      ranks_[rank].memories[place.memory].write(place.offset, sum);
    }
    for (const Place& place : reads) {
      record(rank, index, place, part.bytes, false, *clock);
    }
  }

  /// All earlier accesses to the same bytes must have happened before.
  void record(uint32_t rank, uint32_t index, const Place& place, uint64_t bytes, bool is_write, const Clock& clock) {
    if (bytes == 0) {
      return;
    }
    auto& accesses = ranks_[rank].accesses[place.memory];
    longest_ = std::max(longest_, bytes);
    const auto end = accesses.lower_bound(place.offset + bytes);
    auto one = place.offset < longest_ ? accesses.begin() : accesses.upper_bound(place.offset - longest_);
    for (; one != end; ++one) {
      const auto& [offset, other] = *one;
      const bool overlaps = offset + other.bytes > place.offset;
      const bool is_before = other.step == index || clock[ranks_[rank].steps[other.step].number] > other.chunk;
      if (overlaps && (is_write || other.is_write) && !is_before) {
        object(rank, index,
               fmt::format("{} {} bytes at offset {}, and nothing says whether step {} has {} them by then",
                           is_write ? "writes" : "reads", bytes, place.offset, other.step,
                           other.is_write ? "written" : "read"));
      }
    }
    accesses.emplace(place.offset, Access{bytes, is_write, index, ranks_[rank].steps[index].n_done});
  }

  void check_end() {
    for (uint32_t rank = 0; rank < problem_.n_ranks; ++rank) {
      for (uint32_t step = 0; step < ranks_[rank].steps.size(); ++step) {
        if (ranks_[rank].steps[step].n_done < ranks_[rank].steps[step].n_chunks) {
          object(rank, step, "it waits for ever");
        }
      }
    }
    for (uint32_t rank = 0; rank < problem_.n_ranks && objection_.empty(); ++rank) {
      check_output(rank);
      if (problem_.operation == Operation::barrier && problem_.n_ranks >= 2) {
        check_barrier(rank);
      }
    }
  }

  void check_output(uint32_t rank) {
    const Place place = place_of(rank, Buffer::output, 0);
    for (const Expected& expected : expected_of(problem_, rank)) {
      uint64_t hole = 0;
      const auto symbols =
          ranks_[rank].memories[place.memory].read(place.offset + expected.output.offset, expected.output.bytes, &hole);
      if (!symbols) {
        objection_ = fmt::format("rank {}: output offset {} is never written", rank, hole - place.offset);
        return;
      }
      uint64_t offset = 0;
      for (const Symbol& symbol : *symbols) {
        check_symbol(rank, expected.output.offset + offset, symbol, expected.origins, offset);
        offset += symbol.bytes;
      }
    }
  }

  void check_symbol(uint32_t rank, uint64_t output_offset, const Symbol& symbol, std::vector<Origin> expected,
                    uint64_t offset) {
    for (Origin& origin : expected) {
      origin.offset += offset;
    }
    std::vector<Origin> origins = symbol.origins;
    const bool is_ordered = symbol.is_left_fold && std::ranges::is_sorted(origins);
    std::ranges::sort(origins);
    std::string problem;
    if (origins != expected) {
      std::string found;
      for (const Origin& origin : symbol.origins) {
        found += fmt::format("{}{}@{}", found.empty() ? "" : " ", origin.rank, origin.offset);
      }
      problem = fmt::format("comes from {} (rank@input offset), which should be {} from {}@{} on", found,
                            expected.size() == 1 ? "one" : "one of each rank", expected.front().rank,
                            expected.front().offset);
    } else if (schedule_.is_rank_ordered && !is_ordered) {
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
    Clock known(n_steps_);
    for (const StepState& step : ranks_[rank].steps) {
      merge(known, step.clocks.back());
    }
    for (uint32_t other = 0; other < problem_.n_ranks; ++other) {
      if (std::ranges::none_of(ranks_[other].steps, [&](const StepState& step) { return known[step.number] > 0; })) {
        objection_ = fmt::format("rank {} leaves the barrier before it has heard of rank {}", rank, other);
      }
    }
  }

  const Schedule& schedule_;
  const Problem& problem_;
  bool is_in_place_;
  std::vector<RankState> ranks_;
  std::map<LaneKey, Message> lanes_;  // those that hold a chunk
  uint32_t n_steps_ = 0;
  uint64_t longest_ = 0;  // of all accesses
  uint64_t n_chunks_ = 0;
  uint64_t lane_bytes_ = 0;
  std::string objection_;
};

}  // namespace

tl::expected<CheckedSchedule, std::string> check(const Schedule& schedule, const Problem& problem,
                                                 const fabric::Graph& graph, const Limits& limits) {
  const auto lanes = check_structure(schedule, problem, graph, limits);
  if (!lanes) {
    return tl::unexpected(lanes.error());
  }
  CheckedSchedule checked;
  for (const bool is_in_place : {false, true}) {
    Run run(schedule, problem, is_in_place);
    if (std::string objection = run.run(); !objection.empty()) {
      return tl::unexpected(std::move(objection));
    }
    checked.n_chunks = run.n_chunks();
    checked.lane_bytes = run.lane_bytes();
  }
  for (const Program& program : schedule.programs) {
    checked.most_steps = std::max(checked.most_steps, static_cast<uint32_t>(program.steps.size()));
  }
  for (const auto& [lane, ends] : *lanes) {
    checked.most_lanes = std::max(checked.most_lanes, lane.number + 1);
  }
  return checked;
}

}  // namespace ringbolt::collective
