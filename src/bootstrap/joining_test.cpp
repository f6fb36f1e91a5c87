// What can go wrong while ranks meet: an error in words on every side, and nobody waits for strangers.

#include <dirent.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bootstrap/connection.h"
#include "bootstrap/hello.h"
#include "bootstrap/side_channel.h"
#include "bootstrap/side_channel_test_support.h"

namespace ringbolt::bootstrap {
namespace {

using test::Party;
using test::soon;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// What join() says; empty if it succeeds.
std::string words_of(const Config& config) {
  try {
    SideChannel side_channel = SideChannel::join(config);
    static_cast<void>(side_channel.barrier(soon()));
    return "";
  } catch (const base::Error& error) {
    return error.what();
  }
}

/// Of several ranks at the same time. With a witness the last one comes when all others have come: a rank that comes
/// after a failure finds nobody, and can't say more than that.
std::vector<std::string> words_of(const std::vector<Config>& configs, const std::optional<Config>& as_witness = {}) {
  std::vector<std::string> words(configs.size());
  std::vector<std::thread> threads;
  std::optional<test::Witness> witness;
  for (size_t i = 0; i < configs.size(); ++i) {
    if (as_witness && i + 1 == configs.size()) {
      witness.emplace(*as_witness);
      std::vector<uint32_t> others;
      std::transform(configs.begin(), configs.end() - 1, std::back_inserter(others),
                     [](const Config& one) { return one.rank; });
      EXPECT_TRUE(witness->sees(others));
    }
    threads.emplace_back([&, i] { words[i] = words_of(configs[i]); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  return words;
}

base::UniqueFd connect_to(const Config& config) { return std::move(dial({config.host, config.port}, soon()).socket); }

void put(const base::UniqueFd& socket, std::string_view bytes) {
  EXPECT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
}

std::string header_text(FrameType type, uint32_t length) {
  const auto bytes = emit(FrameHeader{type, 0, 0, 0, length});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(Joining, strangers_delay_nobody) {
  Party party(3);
  party.config.handshake_timeout_ms = 600'000;  // a test that waits for one of them hangs
  const Config at = party.of(1);
  std::vector<base::UniqueFd> strangers;
  const std::vector<std::string> sayings = {
      "",                                                               // a half-open connection
      "GET / HTTP/1.1\r\n\r\n",                                         //
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11),  // TLS
      "RB",                                                             // a slow one
      header_text(FrameType::hello, 57),                                // a slower one
      header_text(FrameType::hello, 0xFFFFFFFF),                        // a long one
      header_text(FrameType::proof, 32) + std::string(32, 'x'),         // out of turn
      header_text(FrameType::gather, 0) + std::string(16, 'x'),         //
      header_text(FrameType::hello, 0),                                 //
  };
  for (const std::string& saying : sayings) {
    strangers.push_back(connect_to(at));
    put(strangers.back(), saying);
  }
  for (int i = 0; i < 100; ++i) {
    static_cast<void>(connect_to(at));  // a port scanner
  }
  party.run([](SideChannel& side_channel) { EXPECT_TRUE(side_channel.barrier(soon())); });
}

TEST(Joining, more_strangers_than_are_kept_delay_nobody) {
  Party party(2);
  party.config.handshake_timeout_ms = 600'000;
  std::vector<base::UniqueFd> strangers;
  for (int i = 0; i < 200; ++i) {
    strangers.push_back(connect_to(party.of(1)));
  }
  party.run([](SideChannel& side_channel) { EXPECT_TRUE(side_channel.barrier(soon())); });
}

size_t resident_bytes() {
  size_t all_pages = 0;
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> all_pages >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(Joining, strangers_who_never_stop_take_no_memory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  Party party(2);  // rank 1 never comes
  party.config.timeout_ms = 2000;
  std::atomic<bool> is_over = false;
  std::atomic<size_t> most_bytes = 0;
  const size_t before = resident_bytes();
  std::thread stranger([&] {
    const std::string garbage(size_t{1} << 18, 'x');
    while (!is_over) {
      const base::UniqueFd socket = connect_to(party.of(1));
      pollfd waiting{socket.get(), POLLOUT, 0};
      while (!is_over && ::poll(&waiting, 1, 10) >= 0 && (waiting.revents & (POLLERR | POLLHUP)) == 0) {
        static_cast<void>(!::send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL));
        most_bytes = std::max<size_t>(most_bytes, resident_bytes());
      }
    }
  });
  EXPECT_THAT(words_of(party.of(0)), HasSubstr("does not speak Ringbolt's bootstrap protocol"));
  is_over = true;
  stranger.join();
  EXPECT_LT(most_bytes - std::min<size_t>(before, most_bytes), size_t{16} << 20);
}

TEST(Joining, missing_ranks_are_named_on_all_ranks) {
  Party party(5);
  party.config.timeout_ms = 300;
  std::vector<Config> configs = {party.of(0), party.of(1), party.of(3)};
  configs[1].timeout_ms = configs[2].timeout_ms = 60'000;
  const auto words = words_of(configs);
  EXPECT_THAT(words[0], AllOf(HasSubstr("rank 0: meet 5 ranks"), HasSubstr("not come: rank 2, 4")));
  for (const size_t i : {1U, 2U}) {
    EXPECT_THAT(words[i], AllOf(HasSubstr("of 5: meet the others at 127.0.0.1:"), HasSubstr("not come: rank 2, 4")));
  }
}

TEST(Joining, a_meeting_that_is_called_off_is_over_for_all_who_have_come) {
  for (const size_t who : {0U, 1U}) {  // rank 0, or who waits at it
    Party party(4);                    // ranks 2 and 3 never come
    std::vector<Config> configs = {party.of(0), party.of(1)};
    std::atomic<int> n_waits = 0;  // of rank 1: its handshake takes three or four, then it waits for the others
    configs[1].is_called_off = [&] { return ++n_waits > 8 && who == 1; };
    configs[0].is_called_off = [&] { return n_waits > 8 && who == 0; };
    const auto words = words_of(configs);
    EXPECT_THAT(words[who], HasSubstr("Operation canceled"));
    EXPECT_THAT(words[0], HasSubstr("not come: rank 2, 3"));
    EXPECT_THAT(words[1], AnyOf(HasSubstr("not come: rank 2, 3"), HasSubstr("rank 0 still waits for rank 2, 3")));
  }
}

TEST(Joining, a_caller_whom_nobody_answers_gives_up_when_the_meeting_is_called_off) {
  Config config = Party(2).of(1);  // whose rank 0 listens no longer
  config.is_called_off = [] { return true; };
  EXPECT_THAT(words_of(config), HasSubstr("the meeting is called off; the last try: "));
}

TEST(Joining, a_rank_whose_deadline_passes_says_whom_rank_0_waits_for) {
  Party party(4);
  // What it says again counts as heard: the limit is longer than the silence, which is longer than a machine's pauses.
  party.config.roster_again_ms = 10;
  party.config.silent_ms = 2'500;
  std::vector<Config> configs = {party.of(0), party.of(1), party.of(2)};
  configs[1].timeout_ms = 3'000;
  const auto words = words_of(configs);
  EXPECT_THAT(words[1], AllOf(HasSubstr("Connection timed out"), HasSubstr("rank 0 still waits for rank 3")));
  EXPECT_THAT(words[0], AllOf(HasSubstr("Connection timed out"),
                              HasSubstr("has given up waiting for the others; not come: rank 3")));
  EXPECT_THAT(words[2], HasSubstr("has given up waiting for the others; not come: rank 3"));
}

TEST(Joining, rank_0_says_again_whom_it_waits_for_while_nothing_changes) {
  for (const uint32_t n_ranks : {2U, 3U}) {  // of three one never comes; of two one does not call barrier()
    Party party(n_ranks);
    party.config.roster_again_ms = 1;
    std::thread root([config = party.of(0)] { static_cast<void>(words_of(config)); });  // until the witness leaves
    {
      test::Witness witness(party.of(1));
      EXPECT_TRUE(n_ranks == 3 || witness.hears(FrameType::start));
      for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(witness.hears(FrameType::roster));
      }
    }
    root.join();
  }
}

TEST(Joining, a_rank_0_that_has_said_that_it_listens_and_does_not_has_ended) {
  Config config = Party(2).of(1);  // whose rank 0 listens no longer; it may take 60 s
  config.is_root_listening = true;
  const uint64_t begin_ns = base::now_ns();
  EXPECT_THAT(words_of(config), AllOf(HasSubstr("Connection refused"), HasSubstr("rank 0 has ended")));
  EXPECT_LT(base::now_ns() - begin_ns, 30'000'000'000U);
}

TEST(Joining, wrong_secret_is_an_error_on_both_sides) {
  Party party(2);
  party.config.timeout_ms = 500;
  party.config.secret = "right";
  std::vector<Config> configs = {party.of(0), party.of(1)};
  configs[1].secret = "wrong";
  const auto words = words_of(configs);
  EXPECT_THAT(words[1], HasSubstr("rank 0 refused: this caller calls itself rank 1 and has another secret"));
  EXPECT_THAT(words[0], AllOf(HasSubstr("none of the others has come; refused: 127.0.0.1:"),
                              HasSubstr("calls itself rank 1 and has another secret")));
}

TEST(Joining, one_secret_is_an_error_on_both_sides) {
  for (const bool has_root : {false, true}) {
    Party party(2);
    party.config.timeout_ms = 500;
    std::vector<Config> configs = {party.of(0), party.of(1)};
    configs[has_root ? 0 : 1].secret = "secret";
    const auto words = words_of(configs);
    EXPECT_THAT(words[1],
                HasSubstr(has_root ? "has no secret, while rank 0 has a secret" : "has a secret, while rank 0"));
    EXPECT_THAT(words[0], HasSubstr("set RINGBOLT_SECRET on all ranks or on none"));
  }
}

TEST(Joining, wrong_group_is_an_error_on_both_sides) {
  Party party(2);
  party.config.timeout_ms = 500;
  party.config.group = "left";
  std::vector<Config> configs = {party.of(0), party.of(1)};
  configs[1].group = "right";
  for (const std::string& words : words_of(configs)) {
    EXPECT_THAT(words, HasSubstr("is rank 1 of group \"right\", this is group \"left\""));
  }
}

TEST(Joining, wrong_version_is_refused_in_words) {
  Party party(2);
  party.config.timeout_ms = 500;
  std::string words;
  std::thread root([&] { words = words_of(party.of(0)); });
  Connection caller(connect_to(party.of(1)), "rank 0");
  caller.queue({.type = FrameType::hello}, make_payload(emit(Hello{.first_version = 3, .last_version = 4})));
  caller.flush();
  std::optional<Frame> frame;
  while (!frame) {
    pollfd waiting{caller.fd(), POLLIN, 0};
    ASSERT_EQ(::poll(&waiting, 1, 60'000), 1);
    caller.receive();
    frame = caller.next().value();
  }
  EXPECT_EQ(frame->header.type, FrameType::refused);
  EXPECT_EQ(printable(frame->payload, 400), "speaks versions 3 to 4 of the bootstrap protocol, rank 0 speaks 2");
  root.join();
  EXPECT_THAT(words, HasSubstr("speaks versions 3 to 4"));
}

TEST(Joining, a_rank_twice_is_an_error_on_all_ranks_at_once) {
  Party party(5);  // and a minute to come
  for (const std::string& words : words_of({party.of(0), party.of(1), party.of(2), party.of(2)}, party.of(3))) {
    EXPECT_THAT(words, HasSubstr("calls itself rank 2, and so does 127.0.0.1:"));
  }
}

TEST(Joining, wrong_number_of_ranks_is_an_error_on_all_ranks_at_once) {
  Party party(5);
  std::vector<Config> configs = {party.of(0), party.of(1), party.of(2)};
  configs[2].n_ranks = 3;
  for (const std::string& words : words_of(configs, party.of(3))) {
    EXPECT_THAT(words, HasSubstr("is rank 2 of 3, while rank 0 was told of 5 ranks"));
  }
}

TEST(Joining, impossible_config_is_refused_before_any_network) {
  EXPECT_THAT(words_of({.rank = 2, .n_ranks = 2, .port = 1}), HasSubstr("rank 2 of 2"));
  EXPECT_THAT(words_of({.rank = 0, .n_ranks = 0, .port = 1}), HasSubstr("a group of 0 ranks"));
  EXPECT_THAT(words_of({.rank = 0, .n_ranks = 1025, .port = 1}), HasSubstr("a group of 1025 ranks"));
  EXPECT_THAT(words_of({.rank = 1, .n_ranks = 2}), HasSubstr("port 0"));
  EXPECT_THAT(words_of({.n_ranks = 1, .group = std::string(65, 'x')}), HasSubstr("the group's name"));
}

TEST(Joining, two_listeners_at_one_port_are_an_error) {
  const Listening first = Listening::open("127.0.0.1", 0, "");
  EXPECT_THAT(words_of({.rank = 0, .n_ranks = 2, .host = "127.0.0.1", .port = first.port}),
              HasSubstr("another rank 0"));
}

TEST(Joining, where_nobody_can_listen_rank_0_says_what_to_do) {
  const auto words_at = [](const std::string& host, uint16_t port, const std::string& bind_address) {
    return words_of({.rank = 0, .n_ranks = 2, .host = host, .port = port, .bind_address = bind_address});
  };
  EXPECT_THAT(words_at("127.0.0.1", 4000, "192.0.2.1"),
              AllOf(HasSubstr("rank 0 at 192.0.2.1:4000"), HasSubstr("this machine has no such address")));
  EXPECT_THAT(words_at("127.0.0.1", 4000, "no such name"),
              AllOf(HasSubstr("listen: no such name: Name or service not known"), HasSubstr("RINGBOLT_BIND")));
  EXPECT_THAT(words_at("fe80::1", 4000, ""), HasSubstr("append this machine's interface to it, fe80::1%eth0"));
  EXPECT_THAT(words_at("127.0.0.1", 4000, "fe80::1"), HasSubstr("fe80::1%eth0"));
  if (::geteuid() != 0) {
    EXPECT_THAT(words_at("127.0.0.1", 80, ""), HasSubstr("ports below 1024 are for root"));
  }
}

TEST(Joining, a_caller_that_finds_nobody_or_a_stranger_says_so) {
  Listening nobody = Listening::open("127.0.0.1", 0, "");
  Config config{.rank = 1, .n_ranks = 2, .host = "127.0.0.1", .port = nobody.port, .timeout_ms = 100};
  config.source = "RANK=1";
  nobody.sockets.clear();
  EXPECT_THAT(words_of(config), AllOf(HasSubstr("(from RANK=1)"), HasSubstr("Connection refused"),
                                      HasSubstr("start the first rank, or correct its address and port")));
  config.host = "no.such.host.invalid";
  EXPECT_THAT(words_of(config), AllOf(HasSubstr("no.such.host.invalid: "), HasSubstr("or give its address")));
  config.host = "127.0.0.1";
  const Listening stranger = Listening::open("127.0.0.1", 0, "");
  config.port = stranger.port;
  std::atomic<bool> is_done = false;
  std::thread shell([&] {
    while (!is_done) {
      pollfd waiting{stranger.sockets[0].get(), POLLIN, 0};
      if (::poll(&waiting, 1, 10) == 1) {
        put(accept_from(stranger.sockets[0].get()).socket, "SSH-2.0-OpenSSH_9.2\r\n");
      }
    }
  });
  EXPECT_THAT(words_of(config), HasSubstr("does not speak Ringbolt's bootstrap protocol"));
  is_done = true;
  shell.join();
}

TEST(Joining, ranks_may_come_before_rank_0) {
  Listening nobody = Listening::open("127.0.0.1", 0, "");
  const uint16_t number = nobody.port;
  const auto config = [number](uint32_t rank) {
    return Config{.rank = rank, .n_ranks = 4, .host = "127.0.0.1", .port = number};
  };
  std::vector<std::thread> threads;
  for (const uint32_t rank : {3U, 2U, 1U}) {
    threads.emplace_back([&config, rank] { EXPECT_EQ(words_of(config(rank)), ""); });
  }
  // Each has tried, and found somebody who says nothing and goes; now nobody is there.
  std::vector<base::UniqueFd> tries;
  for (const uint64_t deadline = soon(); tries.size() < 3 && base::now_ns() < deadline;) {
    pollfd waiting{nobody.sockets[0].get(), POLLIN, 0};
    if (::poll(&waiting, 1, 60'000) == 1) {
      tries.push_back(std::move(accept_from(nobody.sockets[0].get()).socket));
    }
  }
  nobody.sockets.clear();
  tries.clear();
  EXPECT_EQ(words_of(config(0)), "");
  for (std::thread& thread : threads) {
    thread.join();
  }
}

size_t n_open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  size_t n = 0;
  while (::readdir(folder) != nullptr) {
    ++n;
  }
  ::closedir(folder);
  return n;
}

TEST(Joining, a_thousand_failures_leave_no_descriptor_behind) {
  Party party(2);
  party.config.secret = "right";
  Config wrong = party.of(1);
  wrong.secret = "wrong";
  Config missing = party.of(0);
  missing.timeout_ms = 1;
  Config nobody = party.of(1);
  Listening closed = Listening::open("127.0.0.1", 0, "");
  nobody.port = closed.port;
  nobody.timeout_ms = 1;
  closed.sockets.clear();
  Config both = party.of(0);
  const size_t n_before = n_open_descriptors();
  for (int i = 0; i < 250; ++i) {
    EXPECT_NE(words_of(missing), "");
    EXPECT_NE(words_of(nobody), "");
    // Rank 0 fails because two say that they are rank 1; one of the two knows.
    Config twin = party.of(1);
    twin.n_ranks = 3;
    const auto words = words_of({both, twin});
    EXPECT_NE(words[0], "");
    EXPECT_NE(words[1], "");
  }
  EXPECT_EQ(n_open_descriptors(), n_before);
}

TEST(Joining, goes_on_when_descriptors_run_out) {
  Party party(3);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  std::vector<base::UniqueFd> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(connect_to(party.of(1)));
  }
  // Room for the callers' own sockets and few of those that rank 0 accepts.
  rlimit tight = old;
  tight.rlim_cur = n_open_descriptors() + 12;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  party.config.handshake_timeout_ms = 200;  // the strangers go, and make room
  std::atomic<int> n_met = 0;
  party.run([&n_met](SideChannel& side_channel) { n_met += side_channel.barrier(soon()) ? 1 : 0; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_EQ(n_met, 3);
}

}  // namespace
}  // namespace ringbolt::bootstrap
