#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

extern "C" {
const char* ibv_get_sysfs_path();
int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size);
}

namespace {

class SysfsFiles : public testing::Test {
 protected:
  SysfsFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rb-sysfs-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  ~SysfsFiles() override { std::filesystem::remove_all(dir_); }

  int read(const std::string& content, size_t room) {
    std::ofstream(dir_ + "/file") << content;
    buffer_.fill('#');
    return ibv_read_sysfs_file(dir_.c_str(), "file", buffer_.data(), room);
  }

  std::string dir_;
  std::array<char, 16> buffer_ = {};
};

TEST_F(SysfsFiles, drop_the_newline) {
  EXPECT_EQ(read("abc\n", 16), 3);
  EXPECT_STREQ(buffer_.data(), "abc");
}

TEST_F(SysfsFiles, without_newline_are_ended_where_there_is_room) {
  EXPECT_EQ(read("abc", 16), 3);
  EXPECT_STREQ(buffer_.data(), "abc");
  EXPECT_EQ(read("abcd", 4), 4);
  EXPECT_EQ(buffer_[4], '#');
}

TEST_F(SysfsFiles, longer_than_the_buffer_are_cut) {
  EXPECT_EQ(read("abcdefgh\n", 4), 4);
  EXPECT_EQ(std::string(buffer_.data(), 5), "abcd#");
}

TEST_F(SysfsFiles, empty_is_a_length_and_absent_an_error) {
  EXPECT_EQ(read("", 16), 0);
  EXPECT_EQ(ibv_read_sysfs_file(dir_.c_str(), "none", buffer_.data(), buffer_.size()), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(SysfsFiles, root_has_no_slash_at_its_end) {
  const std::string root = ibv_get_sysfs_path();
  ASSERT_FALSE(root.empty());
  EXPECT_NE(root.back(), '/');
}

}  // namespace
