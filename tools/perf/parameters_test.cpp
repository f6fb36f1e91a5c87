#include "perf/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ringbolt::tools::perf {
namespace {

using testing::HasSubstr;

Parameters send_of(uint64_t size) {
  Parameters parameters;
  parameters.sizes = {size};
  parameters.iterations = 1000;
  return parameters;
}

TEST(Parameters, what_makes_no_sense_is_refused_in_words) {
  EXPECT_EQ(objection_to(send_of(64), {}), "");
  Parameters parameters = send_of(64);
  parameters.operation = Operation::kRead;
  parameters.transport = Transport::kUc;
  EXPECT_THAT(objection_to(parameters, {}), HasSubstr("RC only"));
  parameters.operation = Operation::kWrite;
  parameters.transport = Transport::kUd;
  EXPECT_THAT(objection_to(parameters, {}), HasSubstr("UD has no WRITE"));
  parameters = send_of(4097);
  parameters.transport = Transport::kUd;
  EXPECT_THAT(objection_to(parameters, {}), HasSubstr("one packet"));
  parameters = send_of(16);
  parameters.operation = Operation::kAtomic;
  EXPECT_THAT(objection_to(parameters, {}), HasSubstr("8 bytes"));
  parameters = send_of(8);
  parameters.has_bandwidth = false;
  parameters.is_bidirectional = true;
  EXPECT_THAT(objection_to(parameters, {}), HasSubstr("-b is for bandwidth"));
}

TEST(Parameters, depths_must_fit_each_other) {
  Tuning tuning;
  tuning.tx_depth = 4;
  tuning.signal_every = 5;
  EXPECT_THAT(objection_to(send_of(64), tuning), HasSubstr("-Q 5"));
  tuning.signal_every = 4;
  EXPECT_EQ(objection_to(send_of(64), tuning), "");
  tuning.post_list = 5;
  EXPECT_THAT(objection_to(send_of(64), tuning), HasSubstr("-l 5"));
}

TEST(Parameters, all_sizes_double_from_two) {
  EXPECT_EQ(all_sizes(8), (std::vector<uint64_t>{2, 4, 8}));
  EXPECT_EQ(all_sizes(15).back(), 8U);
  EXPECT_EQ(all_sizes(uint64_t{1} << 23U).size(), 23U);
}

TEST(Depths, every_size_has_room_and_slots_that_differ) {
  for (const bool is_latency : {false, true}) {
    for (uint64_t size = 1; size <= uint64_t{1} << 30U; size *= 2) {
      const Depths depths = Depths::of(size, send_of(size), {}, is_latency);
      EXPECT_GE(depths.in_flight, 1U);
      EXPECT_GE(depths.receive_slots, 2U);
      EXPECT_LE(depths.signal_every, depths.in_flight);
      const uint32_t used = slots_used(depths.send_slots, depths.receive_slots);
      EXPECT_GT(used, depths.in_flight);
      EXPECT_NE(depths.receive_slots % used, 0U) << size;
    }
  }
}

TEST(Depths, what_nobody_compares_shares_one_place_and_may_be_more) {
  Parameters parameters = send_of(65536);
  const Depths compared = Depths::of(65536, parameters, {}, false);
  parameters.bandwidth_check = Check::kNone;
  const Depths shared = Depths::of(65536, parameters, {}, false);
  EXPECT_FALSE(compared.has_one_place);
  EXPECT_TRUE(shared.has_one_place);
  EXPECT_GT(shared.in_flight, compared.in_flight);
  EXPECT_FALSE(Depths::of(65536, parameters, {}, true).has_one_place) << "latency compares its sample";
  parameters.operation = Operation::kAtomic;
  EXPECT_FALSE(Depths::of(8, parameters, {}, false).has_one_place) << "each result is compared, always";
}

TEST(Depths, those_given_are_kept) {
  Tuning tuning;
  tuning.tx_depth = 7;
  tuning.rx_depth = 9;
  tuning.signal_every = 3;
  const Depths depths = Depths::of(64, send_of(64), tuning, false);
  EXPECT_EQ(depths.in_flight, 7U);
  EXPECT_EQ(depths.receive_slots, 9U);
  EXPECT_EQ(depths.signal_every, 3U);
}

TEST(Depths, of_a_device_that_holds_few_messages_all_fit_it_and_each_other) {
  Tuning tuning;
  tuning.tx_depth = 64;
  tuning.rx_depth = 100;
  tuning.signal_every = 16;
  tuning.post_list = 32;
  for (const uint64_t most : {uint64_t{1}, uint64_t{2}, uint64_t{20}, uint64_t{63}}) {
    Depths depths = Depths::of(64, send_of(64), tuning, false);
    depths.limit(most);
    EXPECT_EQ(depths.in_flight, most);
    EXPECT_EQ(depths.receive_slots, most);
    EXPECT_EQ(depths.send_slots, most + 2) << "at least two more than are in flight";
    EXPECT_EQ(depths.signal_every, std::min<uint64_t>(16, most)) << "else no completion would ever come";
    EXPECT_EQ(depths.post_list, std::min<uint64_t>(32, most)) << "a list must fit the queue";
  }
}

TEST(Depths, limit_that_is_none_leaves_one_message_and_a_high_one_changes_nothing) {
  Tuning tuning;
  tuning.tx_depth = 8;
  tuning.rx_depth = 9;
  const Depths whole = Depths::of(64, send_of(64), tuning, false);
  Depths depths = whole;
  depths.limit(1'000'000);
  EXPECT_EQ(depths.in_flight, whole.in_flight);
  EXPECT_EQ(depths.receive_slots, whole.receive_slots);
  EXPECT_EQ(depths.signal_every, whole.signal_every);
  depths.limit(0);
  EXPECT_EQ(depths.in_flight, 1U);
  EXPECT_EQ(depths.receive_slots, 1U);
  EXPECT_EQ(depths.signal_every, 1U);
  EXPECT_EQ(depths.post_list, 1U);
}

std::string objection(const Parameters& mine, std::string_view theirs) {
  return pair::hello_objection("perf", entries_of(mine), theirs);
}

TEST(Hello, equal_ends_agree) {
  EXPECT_EQ(objection(send_of(8), pair::emit_hello("perf", entries_of(send_of(8)))), "");
}

TEST(Hello, differences_are_named_with_both_values_and_the_flag) {
  Parameters other = send_of(16);
  other.queue_pairs = 3;
  const std::string said = objection(send_of(8), pair::emit_hello("perf", entries_of(other)));
  EXPECT_THAT(said, HasSubstr("sizes (-s or -a) is 8 here and 16 at the other end"));
  EXPECT_THAT(said, HasSubstr("(-q) is 1 here and 3"));
}

TEST(Hello, strangers_and_other_versions_are_told_apart) {
  EXPECT_THAT(objection(send_of(8), "GET / HTTP/1.1"), HasSubstr("not ringbolt perf"));
  EXPECT_THAT(objection(send_of(8), "ringbolt perf 2\n"), HasSubstr("version 2"));
  EXPECT_THAT(objection(send_of(8), "ringbolt perf 3\nsizes \x1b[31m\n"), testing::Not(HasSubstr("\x1b")));
  EXPECT_NE(objection(send_of(8), "ringbolt perf 3"), "");
}

}  // namespace
}  // namespace ringbolt::tools::perf
