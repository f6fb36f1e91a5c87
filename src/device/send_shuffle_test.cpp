// What RINGBOLT_SHUFFLE does to sends (docs/shuffle.md): odd, and never what is forbidden.

#include "device/send_shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "base/error.h"
#include "device/send_quirks_test_support.h"
#include "device/shuffle_source.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kSeeds = 40;
constexpr uint64_t kMostDelayNs = 4'000'000;  // docs/shuffle.md

class SendShuffleTest : public SendQuirksTest {
 protected:
  /// `wish`: as RINGBOLT_SHUFFLE has it.
  void begin_shuffled(const std::string& wish, ibv_qp_type type = IBV_QPT_RC, uint32_t depth = 64) {
    const Variable shuffle("RINGBOLT_SHUFFLE", wish);
    begin("", "", type, depth);
    shuffle_ = SendShuffle::create(core());
    ASSERT_NE(shuffle_, nullptr);
  }
  static SendRequest request(ibv_wr_opcode opcode, uint32_t length, uint64_t address = 0x10000) {
    SendRequest request{};
    request.opcode = opcode;
    request.length = length;
    request.remote_address = address;
    return request;
  }
  std::unique_ptr<SendShuffle> shuffle_;
};

bool is_usual(const SendShuffle::Course& course) {
  return course.parts.count == 1 && course.hold_ns == 0 && course.between_ns == 0 && course.late_ns == 0 &&
         !course.is_copied && !course.meets_receives && !course.is_whole_at_last;
}

TEST_F(SendShuffleTest, there_is_none_where_nobody_asks) {
  begin("", "", IBV_QPT_RC);
  EXPECT_EQ(SendShuffle::create(core()), nullptr);
}

// A word of 8 bytes at a multiple of 8 stays whole.
TEST_F(SendShuffleTest, parts_are_all_of_the_message_once_in_whole_words) {
  std::set<uint32_t> counts;
  bool has_last_first = false;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":order");
    for (const ibv_wr_opcode opcode : {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ}) {
      for (const uint32_t length : {0U, 1U, 8U, 9U, 64U, 65U, 4099U}) {
        for (const uint64_t address : {0x10000ULL, 0x10003ULL}) {
          const auto course = shuffle_->course_of(request(opcode, length, address), true);
          std::vector<shuffle::Part> parts(course.parts.at.begin(), course.parts.at.begin() + course.parts.count);
          counts.insert(course.parts.count);
          has_last_first = has_last_first || (parts.size() > 1 && parts[0].offset != 0);
          std::ranges::sort(parts, {}, &shuffle::Part::offset);
          uint32_t end = 0;
          for (const shuffle::Part& part : parts) {
            EXPECT_EQ(part.offset, end);
            EXPECT_TRUE(end == 0 || (address + end) % 8 == 0);
            end += part.length;
          }
          EXPECT_EQ(end, length);
          EXPECT_FALSE(course.is_copied || course.meets_receives || course.is_whole_at_last);
          EXPECT_LE(course.between_ns, kMostDelayNs);
        }
      }
    }
  }
  EXPECT_EQ(*counts.rbegin(), 4U);  // of so many tries some have as many parts as there can be
  EXPECT_TRUE(has_last_first);
}

TEST_F(SendShuffleTest, only_what_has_remote_memory_comes_in_parts) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":order");
    for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_INV, IBV_WR_LOCAL_INV,
                                       IBV_WR_BIND_MW, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
      EXPECT_TRUE(is_usual(shuffle_->course_of(request(opcode, 4096), true)));
    }
    EXPECT_TRUE(is_usual(shuffle_->course_of(request(IBV_WR_RDMA_WRITE, 4096), false)));
  }
}

// Its receiver is told of as many bytes as the message has.
TEST_F(SendShuffleTest, write_with_an_immediate_ends_with_all_of_it) {
  bool has_parts = false;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":order");
    const auto course = shuffle_->course_of(request(IBV_WR_RDMA_WRITE_WITH_IMM, 4096), true);
    EXPECT_EQ(course.is_whole_at_last, course.parts.count > 1);
    if (course.parts.count > 1) {
      has_parts = true;
      ASSERT_EQ(course.parts.count, 2U);
      EXPECT_EQ(course.parts.at[1], (shuffle::Part{0, 4096}));
    }
  }
  EXPECT_TRUE(has_parts);
}

TEST_F(SendShuffleTest, each_kind_does_what_it_is_for_and_nothing_else) {
  uint64_t acks = 0;
  uint64_t pairs = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":acks");
    for (int i = 0; i < 8; ++i) {
      auto course = shuffle_->course_of(request(IBV_WR_RDMA_WRITE, 4096), true);
      acks += course.late_ns == 0 ? 0U : 1U;
      EXPECT_LE(course.late_ns, kMostDelayNs);
      course.late_ns = 0;
      EXPECT_TRUE(is_usual(course));
    }
    begin_shuffled(std::to_string(seed) + ":pairs");
    for (int i = 0; i < 8; ++i) {
      auto course = shuffle_->course_of(request(IBV_WR_SEND, 4096), true);
      pairs += course.hold_ns == 0 ? 0U : 1U;
      EXPECT_EQ(course.is_copied, course.hold_ns != 0);  // it leaves with the bytes that it had then
      course.hold_ns = 0;
      course.is_copied = false;
      EXPECT_TRUE(is_usual(course));
    }
  }
  EXPECT_GT(acks, 0U);
  EXPECT_GT(pairs, 0U);
}

TEST_F(SendShuffleTest, only_the_operations_that_are_named_are_odd) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":acks@3-4");
    for (int number = 1; number <= 6; ++number) {
      const auto course = shuffle_->course_of(request(IBV_WR_SEND, 8), true);
      EXPECT_TRUE(number == 3 || number == 4 || is_usual(course));
    }
  }
}

// What is sent behind a READ may be what the memory held before, but not behind a fence.
TEST_F(SendShuffleTest, sends_pass_reads_unless_a_fence_holds_them_or_the_read_is_done) {
  bool has_passed = false;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":fence@1");
    const bool is_held = shuffle_->course_of(request(IBV_WR_RDMA_READ, 64), false).hold_ns != 0;
    core().sends.tail.store(1);
    SendRequest fenced = request(IBV_WR_SEND, 64);
    fenced.is_fenced = true;
    EXPECT_FALSE(shuffle_->course_of(fenced, false).is_copied);
    EXPECT_EQ(shuffle_->course_of(request(IBV_WR_SEND, 64), false).is_copied, is_held);
    EXPECT_FALSE(shuffle_->course_of(request(IBV_WR_RDMA_READ, 64), false).is_copied);
    core().sends.done.store(1);
    EXPECT_FALSE(shuffle_->course_of(request(IBV_WR_SEND, 64), false).is_copied);
    core().sends.reset();
    has_passed = has_passed || is_held;
  }
  EXPECT_TRUE(has_passed);
}

TEST_F(SendShuffleTest, only_what_takes_a_receive_of_rc_meets_it_at_once) {
  uint64_t met = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    begin_shuffled(std::to_string(seed) + ":rnr", IBV_QPT_UC);
    EXPECT_FALSE(shuffle_->course_of(request(IBV_WR_SEND, 8), true).meets_receives);
    begin_shuffled(std::to_string(seed) + ":rnr");
    EXPECT_FALSE(shuffle_->course_of(request(IBV_WR_RDMA_WRITE, 8), true).meets_receives);
    EXPECT_FALSE(shuffle_->course_of(request(IBV_WR_RDMA_READ, 8), true).meets_receives);
    met += shuffle_->course_of(request(IBV_WR_SEND, 8), true).meets_receives ? 1U : 0U;
    met += shuffle_->course_of(request(IBV_WR_RDMA_WRITE_WITH_IMM, 8), true).meets_receives ? 1U : 0U;
  }
  EXPECT_GT(met, 0U);
}

TEST_F(SendShuffleTest, same_seed_does_the_same_again) {
  using Fate = std::tuple<uint64_t, uint64_t, uint32_t, bool>;
  const auto fates = [&](uint64_t seed) {
    begin_shuffled(std::to_string(seed));
    std::vector<Fate> all;
    for (int i = 0; i < 30; ++i) {
      const auto course = shuffle_->course_of(request(IBV_WR_RDMA_WRITE, 4096), true);
      all.emplace_back(course.hold_ns, course.late_ns, course.parts.count, course.is_copied);
    }
    return all;
  };
  EXPECT_EQ(fates(7), fates(7));
  EXPECT_NE(fates(7), fates(8));
}

// --- As a send queue carries it out.

TEST_F(SendShuffleTest, requests_are_executed_whole_and_completed_in_their_order) {
  constexpr uint64_t kRequests = 12;
  constexpr uint32_t kLength = 200;
  size_t extra_parts = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    begin_shuffled(std::to_string(seed));
    const std::string whole = bytes(kLength);
    for (uint64_t id = 0; id < kRequests; ++id) {
      ibv_sge piece = data_->piece(0, kLength);
      ibv_send_wr wr = End::request(id % 3 == 2 ? IBV_WR_SEND : IBV_WR_RDMA_WRITE, id, &piece);
      wr.wr.rdma = {0x10000, 1};
      ASSERT_EQ(post(wr), 0);
    }
    Ends ends;
    while (ends.size() < kRequests) {
      const Ends more = await();
      ASSERT_FALSE(more.empty()) << "seed " << seed;
      ends.insert(ends.end(), more.begin(), more.end());
    }
    std::vector<std::string> written(kRequests);
    uint64_t last = 0;
    for (const auto& one : transport().submitted) {
      EXPECT_GE(one.wr_id, last);
      last = one.wr_id;
      std::string& target = written[one.wr_id];
      const size_t at = one.request.opcode == IBV_WR_SEND ? 0 : one.request.remote_address - 0x10000;
      target.resize(std::max(target.size(), at + one.bytes.size()));
      target.replace(at, one.bytes.size(), one.bytes);
    }
    extra_parts += transport().submitted.size() - kRequests;
    for (uint64_t id = 0; id < kRequests; ++id) {
      EXPECT_EQ(ends[id], (std::pair<uint64_t, ibv_wc_status>{id, IBV_WC_SUCCESS}));
      EXPECT_EQ(written[id], whole) << "seed " << seed << ", wr_id " << id;
    }
  }
  EXPECT_GT(extra_parts, 0U);
}

TEST_F(SendShuffleTest, what_is_held_back_leaves_when_nobody_is_left_to_have_it_leave) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    begin_shuffled(std::to_string(seed) + ":pairs");
    for (uint64_t id = 0; id < 4; ++id) {
      ASSERT_EQ(send(id), 0);
    }
    {
      const SendGuard guard(core().locks);
      queue_->quirks()->let_go(*queue_);
    }
    EXPECT_EQ(transport().ids(), (std::vector<uint64_t>{0, 1, 2, 3}));
  }
}

// --- Whose seed it is.

/// In which launchers say a process' rank.
constexpr std::array kRankVariables{
    "RINGBOLT_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "MLX_RANK", "JACCL_RANK"};

/// Whatever started the tests, nothing says a seed, a rank or a node; at its end the environment is as it was.
class ShuffleSource : public testing::Test {
 protected:
  ShuffleSource() {
    for (const char* const name : kRankVariables) {
      save_and_unset(name);
    }
    save_and_unset("RINGBOLT_SHUFFLE");
    save_and_unset("RINGBOLT_NODE");
  }
  ~ShuffleSource() override {
    for (const auto& [name, value] : saved_) {
      setenv(name, value.c_str(), 1);
    }
  }

 private:
  void save_and_unset(const char* name) {
    if (const char* const value = std::getenv(name)) {
      saved_.emplace(name, value);
      unsetenv(name);
    }
  }
  std::map<const char*, std::string> saved_;
};

TEST_F(ShuffleSource, is_none_unless_asked_for) {
  EXPECT_FALSE(shuffle_from_environment());
  for (const char* off : {"", "off"}) {
    const Variable shuffle("RINGBOLT_SHUFFLE", off);
    EXPECT_FALSE(shuffle_from_environment());
  }
}

TEST_F(ShuffleSource, slip_is_refused_by_the_variable) {
  const Variable shuffle("RINGBOLT_SHUFFLE", "7:lat");
  try {
    shuffle_from_environment();
    ADD_FAILURE();
  } catch (const base::Error& error) {
    EXPECT_EQ(error.errno_value(), EINVAL);
    EXPECT_EQ(error.object(), "RINGBOLT_SHUFFLE=7:lat");
  }
}

TEST_F(ShuffleSource, ranks_and_nodes_have_oddities_of_their_own) {
  const Variable shuffle("RINGBOLT_SHUFFLE", "7");
  const auto lots = [] {
    const auto made = shuffle_from_environment();
    std::vector<shuffle::Lot> all;
    for (uint64_t number = 1; number <= 64; ++number) {
      all.push_back(made->draw(shuffle::Kind::order, 0, number));
    }
    return all;
  };
  const auto alone = lots();
  EXPECT_EQ(lots(), alone);
  std::set<std::vector<shuffle::Lot>> of_rank_1;  // whichever launcher says it
  for (const char* const name : kRankVariables) {
    const Variable rank(name, "1");
    of_rank_1.insert(lots());
  }
  EXPECT_EQ(of_rank_1.size(), 1U);
  EXPECT_FALSE(of_rank_1.contains(alone));
  {
    const Variable first("RINGBOLT_RANK", "2");
    const Variable second("SLURM_PROCID", "1");
    EXPECT_FALSE(of_rank_1.contains(lots()));
  }
  const Variable node("RINGBOLT_NODE", "1");
  EXPECT_NE(lots(), alone);
}

}  // namespace
}  // namespace ringbolt::device
