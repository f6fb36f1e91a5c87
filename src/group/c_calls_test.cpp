// The C border by itself, with a group of one rank, which needs no device.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "ringbolt/group.h"

namespace ringbolt {
namespace {

using ::testing::HasSubstr;

JoinOptions alone() {
  JoinOptions options;
  options.reads_process_environment = false;
  options.rank = 0;
  options.size = 1;
  return options;
}

class CCalls : public testing::Test {
 protected:
  CCalls() {
    ringbolt_options* options = nullptr;
    const char* const nothing[] = {nullptr};
    EXPECT_EQ(ringbolt_options_create(&options), 0);
    EXPECT_EQ(ringbolt_options_set_environment(options, nothing), 0);
    EXPECT_EQ(ringbolt_options_set_rank(options, 0, 1), 0);
    EXPECT_EQ(ringbolt_join_with(options, &group_), 0) << ringbolt_error();
    ringbolt_options_destroy(options);
    std::iota(in_.begin(), in_.end(), 5);
  }
  ~CCalls() override { ringbolt_leave(group_); }

  ringbolt_call call_of(ringbolt_operation operation) {
    ringbolt_call call{};
    call.struct_size = sizeof call;
    call.operation = operation;
    call.type = RINGBOLT_INT32;
    call.in = in_.data();
    call.out = out_.data();
    call.count = in_.size();
    call.counts = call.received = &count_;
    call.n_counts = call.n_received = 1;
    return call;
  }

  ringbolt_group* group_ = nullptr;
  std::vector<int32_t> in_ = std::vector<int32_t>(100);
  std::vector<int32_t> out_ = std::vector<int32_t>(100);
  size_t count_ = 100;
};

TEST_F(CCalls, every_operation_runs_and_begins) {
  for (int operation = RINGBOLT_ALL_REDUCE; operation <= RINGBOLT_BARRIER; ++operation) {
    const ringbolt_call call = call_of(static_cast<ringbolt_operation>(operation));
    const bool has_output = operation != RINGBOLT_BARRIER && operation != RINGBOLT_BROADCAST;
    out_.assign(100, 0);
    EXPECT_EQ(ringbolt_run(group_, &call), 0) << operation << ": " << ringbolt_error();
    EXPECT_EQ(out_ == in_, has_output) << operation;
    out_.assign(100, 0);
    ringbolt_request* request = nullptr;
    ASSERT_EQ(ringbolt_start(group_, &call, &request), 0) << operation << ": " << ringbolt_error();
    EXPECT_EQ(ringbolt_wait_for(request, UINT64_MAX), 1) << operation;
    EXPECT_EQ(ringbolt_wait(request), 0) << operation;
    EXPECT_EQ(out_ == in_, has_output) << operation;
  }
  const ringbolt_call send = call_of(RINGBOLT_SEND);
  const ringbolt_call receive = call_of(RINGBOLT_RECV);
  ringbolt_request* request = nullptr;
  out_.assign(100, 0);
  ASSERT_EQ(ringbolt_start(group_, &receive, &request), 0);
  EXPECT_EQ(ringbolt_run(group_, &send), 0);
  EXPECT_EQ(ringbolt_wait(request), 0);
  EXPECT_EQ(out_, in_);
}

TEST_F(CCalls, a_struct_of_another_version_is_understood_or_refused) {
  struct Later {
    ringbolt_call call;
    uint64_t news;
  } later{call_of(RINGBOLT_ALL_REDUCE), 0};
  later.call.struct_size = sizeof later;
  EXPECT_EQ(ringbolt_run(group_, &later.call), 0) << ringbolt_error();
  later.news = 1;
  EXPECT_EQ(ringbolt_run(group_, &later.call), EINVAL);
  EXPECT_THAT(ringbolt_error(), HasSubstr("install a newer one"));
  ringbolt_request* request = nullptr;
  EXPECT_EQ(ringbolt_start(group_, &later.call, &request), EINVAL);
  for (const size_t size : {size_t{0}, sizeof(ringbolt_call) - 1}) {
    ringbolt_call call = call_of(RINGBOLT_ALL_REDUCE);
    call.struct_size = size;
    EXPECT_EQ(ringbolt_run(group_, &call), EINVAL);
    EXPECT_THAT(ringbolt_error(), HasSubstr("sizeof(ringbolt_call)"));
  }
}

TEST_F(CCalls, what_there_is_not_is_refused) {
  ringbolt_call call = call_of(RINGBOLT_OPERATION_NONE);
  ringbolt_request* request = nullptr;
  EXPECT_EQ(ringbolt_run(group_, &call), EINVAL);
  EXPECT_EQ(ringbolt_start(group_, &call, &request), EINVAL);
  EXPECT_THAT(ringbolt_error(), HasSubstr("no such operation"));
  call = call_of(RINGBOLT_ALL_REDUCE);
  call.flags = 2;
  EXPECT_EQ(ringbolt_run(group_, &call), EINVAL);
  call.flags = 0;
  call.reserved = 1;
  EXPECT_EQ(ringbolt_run(group_, &call), EINVAL);
  EXPECT_EQ(ringbolt_run(group_, nullptr), EINVAL);
  call = call_of(RINGBOLT_BARRIER);
  EXPECT_EQ(ringbolt_run(nullptr, &call), EINVAL);
  EXPECT_EQ(ringbolt_start(group_, &call, nullptr), EINVAL);
  for (const size_t n : {size_t{0}, size_t{2}}) {
    call = call_of(RINGBOLT_ALL_GATHERV);
    call.n_counts = n;
    EXPECT_EQ(ringbolt_run(group_, &call), EINVAL);
  }
}

TEST_F(CCalls, words_fit_the_room_that_there_is) {
  const size_t length = ringbolt_explain(group_, "all_reduce", 1, RINGBOLT_INT32, nullptr, 0);
  EXPECT_GT(length, 10U);
  std::string text(length + 1, '?');
  EXPECT_EQ(ringbolt_explain(group_, "all_reduce", 1, RINGBOLT_INT32, text.data(), 5), length);
  EXPECT_EQ(std::strlen(text.c_str()), 4U);
  EXPECT_EQ(text[5], '?');
  size_t n = 9;
  EXPECT_EQ(ringbolt_relays(group_, 0, nullptr, 0, &n), 0);
  EXPECT_EQ(n, 0U);
  EXPECT_EQ(ringbolt_relays(group_, 1, nullptr, 0, &n), ERANGE);
}

TEST(Headers, a_group_that_was_moved_from_and_a_request_of_nothing_do_no_harm) {
  EXPECT_EQ(version(), static_cast<uint32_t>(RINGBOLT_VERSION));
  Request nothing;
  EXPECT_TRUE(nothing.is_done());
  EXPECT_EQ(nothing.wait().code, EINVAL);
  Group group = Group::join(alone());
  int32_t word = 7;
  Request begun = group.all_reduce_async(&word, &word, 1, Type::int32, Reduction::sum);
  const Group moved = std::move(group);
  EXPECT_EQ(moved.size(), 1U);
  EXPECT_TRUE(begun.wait().is_ok());
  EXPECT_TRUE(begun.wait().is_ok()) << "as often as one likes";
  EXPECT_THROW((void)moved.relays(1), std::out_of_range);
}

TEST(Headers, the_last_handle_may_be_a_request) {
  auto group = std::make_unique<Group>(Group::join(alone()));
  int32_t word = 0;
  Request alone_for_ever = group->recv_async(&word, 1, Type::int32, 0);
  EXPECT_FALSE(alone_for_ever.is_done());
  EXPECT_FALSE(alone_for_ever.wait_for(0));
  EXPECT_FALSE(alone_for_ever.wait_for(5));
  group.reset();
  alone_for_ever.cancel();
  EXPECT_EQ(alone_for_ever.wait().code, ECANCELED);
}

TEST(Headers, settings_of_options_reach_the_library) {
  JoinOptions options = alone();
  options.has_crc = false;
  options.measures_cables = false;
  options.host = "[fd77::1]";
  options.port = 4000;
  options.join_timeout_ms = 1000;
  EXPECT_EQ(Group::join(options).size(), 1U);
  options.group = std::string(65, 'x');
  EXPECT_THROW((void)Group::join(options), Error);
  options = alone();
  options.environment = {{"RINGBOLT_CRC", "perhaps"}};
  EXPECT_THROW((void)Group::join(options), Error);
  options.checksums = Checksums::every;
  EXPECT_EQ(Group::join(options).size(), 1U) << "what is said wins";
}

}  // namespace
}  // namespace ringbolt
