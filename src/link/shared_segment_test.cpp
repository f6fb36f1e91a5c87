#include "link/shared_segment.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

base::UniqueFd duplicate_of(int fd) { return base::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

TEST(SharedSegment, is_one_memory_for_all_who_map_it_and_never_shrinks) {
  constexpr size_t kSharedBytes = 5000;  // no multiple of a page
  auto mine = SharedSegment::create("test", kSharedBytes);
  ASSERT_TRUE(mine);
  const base::UniqueFd fd = duplicate_of(mine->descriptor());
  EXPECT_TRUE(
      std::all_of(mine->data(), mine->data() + kSharedBytes, [](std::byte one) { return one == std::byte{0}; }));
  auto reader = SharedSegment::map(fd, kSharedBytes, false);
  auto writer = SharedSegment::map(fd, kSharedBytes, true);
  ASSERT_TRUE(reader && writer);
  EXPECT_EQ(reader->descriptor(), -1);
  mine->data()[kSharedBytes - 1] = std::byte{7};
  writer->data()[0] = std::byte{9};
  EXPECT_EQ(reader->data()[kSharedBytes - 1], std::byte{7});
  EXPECT_EQ(mine->data()[0], std::byte{9});
  // A peer that could take the end away would kill us with SIGBUS.
  EXPECT_NE(ftruncate(fd.get(), 0), 0);
  EXPECT_EQ(errno, EPERM);
  EXPECT_NE(ftruncate(fd.get(), 1 << 20), 0);
  mine->close_descriptor();
  EXPECT_EQ(mine->descriptor(), -1);
  EXPECT_EQ(mine->data()[0], std::byte{9}) << "the mapping stays";
}

TEST(SharedSegment, a_length_that_is_not_the_files_is_refused) {
  const auto mine = SharedSegment::create("test", 8192);
  ASSERT_TRUE(mine);
  const base::UniqueFd fd = duplicate_of(mine->descriptor());
  for (const size_t length :
       {size_t{0}, size_t{1}, size_t{4096}, size_t{8191}, size_t{8193}, size_t{12288}, SIZE_MAX}) {
    const auto mapped = SharedSegment::map(fd, length, false);
    ASSERT_FALSE(mapped) << length;
    EXPECT_EQ(mapped.error().value, EINVAL);
  }
  EXPECT_TRUE(SharedSegment::map(fd, 8192, true));
}

TEST(SharedSegment, whoever_could_change_its_size_is_not_trusted) {
  constexpr int kAll[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
  for (unsigned chosen = 0; chosen < 8; ++chosen) {
    const base::UniqueFd fd(memfd_create("peer", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    ASSERT_EQ(ftruncate(fd.get(), 4096), 0);
    int seals = 0;
    for (unsigned i = 0; i < 3; ++i) {
      seals |= (chosen >> i & 1U) != 0 ? kAll[i] : 0;
    }
    ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
    EXPECT_EQ(SharedSegment::map(fd, 4096, false).has_value(), chosen == 7) << chosen;
  }
}

TEST(SharedSegment, files_of_other_kinds_are_refused_and_nothing_is_left) {
  const size_t before = testing::open_descriptors();
  {
    const base::UniqueFd event(eventfd(0, EFD_CLOEXEC));
    const base::UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
    const base::UniqueFd none;
    for (const base::UniqueFd* fd : {&event, &null, &none}) {
      EXPECT_EQ(SharedSegment::map(*fd, 4096, false).error().value, EINVAL);
      EXPECT_FALSE(SharedSegment::map(*fd, 0, false));
    }
    EXPECT_FALSE(SharedSegment::create("none", 0));
    EXPECT_FALSE(SharedSegment::create("more than there is", SIZE_MAX));
  }
  EXPECT_EQ(testing::open_descriptors(), before);
}

TEST(SharedSegment, has_one_owner) {
  auto made = SharedSegment::create("test", 4096);
  ASSERT_TRUE(made);
  std::byte* const memory = made->data();
  SharedSegment first = std::move(*made);
  EXPECT_FALSE(made->is_mapped());
  SharedSegment second;
  EXPECT_FALSE(second.is_mapped());
  second = std::move(first);
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second.length_bytes(), 4096U);
  EXPECT_GE(second.descriptor(), 0);
  second.data()[0] = std::byte{1};  // a crash if its first owner had unmapped it
}

}  // namespace
}  // namespace ringbolt::link
