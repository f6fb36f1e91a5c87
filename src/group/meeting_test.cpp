#include "group/meeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>

#include "base/clock.h"
#include "group/failure.h"

namespace ringbolt::group {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string words_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

TEST(Tidings, come_out_as_they_went_in) {
  const Tidings tidings{"a machine", "fd77::1", 4000, "secret", "a problem"};
  const std::vector<std::byte> bytes = emit(tidings);
  ASSERT_EQ(bytes.size(), Tidings::kBytes);
  EXPECT_EQ(parse_tidings(bytes), tidings);
  EXPECT_EQ(parse_tidings(emit({})), Tidings());
}

TEST(Tidings, begin_with_their_name_and_the_port) {
  const std::vector<std::byte> bytes = emit({"m", "h", 0x1234, "", ""});
  const char golden[] = "rmt1\x34\x12\x01\x00m\x01\x00h\x00\x00\x00\x00";
  EXPECT_EQ(std::memcmp(bytes.data(), golden, sizeof golden - 1), 0);
}

TEST(Tidings, of_what_is_too_long_the_beginning_goes) {
  const Tidings longest{std::string(2000, 'm'), std::string(2000, 'h'), 1, std::string(2000, 's'),
                        std::string(2000, 'p')};
  const auto parsed = parse_tidings(emit(longest));
  ASSERT_TRUE(parsed.has_value());
  EXPECT_EQ(parsed->host, std::string(255, 'h'));
  EXPECT_EQ(parsed->problem.front(), 'p');
}

TEST(Tidings, that_are_none_are_refused) {
  EXPECT_EQ(parse_tidings({}), std::nullopt);
  std::vector<std::byte> bytes = emit({"m", "h", 1, "", ""});
  EXPECT_EQ(parse_tidings(std::span(bytes).first(Tidings::kBytes - 1)), std::nullopt);
  bytes[6] = bytes[7] = std::byte{0xff};  // a name longer than all of it
  EXPECT_EQ(parse_tidings(bytes), std::nullopt);
  EXPECT_EQ(parse_tidings(std::vector<std::byte>(Tidings::kBytes)), std::nullopt);
}

TEST(Meeting, on_one_machine_is_at_the_port_of_rank_0_with_its_secret) {
  bootstrap::Config config;
  take({{"here", "", 4000, "made up", ""}, {"here", "", 0, "", ""}}, config);
  EXPECT_EQ(config.host, "127.0.0.1");
  EXPECT_EQ(config.port, 4000);
  EXPECT_TRUE(config.is_root_listening);
  EXPECT_EQ(config.secret, "made up");
  config.secret = "own";
  take({{"here", "", 4000, "made up", ""}}, config);
  EXPECT_EQ(config.secret, "own");
}

TEST(Meeting, on_several_machines_needs_a_host) {
  bootstrap::Config config;
  std::vector<Tidings> all = {{"here", "", 4000, "", ""}, {"there", "", 0, "", ""}};
  EXPECT_THAT(words_of([&] { take(all, config); }), AllOf(HasSubstr("rank 1"), HasSubstr("give rank 0 a host")));
  all[0].host = "10.0.0.1";
  take(all, config);
  EXPECT_EQ(config.host, "10.0.0.1");
}

TEST(Meeting, fails_everywhere_if_one_rank_can_not) {
  bootstrap::Config config;
  EXPECT_EQ(words_of([&] {
              take({{"here", "", 0, "", "listen: no"}, {"here", "", 0, "", ""}}, config);
            }),
            "rank 0: listen: no");
}

/// Rank 0 of two, whose exchange gives it what it told and `other`.
struct Program {
  Tidings other;
  int code = 0;
  int n_calls = 0;

  static int exchange(void* context, const void* mine, void* all, size_t length_bytes) {
    auto& program = *static_cast<Program*>(context);
    ++program.n_calls;
    std::memcpy(all, mine, length_bytes);
    program.other.machine = parse_tidings({static_cast<const std::byte*>(mine), length_bytes})->machine;
    std::memcpy(static_cast<std::byte*>(all) + length_bytes, emit(program.other).data(), length_bytes);
    return program.code;
  }
};

TEST(Meeting, by_an_exchange_listens_at_a_free_port_that_the_environment_need_not_name) {
  Program program;
  JoinOptions options;
  options.exchange = {&Program::exchange, &program};
  const Meeting meeting = meeting_of(options, {{"RINGBOLT_RANK", "0"}, {"RINGBOLT_WORLD_SIZE", "2"}});
  EXPECT_EQ(program.n_calls, 1);
  EXPECT_EQ(meeting.config.host, "127.0.0.1");
  EXPECT_NE(meeting.config.port, 0);
  EXPECT_EQ(meeting.config.port, meeting.listening.port);
  EXPECT_GE(meeting.config.listening_fd, 3);
  EXPECT_GE(meeting.config.secret.size(), 32U);
  program.code = EPIPE;
  EXPECT_THAT(words_of([&] {
                (void)meeting_of(options, {{"RINGBOLT_RANK", "0"}, {"RINGBOLT_WORLD_SIZE", "2"}});
              }),
              HasSubstr("the program's exchange failed with 32"));
}

TEST(Meeting, has_the_time_that_the_exchange_has_left_and_half_a_minute_at_least) {
  EXPECT_EQ(left_for_bring_up_ms(300'000, 1'000), 299'000U);
  EXPECT_EQ(left_for_bring_up_ms(300'000, 297'000), 30'000U);
  EXPECT_EQ(left_for_bring_up_ms(300'000, 310'000), 30'000U);
  EXPECT_EQ(left_for_bring_up_ms(31'000, 500), 30'500U);
  // A limit that is shorter holds for both, each.
  EXPECT_EQ(left_for_bring_up_ms(3'000, 2'900), 3'000U);
  Program program;
  JoinOptions options;
  // Takes a while that the clock shows.
  options.exchange = {[](void* context, const void* mine, void* all, size_t length_bytes) {
                        for (const uint64_t until_ns = base::now_ns() + 40'000'000; base::now_ns() < until_ns;) {
                        }
                        return Program::exchange(context, mine, all, length_bytes);
                      },
                      &program};
  const Meeting meeting = meeting_of(
      options, {{"RINGBOLT_RANK", "0"}, {"RINGBOLT_WORLD_SIZE", "2"}, {"RINGBOLT_JOIN_TIMEOUT_MS", "600000"}});
  EXPECT_LE(meeting.config.timeout_ms, 600'000U - 40U);
}

TEST(Meeting, of_one_rank_exchanges_nothing) {
  Program program;
  JoinOptions options;
  options.exchange = {&Program::exchange, &program};
  EXPECT_EQ(meeting_of(options, {{"RINGBOLT_RANK", "0"}, {"RINGBOLT_WORLD_SIZE", "1"}}).config.n_ranks, 1U);
  EXPECT_EQ(program.n_calls, 0);
}

}  // namespace
}  // namespace ringbolt::group
