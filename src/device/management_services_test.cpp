#include "device/management_services.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <new>
#include <vector>

#include "base/clock.h"

namespace ringbolt::device {
namespace {

constexpr wire::Address kOne = wire::ipv4_address(127, 0, 0, 1);
constexpr wire::Address kTwo = wire::ipv4_address(127, 0, 0, 2);
constexpr uint64_t kId = 0x0000000001062329;

Service at(const wire::Address& address, uint64_t token = 1) {
  Service service;
  service.token = token;
  service.service_id = kId;
  service.address = address;
  service.is_ipv4 = service.is_family_only = true;
  return service;
}

Service wildcard(bool is_ipv4, uint64_t token = 2) {
  Service service = at({}, token);
  service.is_any = true;
  service.is_ipv4 = is_ipv4;
  service.is_family_only = is_ipv4;
  return service;
}

bool all_live(uint32_t) { return true; }
bool none_lives(uint32_t) { return false; }

class Services : public testing::Test {
 protected:
  Services() {
    char pattern[] = "/tmp/rbs-XXXXXX";
    folder = mkdtemp(pattern);
  }
  ~Services() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST(ServiceConflict, knows_the_rules_of_sockets) {
  EXPECT_EQ(conflict(at(kOne), at(kOne), true), EADDRINUSE);
  EXPECT_EQ(conflict(at(kOne), at(kTwo), true), 0);
  EXPECT_EQ(conflict(wildcard(true), at(kTwo), true), EADDRNOTAVAIL);
  EXPECT_EQ(conflict(at(kOne), wildcard(true), true), EADDRNOTAVAIL);
  EXPECT_EQ(conflict(wildcard(false), wildcard(true), true), EADDRNOTAVAIL);
  Service six = wildcard(false);
  six.is_family_only = true;
  EXPECT_EQ(conflict(six, wildcard(true), true), 0);
  Service one = at(kOne);
  Service same = at(kOne);
  one.is_reusable = same.is_reusable = true;
  EXPECT_EQ(conflict(one, same, true), 0);
  EXPECT_EQ(conflict(one, same, false), EADDRINUSE);
  same.service_id += 1;
  EXPECT_EQ(conflict(one, same, false), 0);
}

TEST(ServiceFile, comes_back_as_it_was) {
  ServiceFile file;
  file.gids = {kOne, kTwo};
  file.services = {at(kOne, 0), wildcard(false, 0)};
  file.services[1].is_listening = true;
  file.closed = {{kId + 1, 123456789}};
  const auto back = parse_services(emit(file));
  ASSERT_TRUE(back);
  EXPECT_EQ(*back, file);
}

TEST(ServiceFile, with_anything_else_in_it_is_none) {
  const std::string good = emit({{kOne}, {at(kOne)}, {}});
  EXPECT_TRUE(parse_services(good));
  EXPECT_FALSE(parse_services(""));
  EXPECT_FALSE(parse_services("x" + good));
  EXPECT_FALSE(parse_services(good + "service 12 34 -----\n"));
  EXPECT_FALSE(parse_services(good + "gid 00\n"));
  EXPECT_FALSE(parse_services(good + "nonsense\n"));
  for (size_t length = 0; length < good.size(); ++length) {
    static_cast<void>(parse_services(good.substr(0, length)));
  }
}

TEST_F(Services, belong_to_the_process_that_listens) {
  ServiceBook mine(folder, 1);
  ServiceBook other(folder, 2);
  ASSERT_EQ(other.bind(at(kOne), all_live), 0);
  EXPECT_TRUE(mine.owners_of(kId, kOne, std::nullopt).empty());  // bound is not yet listening
  ASSERT_EQ(other.listen(1, all_live), 0);
  EXPECT_EQ(mine.owners_of(kId, kOne, std::nullopt), std::vector<uint32_t>{2});
  EXPECT_TRUE(mine.owners_of(kId, kTwo, std::nullopt).empty());
  EXPECT_EQ(mine.bind(at(kOne), all_live), EADDRINUSE);
  EXPECT_EQ(mine.bind(at(kOne), none_lives), 0);  // what a crash left is no objection
  EXPECT_EQ(mine.listen(77, all_live), EINVAL);
}

TEST_F(Services, of_another_node_are_no_objection) {
  ServiceBook mine(folder, 1);
  ServiceBook other(folder, 2);
  mine.set_gids({wire::ipv4_address(127, 77, 0, 2)});
  other.set_gids({wire::ipv4_address(127, 77, 1, 2)});
  EXPECT_EQ(mine.bind(wildcard(true), all_live), 0);
  EXPECT_EQ(other.bind(wildcard(true), all_live), 0);
  EXPECT_EQ(other.listen(2, all_live), 0);
  const wire::Address here = wire::ipv4_address(127, 77, 0, 2);
  const wire::Address there = wire::ipv4_address(127, 77, 1, 2);
  EXPECT_TRUE(mine.owners_of(kId, here, here).empty());
  EXPECT_EQ(mine.owners_of(kId, there, there), std::vector<uint32_t>{2});
}

TEST_F(Services, that_could_not_be_told_to_others_are_not_bound) {
  ServiceBook mine(folder, 1);
  std::filesystem::create_directory(folder + "/1.services");  // which no file takes the place of
  EXPECT_EQ(mine.bind(at(kOne, 1), all_live), EISDIR);
  EXPECT_EQ(mine.listen(1, all_live), EINVAL);
  std::filesystem::remove(folder + "/1.services");
  EXPECT_EQ(mine.bind(at(kOne, 2), all_live), 0);
  EXPECT_EQ(mine.listen(2, all_live), 0);
  EXPECT_EQ(mine.owners_of(kId, kOne, {}), std::vector<uint32_t>{1});
}

/// What becomes of one of many: how often, at most, others were served while it waited. -1: it was refused.
int64_t most_overtaken(const std::string& folder, uint32_t slot, std::atomic<int64_t>& n_served) {
  ServiceBook book(folder, slot);
  Service service = at(kOne);
  service.service_id += slot;
  int64_t most = 0;
  for (service.token = 1; service.token <= 15; ++service.token) {
    const int64_t before = n_served;
    if (book.bind(service, all_live) != 0 || book.listen(service.token, all_live) != 0) {
      return -1;
    }
    most = std::max<int64_t>(most, n_served++ - before);
    book.unbind(service.token);
  }
  book.leave();
  return most;
}

// Five others have two turns each. A lock that was polled for let hundreds go first, and refused after a second.
TEST_F(Services, of_six_processes_are_bound_in_turn_however_busy_the_machine_is) {
  constexpr int64_t kMostOvertaken = 25;  // with those that came while it was off its core, on its way to the lock
  void* const shared =
      mmap(nullptr, sizeof(std::atomic<int64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  auto& n_served = *new (shared) std::atomic<int64_t>(0);
  std::vector<pid_t> busy;
  std::vector<pid_t> binding;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(fork());
    if (busy.back() == 0) {
      for (;;) {
        n_served.load();
      }
    }
  }
  for (uint32_t slot = 1; slot <= 6; ++slot) {
    binding.push_back(fork());
    if (binding.back() == 0) {
      const int64_t most = most_overtaken(folder, slot, n_served);
      _exit(most < 0 ? 255 : static_cast<int>(std::min<int64_t>(most, 254)));
    }
  }
  for (const pid_t process : binding) {
    int status = 0;
    EXPECT_EQ(waitpid(process, &status, 0), process);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_LT(WEXITSTATUS(status), kMostOvertaken);
  }
  for (const pid_t process : busy) {
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
  munmap(shared, sizeof(std::atomic<int64_t>));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Services, remember_for_a_moment_who_listened) {
  ServiceBook mine(folder, 1);
  ServiceBook other(folder, 2);
  ASSERT_EQ(other.bind(at(kOne), all_live), 0);
  ASSERT_EQ(other.listen(1, all_live), 0);
  other.unbind(1);
  const uint64_t now = base::now_ns();
  EXPECT_TRUE(mine.is_between_listeners(kId, now));
  EXPECT_TRUE(mine.is_between_listeners(kId, now + 1'500'000'000));  // perftest's programs sleep for a second
  EXPECT_FALSE(mine.is_between_listeners(kId + 1, now));
  EXPECT_FALSE(mine.is_between_listeners(kId, now + 10'000'000'000));
  other.leave();
  EXPECT_FALSE(mine.is_between_listeners(kId, now));
  EXPECT_FALSE(std::filesystem::exists(folder + "/2.services"));
}

}  // namespace
}  // namespace ringbolt::device
