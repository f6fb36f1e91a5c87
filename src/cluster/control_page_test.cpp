#include "cluster/control_page.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/limits.h"
#include "cluster/read_file.h"

namespace ringbolt::cluster {
namespace {

class ControlPageTest : public ::testing::Test {
 protected:
  ControlPageTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/control";
  }
  ~ControlPageTest() override { std::filesystem::remove_all(folder_); }

  int errno_of_opening(std::string_view bytes) {
    std::filesystem::remove(path_);
    write_new_file(path_, bytes);
    try {
      ControlPage::open(path_);
      return 0;
    } catch (const base::Error& error) {
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos);
      return error.errno_value();
    }
  }

  std::string folder_;
  std::string path_;
};

TEST_F(ControlPageTest, begins_with_all_cables_up) {
  const ControlPage page = ControlPage::create(path_, 3);
  EXPECT_EQ(page.n_cables(), 3U);
  EXPECT_EQ(page.generation(), 0U);
  EXPECT_TRUE(page.cable_up(0) && page.cable_up(1) && page.cable_up(2));
  EXPECT_FALSE(page.cable_up(3));
}

TEST_F(ControlPageTest, has_the_documented_layout) {
  ControlPage page = ControlPage::create(path_, 2);
  page.set_cable(1, false);
  const std::string expected("RBCTL1\0\0\1\0\0\0\2\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0", 28);
  EXPECT_EQ(read_file(path_, 100), expected);
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
}

/// The limit lets half of the cable's word through: write(2) says how many bytes, and leaves errno alone.
TEST_F(ControlPageTest, write_that_was_short_is_an_io_error) {
  ControlPage page = ControlPage::create(path_, 2);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  constexpr rlim_t kInTheWordOfTheFirstCable = 20 + 2;
  const rlimit low{kInTheWordOfTheFirstCable, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  int error = 0;
  errno = ENOTTY;
  try {
    page.set_cable(0, false);
  } catch (const base::Error& refusal) {
    error = refusal.errno_value();
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(error, EIO);
}

TEST_F(ControlPageTest, tells_others_when_they_look_again) {
  ControlPage here = ControlPage::create(path_, 2);
  const ControlPage there = ControlPage::open(path_);
  EXPECT_TRUE(here.set_cable(1, false));
  EXPECT_FALSE(here.cable_up(1));
  EXPECT_TRUE(there.cable_up(1));
  there.refresh();
  EXPECT_TRUE(there.cable_up(0));
  EXPECT_FALSE(there.cable_up(1));
  EXPECT_EQ(there.generation(), 1U);
  EXPECT_FALSE(here.set_cable(1, false));
  EXPECT_EQ(there.generation(), 1U);
  EXPECT_TRUE(here.set_cable(1, true));
  there.refresh();
  EXPECT_TRUE(there.cable_up(1));
  EXPECT_EQ(there.generation(), 2U);
  here.announce();
  there.refresh();
  EXPECT_EQ(there.generation(), 3U);
  EXPECT_TRUE(there.cable_up(1));
}

TEST_F(ControlPageTest, does_not_replace_a_page) {
  ControlPage::create(path_, 2).set_cable(0, false);
  EXPECT_THROW(ControlPage::create(path_, 2), base::Error);
  EXPECT_FALSE(ControlPage::open(path_).cable_up(0));
}

TEST_F(ControlPageTest, refuses_what_is_no_page) {
  const std::string good("RBCTL1\0\0\1\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0", 28);
  const auto with = [&](size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  EXPECT_EQ(errno_of_opening(good), 0);
  EXPECT_EQ(errno_of_opening(""), EINVAL);
  EXPECT_EQ(errno_of_opening(good.substr(0, 27)), EINVAL);
  EXPECT_EQ(errno_of_opening(good.substr(0, 24)), EINVAL);
  EXPECT_EQ(errno_of_opening(good + "more"), EINVAL);
  EXPECT_EQ(errno_of_opening(with(0, 'X')), EINVAL);
  EXPECT_EQ(errno_of_opening(with(8, 2)), EINVAL);
  EXPECT_EQ(errno_of_opening(with(12, 1)), EINVAL);
  EXPECT_EQ(errno_of_opening(with(15, '\xff')), EINVAL);
}

TEST_F(ControlPageTest, refuses_links_and_folders) {
  ControlPage::create(path_, 2);
  const std::string link = folder_ + "/link";
  ASSERT_EQ(::symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_THROW(ControlPage::open(link), base::Error);
  EXPECT_THROW(ControlPage::open(folder_), base::Error);
  EXPECT_THROW(ControlPage::open(folder_ + "/absent"), base::Error);
}

TEST_F(ControlPageTest, survives_a_file_that_is_cut_short) {
  ControlPage page = ControlPage::create(path_, 2);
  ASSERT_EQ(::truncate(path_.c_str(), 24), 0);  // ends after cable 0
  page.refresh();
  EXPECT_TRUE(page.cable_up(0));
  EXPECT_FALSE(page.cable_up(1));
  EXPECT_THROW(page.set_cable(0, false), base::Error);
  ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
  EXPECT_TRUE(page.cable_up(0)) << "nothing is read before the next refresh";
  page.refresh();
  EXPECT_FALSE(page.cable_up(0) || page.cable_up(1));
  EXPECT_THROW(page.set_cable(0, true), base::Error);
}

TEST_F(ControlPageTest, survives_a_file_that_is_scribbled_over) {
  ControlPage page = ControlPage::create(path_, 2);
  std::filesystem::copy_file(path_, path_ + ".good");
  const auto refresh_with = [&](size_t at, char byte) {
    std::string bytes = read_file(path_ + ".good", 100);
    bytes[at] = byte;
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
    page.refresh();
  };
  refresh_with(16, 9);
  EXPECT_TRUE(page.cable_up(0) && page.cable_up(1));
  EXPECT_EQ(page.generation(), 9U);
  refresh_with(20, 2);  // neither up nor cut
  EXPECT_FALSE(page.cable_up(0));
  EXPECT_TRUE(page.cable_up(1));
  for (const size_t at : {size_t{0}, size_t{8}, size_t{12}}) {
    refresh_with(at, 7);
    EXPECT_FALSE(page.cable_up(0) || page.cable_up(1)) << "byte " << at;
    EXPECT_EQ(page.n_cables(), 2U);
  }
}

TEST_F(ControlPageTest, can_be_moved) {
  ControlPage page;
  EXPECT_FALSE(page.is_open());
  page = ControlPage::create(path_, kMaxCables);
  EXPECT_TRUE(page.is_open());
  EXPECT_TRUE(page.cable_up(kMaxCables - 1));
}

}  // namespace
}  // namespace ringbolt::cluster
