#include "collective/executor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "collective/played_ranks_test_support.h"

namespace ringbolt::collective {
namespace {

using test::PlayedRanks;

Source from_local(Buffer buffer, uint64_t offset = 0, uint32_t after = kNoStep) {
  return {Source::Kind::local, buffer, offset, after, false, 0, 0};
}
Source from_transfer(uint32_t peer, uint32_t transfer = 0) {
  return {Source::Kind::transfer, Buffer::input, 0, kNoStep, false, peer, transfer};
}
Target to_local(Buffer buffer, uint64_t offset = 0) { return {Target::Kind::local, buffer, offset, 0, 0, {}}; }
Target to_transfer(uint32_t peer, uint32_t transfer = 0) {
  return {Target::Kind::transfer, Buffer::output, 0, peer, transfer, {}};
}

/// Two ranks that send each other all they have and add it up in the order of ranks.
Schedule exchange(uint64_t bytes, uint32_t chunk_bytes) {
  Schedule schedule{"exchange", true, {}};
  for (uint32_t rank = 0; rank < 2; ++rank) {
    const uint32_t peer = 1 - rank;
    std::vector<Source> sources = {from_local(Buffer::input), from_transfer(peer)};
    if (rank == 1) {
      std::swap(sources[0], sources[1]);
    }
    schedule.programs.push_back({0,
                                 {{bytes, chunk_bytes, {from_local(Buffer::input)}, {to_transfer(peer)}, false},
                                  {bytes, chunk_bytes, sources, {to_local(Buffer::output)}, true}}});
  }
  return schedule;
}

std::vector<int32_t> numbers(size_t count, int32_t first) {
  std::vector<int32_t> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

std::byte* bytes_of(std::vector<int32_t>& values) { return reinterpret_cast<std::byte*>(values.data()); }

TEST(Execution, runs_whatever_the_order_of_arrival) {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{4}, size_t{5}, size_t{400}}) {
    PlayedRanks ranks(exchange(count * 4, 16), 1);
    for (uint32_t call = 0; call < 20; ++call) {
      std::vector<int32_t> in[2] = {numbers(count, 1), numbers(count, 1000)};
      std::vector<int32_t> out[2] = {numbers(count, -5), numbers(count, -5)};
      std::vector<Operands> operands;
      for (int rank = 0; rank < 2; ++rank) {
        operands.push_back({bytes_of(in[rank]), bytes_of(out[rank]), Type::int32, Reduction::sum, 0});
      }
      ASSERT_TRUE(ranks.run(call, operands)) << count;
      for (size_t i = 0; i < count; ++i) {
        ASSERT_EQ(out[0][i], in[0][i] + in[1][i]);
        ASSERT_EQ(out[1][i], in[0][i] + in[1][i]);
      }
    }
  }
}

TEST(Execution, in_place_reads_before_it_writes) {
  // One slot: what is to be sent lags behind what arrives.
  const size_t count = 400;
  PlayedRanks ranks(exchange(count * 4, 16), 2, 1);
  for (uint32_t call = 0; call < 50; ++call) {
    std::vector<int32_t> data[2] = {numbers(count, 1), numbers(count, 1000)};
    std::vector<int32_t> apart[2] = {numbers(count, -5), numbers(count, -5)};
    std::vector<int32_t>* out = call % 3 == 0 ? apart : data;  // what a call may do depends on no earlier one
    std::vector<Operands> operands;
    for (int rank = 0; rank < 2; ++rank) {
      operands.push_back({bytes_of(data[rank]), bytes_of(out[rank]), Type::int32, Reduction::sum, 0});
    }
    ASSERT_TRUE(ranks.run(call, operands));
    for (size_t i = 0; i < count; ++i) {
      ASSERT_EQ(out[0][i], 1001 + 2 * static_cast<int32_t>(i));
      ASSERT_EQ(out[1][i], 1001 + 2 * static_cast<int32_t>(i));
    }
  }
}

TEST(Execution, a_rank_alone_reduces_booleans_to_0_and_1) {
  using Bytes = std::vector<uint8_t>;
  const Bytes given = {0, 1, 0xaf, 2, 0, 0x80, 0xff};
  for (const bool finishes : {true, false}) {  // a reduction, or a copy, whose bytes stay
    for (const bool is_in_place : {true, false}) {
      Schedule schedule{"alone", true, {}};
      schedule.programs.push_back(
          {0, {{given.size(), 3, {from_local(Buffer::input)}, {to_local(Buffer::output)}, finishes}}});
      PlayedRanks ranks(schedule, 1);
      Bytes in = given;
      Bytes apart(in.size(), 9);
      Bytes& out = is_in_place ? in : apart;
      ASSERT_TRUE(ranks.run(1, {{reinterpret_cast<std::byte*>(in.data()), reinterpret_cast<std::byte*>(out.data()),
                                 Type::boolean, Reduction::sum, 0}}));
      EXPECT_EQ(out, finishes ? (Bytes{0, 1, 1, 1, 0, 1, 1}) : given) << is_in_place;
    }
  }
}

TEST(Execution, chunks_follow_one_another_through_scratch) {
  // 0 sends; 1 keeps in scratch and a second step passes it on; 2 receives.
  Schedule schedule{"chain", true, {}};
  schedule.programs.push_back({0, {{160, 16, {from_local(Buffer::input)}, {to_transfer(1)}, false}}});
  schedule.programs.push_back({160,
                               {{160, 16, {from_local(Buffer::scratch, 0, 1)}, {to_transfer(2)}, false},
                                {160, 16, {from_transfer(0)}, {to_local(Buffer::scratch)}, false}}});
  schedule.programs.push_back({0, {{160, 16, {from_transfer(1)}, {to_local(Buffer::output)}, true}}});
  PlayedRanks ranks(schedule, 3);
  std::vector<int32_t> in = numbers(40, 7);
  std::vector<int32_t> out(40);
  ASSERT_TRUE(ranks.run(1, {{bytes_of(in), nullptr}, {nullptr, nullptr}, {nullptr, bytes_of(out)}}));
  EXPECT_EQ(out, in);
}

TEST(Execution, waits_for_all_of_a_step_where_it_says_so) {
  Schedule schedule{"backwards", true, {}};
  schedule.programs.push_back({0, {{32, 16, {from_local(Buffer::input)}, {to_transfer(1)}, false}}});
  Source last = from_local(Buffer::scratch, 16, 0);
  last.after_all = true;
  schedule.programs.push_back({32,
                               {{32, 16, {from_transfer(0)}, {to_local(Buffer::scratch)}, false},
                                {16, 16, {last}, {to_local(Buffer::output)}, true},
                                {16, 16, {from_local(Buffer::scratch, 0, 0)}, {to_local(Buffer::output, 16)}, true}}});
  for (uint32_t seed = 0; seed < 10; ++seed) {
    PlayedRanks ranks(schedule, seed);
    std::vector<int32_t> in = numbers(8, 1);
    std::vector<int32_t> out(8);
    ASSERT_TRUE(ranks.run(1, {{bytes_of(in), nullptr}, {nullptr, bytes_of(out)}}));
    EXPECT_EQ(out, (std::vector<int32_t>{5, 6, 7, 8, 1, 2, 3, 4}));
  }
}

/// One rank of the exchange of 20 chunks, and its peer played by the test.
struct Alone {
  Alone() : ranks(exchange(320, 16), 4, 100) {
    in = numbers(80, 1);
    out.resize(80);
    ranks.execution(0).start(9, {bytes_of(in), bytes_of(out), Type::int32, Reduction::sum, 0}, ranks.p2p(0));
    ranks.execution(0).advance();
  }
  Taken arrive(uint32_t peer, uint32_t transfer, uint32_t chunk, size_t length) {
    return ranks.execution(0).arrive(peer, {9, transfer, chunk}, ranks.p2p(0).parcel(std::vector<std::byte>(length)));
  }
  PlayedRanks ranks;
  std::vector<int32_t> in;
  std::vector<int32_t> out;
};

TEST(Execution, sends_no_more_than_the_window) {
  Alone alone;
  EXPECT_EQ(alone.ranks.on_the_way().size(), kTransferWindow);
  EXPECT_EQ(alone.ranks.execution(0).hear_used(1, {9, 0, 3}), Taken::ok);
  alone.ranks.execution(0).advance();
  EXPECT_EQ(alone.ranks.on_the_way().size(), kTransferWindow + 3);
  EXPECT_EQ(alone.ranks.execution(0).hear_used(1, {9, 0, 2}), Taken::ok);  // an old word changes nothing
  alone.ranks.execution(0).advance();
  EXPECT_EQ(alone.ranks.on_the_way().size(), kTransferWindow + 3);
  EXPECT_EQ(alone.ranks.execution(0).hear_used(1, {9, 0, kTransferWindow + 4}), Taken::out_of_window);  // not even sent
  EXPECT_EQ(alone.ranks.execution(0).hear_used(1, {9, 1, 1}), Taken::no_such_transfer);
}

TEST(Execution, gives_others_a_turn) {
  constexpr uint32_t kChunks = 1000;
  std::vector<int32_t> in = numbers(kChunks * 4, 1);
  std::vector<int32_t> out(in.size());
  Program program;
  program.steps.push_back({in.size() * 4, 16, {from_local(Buffer::input)}, {to_local(Buffer::output)}, true});
  std::vector<test::PlayedP2p::Message> on_the_way;
  test::PlayedP2p p2p(0, 3, on_the_way);
  Execution execution(std::make_shared<const CompiledProgram>(program));
  execution.start(1, {bytes_of(in), bytes_of(out), Type::int32, Reduction::sum, 0}, p2p);
  uint32_t n_turns = 1;
  uint64_t before = 0;
  for (execution.advance(); execution.wants_turn(); execution.advance()) {
    EXPECT_LE(execution.chunks_done() - before, 64U);
    before = execution.chunks_done();
    ++n_turns;
  }
  EXPECT_GE(n_turns, kChunks / 64);
  EXPECT_TRUE(execution.is_done());
  EXPECT_EQ(out, in);
}

TEST(Execution, refuses_what_its_schedule_does_not_await) {
  Alone alone;
  EXPECT_EQ(alone.arrive(1, 1, 0, 16), Taken::no_such_transfer);
  EXPECT_EQ(alone.arrive(2, 0, 0, 16), Taken::no_such_transfer);
  EXPECT_EQ(alone.arrive(1, 0, 0, 15), Taken::wrong_length);
  EXPECT_EQ(alone.arrive(1, 0, 20, 16), Taken::wrong_length);
  EXPECT_EQ(alone.arrive(1, 0, kTransferWindow, 16), Taken::out_of_window);
  EXPECT_EQ(alone.arrive(1, 0, kTransferWindow - 1, 16), Taken::ok);
  EXPECT_EQ(alone.arrive(1, 0, kTransferWindow - 1, 16), Taken::out_of_window);  // twice
  EXPECT_EQ(alone.arrive(1, 0, 0, 16), Taken::ok);
  EXPECT_EQ(alone.arrive(1, 0, 0, 16), Taken::out_of_window);  // used already
  EXPECT_EQ(alone.ranks.execution(0).awaited_peer(), 1U);
  alone.ranks.execution(0).drop();
  EXPECT_EQ(alone.ranks.p2p(0).n_kept(), 0U);
}

}  // namespace
}  // namespace ringbolt::collective
