#include "link/slot.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/error.h"
#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

mode_t mode_of(const std::string& path) {
  struct stat status {};
  EXPECT_EQ(stat(path.c_str(), &status), 0) << path;
  return status.st_mode & 07777U;
}

/// The errno of a refused claim; 0 when it was granted.
int refusal(const std::string& directory) {
  try {
    const Slot slot = Slot::claim(directory, 4, 0);
    return 0;
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find(directory), std::string::npos) << error.what();
    return error.errno_value();
  }
}

TEST(Slot, makes_private_files_whatever_the_umask) {
  const TempFolder folder;
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const std::string slots = folder.path() + "/" + std::to_string(mask) + "/deep/slots";
    const mode_t before = umask(mask);
    const Slot slot = Slot::claim(slots, kSlotCount, 7);
    umask(before);
    EXPECT_EQ(slot.number(), 7U);
    EXPECT_EQ(mode_of(slots), 0700U);
    EXPECT_EQ(mode_of(folder.path() + "/" + std::to_string(mask)), 0700U);
    EXPECT_EQ(mode_of(slots + "/7.lock") & 077U, 0U);
    EXPECT_EQ(mode_of(slots + "/7.sock"), 0600U);
    EXPECT_EQ(text_of(slots + "/7.lock"), std::to_string(getpid()) + "\n");
    EXPECT_TRUE(call(slots, 7).is_open());
  }
}

TEST(Slot, searches_from_the_start_and_wraps) {
  const TempFolder folder;
  const Slot first = Slot::claim(folder.slots(), 3, 2);
  const Slot second = Slot::claim(folder.slots(), 3, 2);
  const Slot third = Slot::claim(folder.slots(), 3, 2 + 3);
  EXPECT_EQ(first.number(), 2U);
  EXPECT_EQ(second.number(), 0U);
  EXPECT_EQ(third.number(), 1U);
  EXPECT_EQ(refusal(folder.slots()), 0);  // a fourth number
  EXPECT_THROW(Slot::claim(folder.slots(), 3, 0), base::Error);
}

TEST(Slot, release_removes_the_files_and_refuses_callers) {
  const TempFolder folder;
  Slot slot = Slot::claim(folder.slots(), 1, 0);
  ASSERT_EQ(::link((folder.slots() + "/0.sock").c_str(), (folder.slots() + "/1.sock").c_str()), 0);
  slot.release();
  slot.release();
  EXPECT_FALSE(call(folder.slots(), 1).is_open());  // the socket itself, by its other name
  EXPECT_EQ(files_in(folder.slots()), std::vector<std::string>{"1.sock"});
  EXPECT_EQ(Slot::claim(folder.slots(), 1, 0).number(), 0U);
}

TEST(Slot, takes_over_what_a_crash_left) {
  const TempFolder folder;
  Child crashing([&] {
    Slot slot = Slot::claim(folder.slots(), 1, 0);
    kill(getpid(), SIGKILL);
    return 0;
  });
  const pid_t crashed = crashing.pid();
  crashing.wait();
  EXPECT_EQ(text_of(folder.slots() + "/0.lock"), std::to_string(crashed) + "\n");
  EXPECT_FALSE(call(folder.slots(), 0).is_open());
  const Slot slot = Slot::claim(folder.slots(), 1, 0);
  EXPECT_EQ(text_of(folder.slots() + "/0.lock"), std::to_string(getpid()) + "\n");
  EXPECT_TRUE(call(folder.slots(), 0).is_open());
}

TEST(Slot, refuses_folders_that_are_not_ours_alone) {
  const TempFolder folder;
  const std::string open_to_all = folder.path() + "/open";
  ASSERT_EQ(mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(chmod(open_to_all.c_str(), 0777), 0);
  EXPECT_EQ(refusal(open_to_all), EPERM);

  const std::string linked = folder.path() + "/linked";
  std::filesystem::create_symlink(folder.path(), linked);
  EXPECT_NE(refusal(linked), 0);

  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "text";
  EXPECT_NE(refusal(file), 0);

  const std::string foreign = folder.path() + "/foreign";
  ASSERT_EQ(mkdir(foreign.c_str(), 0755), 0);
  if (geteuid() == 0 && chown(foreign.c_str(), 12345, 12345) == 0) {
    EXPECT_EQ(refusal(foreign), EPERM);
  }
}

TEST(Slot, a_lock_that_is_a_symbolic_link_is_not_followed) {
  const TempFolder folder;
  { const Slot made = Slot::claim(folder.slots(), 1, 0); }
  const std::string victim = folder.path() + "/victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, folder.slots() + "/0.lock");
  EXPECT_NE(refusal(folder.slots()), 0);
  EXPECT_EQ(text_of(victim), "precious");
}

// Slots are claimed from a random place on: what a killed process left must not wait until its number comes up again.
TEST(Slot, sweeps_what_killed_processes_left_and_nothing_else) {
  const TempFolder folder;
  const Slot living = Slot::claim(folder.slots(), 16, 3);
  std::ofstream(folder.slots() + "/7.lock") << "12345";
  std::ofstream(folder.slots() + "/7.sock") << "";
  const Slot newcomer = Slot::claim(folder.slots(), 16, 0);
  EXPECT_EQ(files_in(folder.slots()), (std::vector<std::string>{"0.lock", "0.sock", "3.lock", "3.sock"}));
}

// Who locks a file that its owner has just removed must not believe to own the slot.
TEST(Slot, never_has_two_owners) {
  const TempFolder folder;
  { const Slot makes_the_folder = Slot::claim(folder.slots(), 1, 0); }
  constexpr int kClaims = 3000;
  const std::string lock_path = folder.slots() + "/0.lock";
  std::atomic<int> owners{0};
  std::atomic<int> claims{0};
  std::atomic<bool> is_shared{false};
  std::atomic<bool> is_lock_missing{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (claims < kClaims) {
        try {
          const Slot slot = Slot::claim(folder.slots(), 1, 0);
          is_shared = is_shared || owners.fetch_add(1) != 0;
          is_lock_missing = is_lock_missing || access(lock_path.c_str(), F_OK) != 0;
          ++claims;
          owners.fetch_sub(1);
        } catch (const base::Error& error) {
          EXPECT_EQ(error.errno_value(), EUSERS) << error.what();
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_FALSE(is_shared);
  EXPECT_FALSE(is_lock_missing);
  EXPECT_TRUE(files_in(folder.slots()).empty());
}

}  // namespace
}  // namespace ringbolt::link
