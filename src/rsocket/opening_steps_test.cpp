#include "rsocket/opening_steps.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace ringbolt::rsocket {
namespace {

using Next = OpeningSteps::Next;

TEST(OpeningSteps, lead_from_the_address_to_the_peer) {
  OpeningSteps steps;
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_RESOLVED, 0, Phase::resolving_address), Next::resolve_route);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ROUTE_RESOLVED, 0, Phase::resolving_route), Next::request_connection);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ESTABLISHED, 0, Phase::connecting), Next::be_established);
}

TEST(OpeningSteps, pass_over_an_answer_that_nobody_waits_for) {
  OpeningSteps steps;
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_RESOLVED, 0, Phase::resolving_route), Next::nothing);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_RESOLVED, 0, Phase::failed), Next::nothing);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ROUTE_RESOLVED, 0, Phase::connecting), Next::nothing);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0, Phase::closed), Next::nothing);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_CHANGE, 0, Phase::connected), Next::nothing);
}

TEST(OpeningSteps, give_each_further_attempt_twice_the_time) {
  OpeningSteps steps;
  for (const int expected_ms : {1000, 2000, 4000, 8000, 16'000, 32'000}) {
    EXPECT_EQ(steps.begin_attempt_ms(), expected_ms);
  }
  steps.begin();
  EXPECT_EQ(steps.begin_attempt_ms(), 1000);
}

TEST(OpeningSteps, try_a_step_six_times_where_nobody_answers) {
  for (const auto& [event, phase, again] :
       {std::tuple{RDMA_CM_EVENT_ADDR_ERROR, Phase::resolving_address, Next::resolve_address},
        std::tuple{RDMA_CM_EVENT_ROUTE_ERROR, Phase::resolving_route, Next::resolve_route}}) {
    OpeningSteps steps;
    for (int attempt = 1; attempt < 6; ++attempt) {
      steps.begin_attempt_ms();
      EXPECT_EQ(steps.after(event, -ETIMEDOUT, phase), again) << attempt;
    }
    steps.begin_attempt_ms();
    EXPECT_EQ(steps.after(event, -ETIMEDOUT, phase), Next::fail);
  }
}

TEST(OpeningSteps, count_the_attempts_of_each_step_for_itself) {
  OpeningSteps steps;
  for (int attempt = 0; attempt < 6; ++attempt) {
    steps.begin_attempt_ms();
  }
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_RESOLVED, 0, Phase::resolving_address), Next::resolve_route);
  EXPECT_EQ(steps.begin_attempt_ms(), 1000);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ROUTE_ERROR, -ETIMEDOUT, Phase::resolving_route), Next::resolve_route);
}

TEST(OpeningSteps, do_not_try_again_what_was_refused) {
  OpeningSteps steps;
  steps.begin_attempt_ms();
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_ERROR, -EHOSTUNREACH, Phase::resolving_address), Next::fail);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ROUTE_ERROR, -ENETUNREACH, Phase::resolving_route), Next::fail);
  EXPECT_EQ(steps.after(RDMA_CM_EVENT_ADDR_ERROR, -ETIMEDOUT, Phase::connecting), Next::fail);
  for (const auto event :
       {RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_UNREACHABLE, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_DEVICE_REMOVAL}) {
    EXPECT_EQ(steps.after(event, -ETIMEDOUT, Phase::connecting), Next::fail) << event;
  }
}

TEST(OpeningSteps, hear_of_the_end_in_any_phase) {
  OpeningSteps steps;
  for (const Phase phase : {Phase::connecting, Phase::accepting, Phase::connected, Phase::closed}) {
    EXPECT_EQ(steps.after(RDMA_CM_EVENT_DISCONNECTED, 0, phase), Next::be_disconnected);
  }
}

}  // namespace
}  // namespace ringbolt::rsocket
