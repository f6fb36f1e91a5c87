#include "thunderbolt_look.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "failure.h"
#include "host_survey.h"

namespace ringbolt::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A machine played by a folder.
class ThunderboltLook : public ::testing::Test {
 protected:
  ThunderboltLook() {
    char name[] = "/tmp/rb-tblook-XXXXXX";
    root_ = ::mkdtemp(name);
    std::filesystem::permissions(root_, std::filesystem::perms(0755));
    put("proc/sys/kernel/osrelease", "7.2.0\n");
    put("proc/mounts", "configfs /sys/kernel/config configfs rw 0 0\n");
    put("sys/bus/thunderbolt/devices/0-0/unique_id", "11111111-0000-0000-ffff-ffffffffffff\n");
    put("sys/bus/thunderbolt/devices/0-1/uevent", "DEVTYPE=thunderbolt_xdomain\n");
    put("sys/bus/thunderbolt/devices/0-1/unique_id", "22222222-0000-0000-ffff-ffffffffffff\n");
    put("sys/bus/thunderbolt/devices/0-1/device_name", "left box\n");
    put("sys/bus/thunderbolt/devices/0-1.0/key", "network\n");
    put("sys/bus/thunderbolt/devices/0-1.1/key", "stream\n");
    put("sys/bus/thunderbolt/devices/0-3/uevent", "DEVTYPE=thunderbolt_device\n");  // a dock
    put("sys/bus/thunderbolt/devices/0-3/unique_id", "33333333-0000-0000-ffff-ffffffffffff\n");
  }
  ~ThunderboltLook() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = std::filesystem::path(root_) / path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  void put_stream(const std::string& group, int index, int in, int out) const {
    const std::string folder = "sys/kernel/config/thunderbolt/stream/" + group + "/data/";
    put(folder + "index", std::to_string(index) + "\n");
    put(folder + "in_hopid", std::to_string(in) + "\n");
    put(folder + "out_hopid", std::to_string(out) + "\n");
  }

  std::string root_;
};

TEST_F(ThunderboltLook, sees_peers_services_and_streams) {
  put_stream("0-1.1", 4, 8, 9);
  put_stream("0-7.0", 5, 0, 0);  // nobody is there
  put("dev/tbstream4", "");
  put("dev/tbstream6", "");
  put("sys/kernel/config/thunderbolt/stream/0-1.1/odd name/index", "9\n");
  const cluster::ThunderboltLook look = look_at_thunderbolt(root_);
  EXPECT_EQ(look.kernel, "7.2.0");
  EXPECT_TRUE(look.has_bus && look.has_configfs && look.has_driver);
  EXPECT_THAT(look.own_ids, ElementsAre("11111111-0000-0000-ffff-ffffffffffff"));
  ASSERT_EQ(look.peers.size(), 2U);
  EXPECT_EQ(look.peers[0].own_id, "11111111-0000-0000-ffff-ffffffffffff");
  EXPECT_EQ(look.peers[0].unique_id, "22222222-0000-0000-ffff-ffffffffffff");
  EXPECT_EQ(look.peers[0].device_name, "left box");
  EXPECT_EQ(look.peers[0].service, "0-1.1");
  EXPECT_THAT(look.peers[0].groups, ElementsAre("0-1.1"));
  EXPECT_THAT(look.peers[0].streams,
              ElementsAre(cluster::ThunderboltStream{"data", root_ + "/dev/tbstream4", 4, 8, 9}));
  EXPECT_EQ(look.peers[1].xdomain, "0-7");
  EXPECT_EQ(look.peers[1].unique_id, "");
  EXPECT_THAT(look.strays, ElementsAre(root_ + "/dev/tbstream6"));
}

TEST_F(ThunderboltLook, sees_who_holds_a_stream) {
  put_stream("0-1.1", 0, 8, 9);
  put("dev/tbstream0", "");
  const int descriptor = ::open((root_ + "/dev/tbstream0").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_THAT(look_at_thunderbolt(root_).peers[0].streams[0].holder,
              HasSubstr("(pid " + std::to_string(::getpid()) + ")"));
  ::close(descriptor);
  EXPECT_EQ(look_at_thunderbolt(root_).peers[0].streams[0].holder, "");
}

TEST_F(ThunderboltLook, sees_what_its_user_may_not_open) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "takes root, to become somebody else";
  }
  put_stream("0-1.1", 0, 8, 9);
  put("dev/tbstream0", "");
  std::filesystem::permissions(root_ + "/dev/tbstream0", std::filesystem::perms(0600));
  EXPECT_TRUE(look_at_thunderbolt(root_).peers[0].streams[0].may_open);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool is_other = ::setgid(65534) == 0 && ::setuid(65534) == 0;
    ::_exit(is_other && !look_at_thunderbolt(root_).peers[0].streams[0].may_open ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST(ThunderboltLookText, is_empty_where_there_is_nothing) {
  const cluster::ThunderboltLook look = look_at_thunderbolt("/nowhere/at/all");
  EXPECT_FALSE(look.has_bus || look.has_configfs || look.has_driver);
  EXPECT_TRUE(look.peers.empty() && look.strays.empty() && look.own_ids.empty());
}

TEST_F(ThunderboltLook, comes_back_as_it_was_sent) {
  put_stream("0-1.1", 4, 8, 9);
  put("dev/tbstream4", "");
  put("dev/tbstream5", "");
  const HostLook look{"0.1.0", {}, look_at_thunderbolt(root_)};
  EXPECT_EQ(parse_look("h", emit_look(look)), look);
}

TEST_F(ThunderboltLook, refuses_what_a_shell_could_take_for_more_than_a_path) {
  HostLook look{"0.1.0", {}, look_at_thunderbolt(root_)};
  for (const std::string& bad : std::vector<std::string>{"a b", "$(id)", "`id`", "a;b", "a\nb", "a'b", "a\"b", "*"}) {
    HostLook one = look;
    one.thunderbolt.configfs = bad;
    EXPECT_THROW(parse_look("h", emit_look(one)), UsageError) << bad;
    one = look;
    one.thunderbolt.peers[0].service = bad;
    EXPECT_THROW(parse_look("h", emit_look(one)), UsageError) << bad;
  }
  look.thunderbolt.peers[0].device_name = "evil\033[2Jbox\xff";
  EXPECT_THAT(parse_look("h", emit_look(look)).thunderbolt.peers[0].device_name, HasSubstr("evil[2Jbox"));
}

}  // namespace
}  // namespace ringbolt::tools
