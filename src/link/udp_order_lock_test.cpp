#include "link/udp_order_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

TEST(UdpOrderLock, keeps_an_order_and_removes_an_empty_one) {
  const testing::TempFolder folder;
  const base::UniqueFd directory(open(folder.path().c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  UdpOrderFile order;
  order.generation = 5;
  order.families[1].append({3, 4711, 99, false});
  {
    const UdpOrderLock lock(directory.get(), 12, 0);
    ASSERT_TRUE(lock.is_held());
    EXPECT_EQ(lock.read(), UdpOrderFile{}) << "a new file";
    EXPECT_EQ(lock.write(order), 0);
    EXPECT_EQ(lock.read(), order);
  }
  EXPECT_EQ(testing::files_in(folder.path()), std::vector<std::string>{"udp-12.order"});
  {
    const UdpOrderLock other(directory.get(), 13, 0);
    EXPECT_EQ(other.read(), UdpOrderFile{}) << "another network namespace has a port of its own";
    const UdpOrderLock lock(directory.get(), 12, 0);
    EXPECT_EQ(lock.read(), order);
    order.families[1] = {};
    EXPECT_EQ(lock.write(order), 0);
    EXPECT_EQ(other.write({}), 0);
  }
  EXPECT_TRUE(testing::files_in(folder.path()).empty());
}

TEST(UdpOrderLock, a_damaged_file_is_no_order_and_can_be_written_anew) {
  const testing::TempFolder folder;
  const base::UniqueFd directory(open(folder.path().c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  UdpOrderFile order;
  order.families[0].append({1, 2, 3, true});
  const std::string whole = order.emit();
  const std::string path = folder.path() + "/udp-1.order";
  for (size_t kept = 1; kept + 1 < whole.size(); ++kept) {  // a writer that died in the middle, or a full disk
    std::ofstream(path) << whole.substr(0, kept);
    EXPECT_EQ(UdpOrderLock(directory.get(), 1, 0).read(), std::nullopt) << kept;
  }
  const UdpOrderLock lock(directory.get(), 1, 0);
  EXPECT_EQ(lock.write(order), 0);
  EXPECT_EQ(lock.read(), order);
}

TEST(UdpOrderLock, is_not_held_without_a_folder_or_through_a_link) {
  const UdpOrderLock nowhere(-1, 1, 0);
  EXPECT_FALSE(nowhere.is_held());
  EXPECT_EQ(nowhere.error(), EBADF);
  const testing::TempFolder folder;
  const base::UniqueFd directory(open(folder.path().c_str(), O_DIRECTORY | O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(symlink("/dev/null", (folder.path() + "/udp-1.order").c_str()), 0);
  const UdpOrderLock linked(directory.get(), 1, 0);
  EXPECT_FALSE(linked.is_held());
  EXPECT_EQ(linked.error(), ELOOP);
}

}  // namespace
}  // namespace ringbolt::link
