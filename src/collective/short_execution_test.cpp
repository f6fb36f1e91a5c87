#include "collective/short_execution.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "collective/builder.h"
#include "collective/played_ranks_test_support.h"
#include "collective/problems_test_support.h"

namespace ringbolt::collective {
namespace {

using Floats = std::vector<float>;
constexpr uint32_t kMostBytes = 4096;
constexpr uint32_t kNeverHandedOver = UINT32_MAX;

/// One rank of a call that begins the short way and is handed over before its `n`-th event, or when it has no slot.
class MixedRank {
 public:
  MixedRank(const Program& program, uint32_t rank, size_t n_slots, std::vector<test::PlayedP2p::Message>& on_the_way)
      : program_(std::make_shared<const CompiledProgram>(program)),
        short_(program_),
        long_(program_),
        p2p_(rank, n_slots, on_the_way) {}

  static bool fits(const Program& program) { return ShortExecution::fits(CompiledProgram(program), kMostBytes); }
  void begin(uint32_t call, const Operands& operands, uint32_t handed_over_before) {
    left_ = handed_over_before;
    is_handed_over_ = false;
    short_.start(call, operands, p2p_);
    go_on();
  }
  bool take(test::PlayedP2p::Message&& message) {
    go_on();
    const auto kept = p2p_.keep(std::move(message.bytes));
    const bool is_taken = is_handed_over_
                              ? long_.arrive(message.from, message.tag, Parcel(&p2p_, kept.id, kept.bytes)) == Taken::ok
                              : short_.arrive(message.from, message.tag, kept.id, kept.bytes);
    go_on();
    return is_taken;
  }
  void go_on() {
    if (!is_handed_over_ && (left_-- == 0 || !short_.advance())) {
      is_handed_over_ = true;
      short_.hand_over(long_);
    }
    if (is_handed_over_) {
      long_.advance();
    }
  }
  bool is_done() const { return (is_handed_over_ ? long_.is_done() : short_.is_done()) && p2p_.n_kept() == 0; }
  test::PlayedP2p& p2p() { return p2p_; }

 private:
  std::shared_ptr<const CompiledProgram> program_;
  ShortExecution short_;
  Execution long_;
  test::PlayedP2p p2p_;
  uint32_t left_ = 0;
  bool is_handed_over_ = false;
};

/// Input of one rank, long enough for any operation, where order shows in the last bits.
Floats input_of(uint32_t rank, size_t n) {
  Floats numbers(n);
  for (size_t i = 0; i < n; ++i) {
    numbers[i] = static_cast<float>((i * 31 + rank * 1009) % 4093) * (rank % 2 == 0 ? 1.1e6F : 0.37F);
  }
  return numbers;
}

struct Memory {
  std::vector<Floats> inputs;
  std::vector<Floats> outputs;
  std::vector<Operands> operands;
  Memory(uint32_t n_ranks, size_t n, bool is_in_place) {
    for (uint32_t rank = 0; rank < n_ranks; ++rank) {
      inputs.push_back(input_of(rank, n));
      outputs.emplace_back(n, -7.5F);
    }
    for (uint32_t rank = 0; rank < n_ranks; ++rank) {
      Floats& to = is_in_place ? inputs[rank] : outputs[rank];
      operands.push_back({reinterpret_cast<const std::byte*>(inputs[rank].data()),
                          reinterpret_cast<std::byte*>(to.data()), Type::float32, Reduction::sum, 0});
    }
  }
};

bool run_mixed(std::vector<std::unique_ptr<MixedRank>>& ranks, std::vector<test::PlayedP2p::Message>& on_the_way,
               const std::vector<Operands>& operands, uint32_t call, std::mt19937& random) {
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank]->begin(call, operands[rank],
                       random() % 3 == 0 ? kNeverHandedOver : static_cast<uint32_t>(random() % 6));
  }
  while (!on_the_way.empty()) {
    std::swap(on_the_way[random() % on_the_way.size()], on_the_way.back());
    test::PlayedP2p::Message message = std::move(on_the_way.back());
    on_the_way.pop_back();
    const uint32_t from = message.from;
    const uint32_t slot = message.slot;
    if (!ranks[message.to]->take(std::move(message))) {
      return false;
    }
    ranks[from]->p2p().cancel({nullptr, slot});
    ranks[from]->go_on();
  }
  return std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank->is_done(); });
}

void compare(const Schedule& schedule, uint32_t n_ranks, size_t n_floats, bool is_in_place, size_t n_slots) {
  std::mt19937 random(static_cast<uint32_t>(n_floats) + n_ranks);
  test::PlayedRanks reference(schedule, 7, n_ranks);
  std::vector<test::PlayedP2p::Message> on_the_way;
  std::vector<std::unique_ptr<MixedRank>> ranks;
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    ranks.push_back(std::make_unique<MixedRank>(schedule.programs[rank], rank, n_slots, on_the_way));
  }
  for (uint32_t call = 0; call < 8; ++call) {
    Memory wanted(n_ranks, n_floats, is_in_place);
    Memory found(n_ranks, n_floats, is_in_place);
    ASSERT_TRUE(reference.run(call, wanted.operands));
    ASSERT_TRUE(run_mixed(ranks, on_the_way, found.operands, call, random)) << "call " << call;
    for (uint32_t rank = 0; rank < n_ranks; ++rank) {
      const auto& [one, other] = std::pair(wanted.operands[rank].output, found.operands[rank].output);
      ASSERT_EQ(std::memcmp(one, other, n_floats * sizeof(float)), 0) << "call " << call << ", rank " << rank;
    }
  }
}

TEST(ShortExecution, gives_the_bits_of_an_execution_wherever_it_is_handed_over) {
  uint32_t n_compared = 0;
  for (const NamedGraph& graph : usual_graphs()) {
    const Topology topology(graph.graph);
    const uint32_t n_ranks = graph.graph.n_nodes;
    for (const Operation operation : kOperations) {
      for (const uint64_t n_elements : {uint64_t{0}, uint64_t{1}, uint64_t{16}}) {
        const Problem problem = problem_of(operation, n_ranks, n_elements, sizeof(float), n_ranks / 2);
        for (const std::string& name : candidates(problem, topology)) {
          const Schedule schedule = build(name, problem, topology, {});
          if (!std::all_of(schedule.programs.begin(), schedule.programs.end(), MixedRank::fits)) {
            continue;
          }
          SCOPED_TRACE(graph.name + ", " + name + ", " + text_of(problem));
          const size_t n_floats = n_elements * n_ranks * n_ranks + 1;
          compare(schedule, n_ranks, n_floats, false, n_ranks);
          if (operation == Operation::all_reduce) {
            compare(schedule, n_ranks, n_floats, true, 2 * size_t{n_ranks});
          }
          ++n_compared;
        }
      }
    }
  }
  EXPECT_GT(n_compared, 100U);
}

/// Rank 0 sends its 16 bytes to rank 1, which adds its own.
struct Exchange {
  Exchange() {
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const Source mine{Source::Kind::local, Buffer::input, 0, kNoStep, false, 0, 0};
      const Source theirs{Source::Kind::transfer, Buffer::input, 0, kNoStep, false, 1 - rank, 0};
      const Target away{Target::Kind::transfer, Buffer::output, 0, 1 - rank, 0, {}};
      const Target here{Target::Kind::local, Buffer::output, 0, 0, 0, {}};
      programs.push_back({0, {{16, 16, {mine}, {away}, false}, {16, 16, {mine, theirs}, {here}, true}}});
    }
    operands = {reinterpret_cast<const std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()), Type::int32,
                Reduction::sum, 0};
  }
  std::vector<Program> programs;
  std::vector<int32_t> in = {1, 2, 3, 4};
  std::vector<int32_t> out = {-1, -1, -1, -1};
  Operands operands;
  std::vector<test::PlayedP2p::Message> on_the_way;
};

TEST(ShortExecution, leaves_alone_what_it_does_not_await) {
  Exchange exchange;
  const auto program = std::make_shared<const CompiledProgram>(exchange.programs[0]);
  test::PlayedP2p p2p(0, 4, exchange.on_the_way);
  ShortExecution execution(program);
  execution.start(9, exchange.operands, p2p);
  ASSERT_TRUE(execution.advance());
  const auto chunk = p2p.keep(std::vector<std::byte>(16, std::byte{1}));
  EXPECT_FALSE(execution.arrive(0, {9, 0, 0}, chunk.id, chunk.bytes));                 // of this rank
  EXPECT_FALSE(execution.arrive(1, {9, 1, 0}, chunk.id, chunk.bytes));                 // of another transfer
  EXPECT_FALSE(execution.arrive(1, {9, 0, 1}, chunk.id, chunk.bytes));                 // a second chunk
  EXPECT_FALSE(execution.arrive(1, {9, 0, 0}, chunk.id, chunk.bytes.subspan(0, 15)));  // too short
  EXPECT_EQ(p2p.n_kept(), 1U);
  EXPECT_FALSE(execution.is_done());
  EXPECT_TRUE(execution.arrive(1, {9, 0, 0}, chunk.id, chunk.bytes));
  EXPECT_TRUE(execution.is_done());
  EXPECT_EQ(p2p.n_kept(), 0U);
  EXPECT_EQ(exchange.out, (std::vector<int32_t>{0x01010102, 0x01010103, 0x01010104, 0x01010105}));
  const auto again = p2p.keep(std::vector<std::byte>(16));
  EXPECT_FALSE(execution.arrive(1, {9, 0, 0}, again.id, again.bytes));
  EXPECT_EQ(p2p.n_kept(), 1U);
}

TEST(ShortExecution, who_goes_on_knows_what_has_been_sent_and_used) {
  Exchange exchange;
  const auto program = std::make_shared<const CompiledProgram>(exchange.programs[0]);
  test::PlayedP2p p2p(0, 4, exchange.on_the_way);
  ShortExecution execution(program);
  execution.start(9, exchange.operands, p2p);
  ASSERT_TRUE(execution.advance());
  EXPECT_EQ(exchange.on_the_way.size(), 1U);
  Execution other(program);
  execution.hand_over(other);
  other.advance();
  EXPECT_EQ(exchange.on_the_way.size(), 1U);  // not once more
  EXPECT_EQ(other.chunks_done(), 1U);
  EXPECT_EQ(other.awaited_peer(), 1U);
  EXPECT_EQ(other.arrive(1, {9, 0, 0}, p2p.parcel(std::vector<std::byte>(16))), Taken::ok);
  EXPECT_TRUE(other.is_done());

  execution.start(10, exchange.operands, p2p);
  const auto chunk = p2p.keep(std::vector<std::byte>(16));
  ASSERT_TRUE(execution.arrive(1, {10, 0, 0}, chunk.id, chunk.bytes));  // which it uses
  execution.hand_over(other);
  EXPECT_EQ(other.arrive(1, {10, 0, 0}, p2p.parcel(std::vector<std::byte>(16))), Taken::out_of_window);
  other.advance();
  EXPECT_TRUE(other.is_done());
  EXPECT_EQ(p2p.n_kept(), 0U);
}

TEST(ShortExecution, says_that_no_slot_is_free_and_tries_again) {
  Exchange exchange;
  test::PlayedP2p p2p(0, 1, exchange.on_the_way);
  ShortExecution execution(std::make_shared<const CompiledProgram>(exchange.programs[0]));
  const auto taken = p2p.take_slot(16);
  execution.start(9, exchange.operands, p2p);
  EXPECT_FALSE(execution.advance());
  EXPECT_TRUE(exchange.on_the_way.empty());
  p2p.cancel(*taken);
  EXPECT_TRUE(execution.advance());
  EXPECT_EQ(exchange.on_the_way.size(), 1U);
}

TEST(ShortExecution, fits_programs_whose_steps_are_one_short_chunk) {
  Exchange exchange;
  Program& program = exchange.programs[0];
  EXPECT_TRUE(ShortExecution::fits(CompiledProgram(program), 16));
  EXPECT_FALSE(ShortExecution::fits(CompiledProgram(program), 15));
  program.steps[1].chunk_bytes = 8;  // two chunks
  EXPECT_FALSE(ShortExecution::fits(CompiledProgram(program), 16));
  program.steps[1].chunk_bytes = 16;
  const Step copy{16, 16, {program.steps[0].sources[0]}, {program.steps[1].targets[0]}, false};
  program.steps.resize(ShortExecution::kMostSteps, copy);
  EXPECT_TRUE(ShortExecution::fits(CompiledProgram(program), 16));
  program.steps.push_back(copy);
  EXPECT_FALSE(ShortExecution::fits(CompiledProgram(program), 16));
}

}  // namespace
}  // namespace ringbolt::collective
