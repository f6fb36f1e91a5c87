#include "device/will.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/executor.h"

namespace ringbolt::device {
namespace {

constexpr uint64_t kNetwork = 4026531840;
constexpr wire::Address kHere = wire::ipv4_address(10, 77, 0, 1);
constexpr wire::Address kThere = wire::ipv4_address(10, 77, 0, 2);
constexpr uint64_t kMs = 1'000'000;

Bequest bequest(uint32_t number) {
  return {0x0c000000 + number, 0x14000000 + number, 0x4000 + number, number, kHere, kThere, 8, 64};
}

class Wills : public testing::Test {
 protected:
  Wills() {
    char pattern[] = "/tmp/rbw-XXXXXX";
    folder = mkdtemp(pattern);
  }
  ~Wills() override { std::filesystem::remove_all(folder); }
  std::vector<Bequest> of_the_dead(uint64_t network = kNetwork) {
    std::vector<Bequest> all;
    for (const OpenWill& will : wills_of_the_dead(folder, network)) {
      all.insert(all.end(), will.bequests.begin(), will.bequests.end());
    }
    return all;
  }
  /// What a process leaves that is killed with these connections.
  void leave_will_of_killed(uint32_t slot, uint32_t count) {
    const pid_t child = fork();
    if (child == 0) {
      Will will(folder, slot, kNetwork);
      for (uint32_t i = 1; i <= count; ++i) {
        will.put(bequest(i));
      }
      kill(getpid(), SIGKILL);
    }
    ASSERT_EQ(waitpid(child, nullptr, 0), child);
  }
  std::string folder;
};

TEST(Bequest, comes_back_as_it_was_and_an_empty_place_is_none) {
  const auto bytes = emit(bequest(5));
  EXPECT_EQ(parse_bequest(bytes), bequest(5));
  EXPECT_FALSE(parse_bequest(std::array<std::byte, kBequestBytes>{}));
  for (const size_t at : {8U, 12U}) {  // beyond 24 and 20 bits
    auto wrong = bytes;
    wrong[at] = std::byte{0xff};
    EXPECT_FALSE(parse_bequest(wrong)) << at;
  }
}

TEST_F(Wills, of_the_living_are_not_opened) {
  Will will(folder, 3, kNetwork);
  EXPECT_TRUE(std::filesystem::is_empty(folder));  // nothing to leave yet
  will.put(bequest(1));
  EXPECT_FALSE(std::filesystem::is_empty(folder));
  EXPECT_TRUE(of_the_dead().empty());
  will.leave();
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Wills, of_the_stopped_are_not_opened) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    Will will(folder, 3, kNetwork);
    will.put(bequest(1));
    [[maybe_unused]] const ssize_t told = write(ready[1], "x", 1);
    raise(SIGSTOP);
    pause();
  }
  char word = 0;
  EXPECT_EQ(read(ready[0], &word, 1), 1);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, WUNTRACED), child);
  EXPECT_TRUE(WIFSTOPPED(status));
  EXPECT_TRUE(of_the_dead().empty());
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(of_the_dead(), std::vector{bequest(1)});
  close(ready[0]);
  close(ready[1]);
}

TEST_F(Wills, name_what_stood_when_the_process_was_killed) {
  const pid_t child = fork();
  if (child == 0) {
    Will will(folder, 3, kNetwork);
    for (uint32_t i = 1; i <= 4; ++i) {
      will.put(bequest(i));
    }
    will.remove(2);  // an unknown number
    will.remove(bequest(2).local_id);
    will.remove(bequest(4).local_id);
    will.put(bequest(5));
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  auto found = of_the_dead();
  std::ranges::sort(found, {}, &Bequest::local_id);
  EXPECT_EQ(found, (std::vector{bequest(1), bequest(3), bequest(5)}));
  EXPECT_TRUE(of_the_dead(kNetwork + 1).empty());  // another namespace's: its addresses are not ours
}

TEST_F(Wills, are_opened_by_one_at_a_time) {
  leave_will_of_killed(3, 1);
  auto first = wills_of_the_dead(folder, kNetwork);
  EXPECT_EQ(first.size(), 1U);
  EXPECT_TRUE(wills_of_the_dead(folder, kNetwork).empty());
  first.clear();  // who carries it out dies
  first = wills_of_the_dead(folder, kNetwork);
  ASSERT_EQ(first.size(), 1U);
  remove(folder, first.front());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Wills, survive_a_child_of_their_owner) {
  Will will(folder, 3, kNetwork);
  will.put(bequest(1));
  const pid_t child = fork();
  if (child == 0) {
    will.abandon_after_fork();
    _exit(of_the_dead().empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(of_the_dead().empty());
  will.leave();
}

TEST_F(Wills, that_are_none_are_left_alone) {
  std::ofstream(folder + "/7-0.will") << "nonsense";
  std::ofstream(folder + "/8-0.will") << std::string(4096, 'x');
  EXPECT_TRUE(of_the_dead().empty());
}

class Execution : public Wills {
 protected:
  Executor::Sent send(const Bequest& from, wire::MadIn mad) {
    const auto parsed = wire::parse_cm(mad);
    EXPECT_TRUE(parsed && std::holds_alternative<wire::CmDreq>(parsed->message));
    const auto dreq = std::get<wire::CmDreq>(parsed->message);
    EXPECT_EQ((std::tuple{from.local_id, from.remote_id, from.remote_qpn}),
              (std::tuple{dreq.local_id, dreq.remote_id, dreq.remote_qpn}));
    ++sent;
    return answer;
  }
  /// Lets time go on by itself until nothing is left to do.
  void run_out() {
    while (executor.next_deadline_ns() != UINT64_MAX) {
      now = std::max(now, executor.next_deadline_ns());
      executor.on_timer(now);
    }
  }
  size_t sent = 0;
  Executor::Sent answer = Executor::Sent::yes;
  uint64_t now = 1000 * kMs;
  Executor executor{folder, kNetwork, [this](const Bequest& from, wire::MadIn mad) { return send(from, mad); }};
};

TEST_F(Execution, ends_each_connection_at_once_and_again_until_the_peer_agrees) {
  leave_will_of_killed(3, 50);
  executor.on_timer(now);
  EXPECT_EQ(sent, 0U);  // nobody suspects anything
  executor.suspect();
  executor.on_timer(now);
  EXPECT_EQ(sent, 50U);
  for (uint32_t i = 1; i <= 49; ++i) {
    executor.on_answer({bequest(i).remote_id, bequest(i).local_id, {}});
  }
  executor.on_answer({bequest(50).remote_id + 1, bequest(50).local_id, {}});  // another connection's
  const uint64_t began = now;
  run_out();
  EXPECT_EQ(sent, 54U);  // five tries
  EXPECT_LE(now - began, 800 * kMs);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Execution, finds_a_lock_that_outlives_its_process_for_a_moment) {
  leave_will_of_killed(3, 1);
  auto held = wills_of_the_dead(folder, kNetwork);
  executor.suspect();
  executor.on_timer(now);
  EXPECT_EQ(sent, 0U);
  held.clear();
  run_out();
  EXPECT_EQ(sent, 5U);
}

TEST_F(Execution, leaves_to_others_what_it_can_not_send) {
  leave_will_of_killed(3, 2);
  answer = Executor::Sent::not_from_here;
  executor.suspect();
  executor.on_timer(now);
  EXPECT_EQ(sent, 2U);
  EXPECT_EQ(of_the_dead().size(), 2U);
}

TEST_F(Execution, of_an_empty_will_removes_it) {
  leave_will_of_killed(3, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  const pid_t child = fork();
  if (child == 0) {
    Will will(folder, 3, kNetwork);
    will.put(bequest(1));
    will.remove(bequest(1).local_id);
    kill(getpid(), SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  executor.suspect();
  executor.on_timer(now);
  EXPECT_EQ(sent, 0U);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace ringbolt::device
