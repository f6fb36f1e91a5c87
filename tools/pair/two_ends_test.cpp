#include "pair/two_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ssh.h"

namespace ringbolt::tools::pair {
namespace {

using testing::HasSubstr;
using testing::Not;

ProgramEnd ended(std::string output, std::string error_output = {}, int exit_code = 0) {
  return {std::move(output), std::move(error_output), "exited with " + std::to_string(exit_code), exit_code};
}

TEST(EndOutcome, result_is_found_among_what_else_was_said) {
  const EndOutcome outcome =
      outcome_of("perf", ended("a library says hello\n" + emit_result_line("perf", "{\"a\":1}") + "and good-bye\n"));
  EXPECT_EQ(outcome.result, "{\"a\":1}");
}

TEST(EndOutcome, result_may_stand_on_either_output) {
  EXPECT_EQ(outcome_of("perf", ended("", emit_result_line("perf", "x"))).result, "x");
}

TEST(EndOutcome, of_another_command_is_none) {
  const EndOutcome outcome = outcome_of("verify", ended(emit_result_line("perf", "x")));
  EXPECT_FALSE(outcome.result);
  EXPECT_THAT(outcome.problem, HasSubstr("it exited with 0"));
}

TEST(EndOutcome, failure_is_told_in_one_line_and_an_echo_as_such) {
  for (const bool is_echo : {false, true}) {
    const EndOutcome outcome =
        outcome_of("perf", ended("", emit_failure_line("perf", "no device:\nnone at all", is_echo), 1));
    EXPECT_FALSE(outcome.result);
    EXPECT_EQ(outcome.problem, "no device: none at all");
    EXPECT_EQ(outcome.is_echo, is_echo);
  }
}

TEST(EndOutcome, who_said_nothing_is_told_by_how_it_ended) {
  const EndOutcome crashed = outcome_of("perf", ended("", "assertion\nfailed", 134));
  EXPECT_EQ(crashed.problem, "it exited with 134; it said: assertion failed");
  EXPECT_FALSE(crashed.is_echo);
  EXPECT_EQ(outcome_of("perf", ProgramEnd{}).problem, kHung);
  EXPECT_THAT(outcome_of("perf", ended("", "", kSshFailed)).problem, HasSubstr("ssh has lost the connection"));
}

TEST(HostOfPeer, has_neither_port_nor_brackets) {
  EXPECT_EQ(host_of_peer("10.0.0.2:4000"), "10.0.0.2");
  EXPECT_EQ(host_of_peer("[fe80::1%en2]:4000"), "fe80::1%en2");
  EXPECT_EQ(host_of_peer("[::1]:1"), "::1");
  EXPECT_EQ(host_of_peer("an unknown address"), "an unknown address");
  EXPECT_EQ(host_of_peer("["), "");
  EXPECT_EQ(host_of_peer(""), "");
}

/// RFC 1035, 2.3.4: a label has 63 characters at most, so nobody is asked for this one.
TEST(ObjectionToHost, gives_the_reason_alone) {
  const std::string host(64, 'x');
  const std::string objection = objection_to_host(host);
  EXPECT_FALSE(objection.empty());
  EXPECT_THAT(objection, Not(HasSubstr(host)));
  EXPECT_EQ(objection_to_host("127.0.0.1"), "");
}

}  // namespace
}  // namespace ringbolt::tools::pair
