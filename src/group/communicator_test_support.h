#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/loop_fabric_test_support.h"
#include "group/communicator.h"

// Of tests alone: groups of three ranks in one thread, over the device.
namespace ringbolt::group::test {

inline constexpr uint64_t kNever = UINT64_MAX;

/// One rank of a group of all ranks, which hands on chunks and words as the mesh does.
class Member : public engine::Receiver {
 public:
  Member(engine::Engine& engine, uint32_t rank, const fabric::Graph& graph, uint16_t origin)
      : group(&engine, 0, ranks_of(graph), rank, graph, {}, {}, origin) {
    engine.set_receiver(*this);
  }
  void on_chunk(const engine::ChunkHeader& header, const engine::Receipt& receipt) override {
    group.on_chunk(header, receipt);
  }
  void on_word(const engine::ChunkHeader& header, std::span<const std::byte> bytes) override {
    if (const auto word = parse_word(bytes)) {
      heard.push_back(word->text);
      group.on_word(header, *word);
    }
  }
  void on_beat(uint32_t, std::span<const std::byte>) override {}
  void on_cable_failed(uint32_t) override {}

  Communicator group;
  std::vector<std::string> heard;  ///< of other ranks, in words

 private:
  static std::vector<uint32_t> ranks_of(const fabric::Graph& graph) {
    std::vector<uint32_t> ranks(graph.n_nodes);
    std::iota(ranks.begin(), ranks.end(), 0U);
    return ranks;
  }
};

/// Three ranks that are cabled to each other. What their groups take the cables to be is up to the test.
class CommunicatorTest : public testing::Test {
 protected:
  static constexpr uint32_t kRanks = 3;
  const fabric::Graph ring_{kRanks, {{0, 1}, {0, 2}, {1, 2}}};
  const fabric::Graph line_{kRanks, {{0, 1}, {1, 2}}};

  CommunicatorTest() : fabric_(kRanks, {{0, 1}, {1, 2}, {0, 2}}) {}
  void make(const std::vector<fabric::Graph>& graphs, const std::vector<uint16_t>& origins = {0, 0, 0}) {
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      members_.push_back(std::make_unique<Member>(fabric_.engine(rank), rank, graphs[rank], origins[rank]));
    }
  }
  void make(const fabric::Graph& graph) { make(std::vector<fabric::Graph>(kRanks, graph)); }
  Communicator& group(uint32_t rank) { return members_[rank]->group; }

  std::shared_ptr<Call> begin(uint32_t rank, collective::Operation operation, std::vector<int32_t>& data,
                              uint32_t root = 0, const std::string& algorithm = {}) {
    Asked asked;
    asked.what.algorithm = algorithm;
    asked.what.problem.operation = operation;
    asked.what.problem.root = root;
    asked.what.problem.n_ranks = kRanks;
    asked.what.problem.element_bytes = sizeof(int32_t);
    asked.what.n_equal_shares = operation == collective::Operation::barrier ? 0 : 1;
    asked.what.equal_share_bytes = data.size() * sizeof(int32_t);
    asked.type = collective::Type::int32;
    asked.input = data.data();
    asked.output = data.data();
    return group(rank).begin(asked, kNever);
  }
  bool run_until(const std::function<bool()>& is_done) {
    return fabric_.run_until([&] {
      for (const auto& member : members_) {
        member->group.advance(base::now_ns());
      }
      return is_done();
    });
  }
  static bool are_done(const std::vector<std::shared_ptr<Call>>& calls) {
    return std::all_of(calls.begin(), calls.end(), [](const auto& call) { return call->is_done(); });
  }
  /// An all_reduce on every rank: how it ends there.
  std::vector<Status> all_reduce(size_t count) {
    std::vector<std::vector<int32_t>> data(kRanks);
    std::vector<std::shared_ptr<Call>> calls;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      for (size_t i = 0; i < count; ++i) {
        data[rank].push_back(static_cast<int32_t>(i * 17 + rank * 1000));
      }
      calls.push_back(begin(rank, collective::Operation::all_reduce, data[rank]));
    }
    EXPECT_TRUE(run_until([&] { return are_done(calls); }));
    std::vector<Status> ends;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      ends.push_back(calls[rank]->status());
      for (size_t i = 0; i < count && ends.back().is_ok(); ++i) {
        EXPECT_EQ(data[rank][i], static_cast<int32_t>(i * 17 * kRanks + 3000)) << "rank " << rank << ", element " << i;
      }
    }
    return ends;
  }

  engine::test::LoopFabric fabric_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace ringbolt::group::test
