#include "cluster/runtime_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cluster/names.h"

namespace ringbolt::cluster {
namespace {

using ::testing::HasSubstr;

class RuntimeDirTest : public ::testing::Test {
 protected:
  RuntimeDirTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rbXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~RuntimeDirTest() override {
    ::unsetenv("RINGBOLT_RUNTIME_DIR");
    ::unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }

  static std::string refusal(const std::string& path) {
    try {
      RuntimeDir::at(path);
      return "accepted";
    } catch (const base::Error& error) {
      return error.what();
    }
  }

  std::string folder_;
};

TEST_F(RuntimeDirTest, makes_a_private_folder) {
  const RuntimeDir dir = RuntimeDir::at(folder_ + "/new///");
  EXPECT_EQ(dir.root(), folder_ + "/new");
  struct stat status {};
  ASSERT_EQ(::stat(dir.root().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
  EXPECT_EQ(dir.make_default_slots(), folder_ + "/new/default/slots");
  EXPECT_TRUE(std::filesystem::is_directory(dir.default_slots()));
}

TEST_F(RuntimeDirTest, knows_the_paths_of_a_cluster) {
  const RuntimeDir dir = RuntimeDir::at(folder_);
  EXPECT_EQ(dir.node_file("ring4", 3), folder_ + "/clusters/ring4/node-3.ports");
  EXPECT_EQ(dir.control("ring4"), folder_ + "/clusters/ring4/control");
  EXPECT_EQ(dir.cluster_slots("ring4"), folder_ + "/clusters/ring4/slots");
}

TEST_F(RuntimeDirTest, prefers_its_own_variable_then_xdg_then_tmp) {
  ::unsetenv("RINGBOLT_RUNTIME_DIR");  // whoever runs the tests may have set it
  ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  EXPECT_EQ(RuntimeDir::from_environment().root(), folder_ + "/ringbolt");
  ::setenv("RINGBOLT_RUNTIME_DIR", (folder_ + "/own").c_str(), 1);
  EXPECT_EQ(RuntimeDir::from_environment().root(), folder_ + "/own");
}

TEST_F(RuntimeDirTest, refuses_a_relative_path) {
  EXPECT_THAT(refusal("tmp/x"), HasSubstr("must be an absolute path"));
  EXPECT_THAT(refusal(""), HasSubstr("must be an absolute path"));
}

TEST_F(RuntimeDirTest, refuses_a_loose_mode_and_names_the_remedy) {
  const std::string loose = folder_ + "/loose";
  ASSERT_EQ(::mkdir(loose.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(loose.c_str(), 0750), 0);
  EXPECT_THAT(refusal(loose), HasSubstr(fmt::format("chmod 700 {}", loose)));
}

TEST_F(RuntimeDirTest, refuses_a_symbolic_link) {
  const std::string link = folder_ + "/link";
  ASSERT_EQ(::symlink(folder_.c_str(), link.c_str()), 0);
  EXPECT_THAT(refusal(link), HasSubstr("is a symbolic link"));
}

TEST_F(RuntimeDirTest, refuses_a_file_and_a_missing_parent) {
  const std::string file = folder_ + "/file";
  ::fclose(::fopen(file.c_str(), "w"));
  EXPECT_THAT(refusal(file), HasSubstr("is no folder"));
  EXPECT_THAT(refusal(folder_ + "/no/where"), HasSubstr("set RINGBOLT_RUNTIME_DIR"));
}

TEST_F(RuntimeDirTest, refuses_a_folder_of_somebody_else) {
  if (::geteuid() == 0) {
    const std::string foreign = folder_ + "/foreign";
    ASSERT_EQ(::mkdir(foreign.c_str(), 0700), 0);
    ASSERT_EQ(::chown(foreign.c_str(), 65534, 65534), 0);
    EXPECT_THAT(refusal(foreign), HasSubstr("belongs to uid 65534"));
  } else {
    EXPECT_THAT(refusal("/root"), HasSubstr("belongs to uid 0"));
  }
}

TEST(Names, of_clusters_nodes_and_devices) {
  EXPECT_TRUE(is_cluster_name("ring4"));
  EXPECT_TRUE(is_cluster_name("a.b-C_9"));
  EXPECT_TRUE(is_cluster_name(std::string(32, 'a')));
  for (const char* bad : {"", ".", "..", ".hidden", "-x", "a/b", "a b", "\xc3\xa9", "a:b"}) {
    EXPECT_FALSE(is_cluster_name(bad)) << bad;
  }
  EXPECT_FALSE(is_cluster_name(std::string(33, 'a')));
  EXPECT_FALSE(is_node_name("12"));
  EXPECT_FALSE(is_node_name("local"));
  EXPECT_TRUE(is_node_name("n12"));
  EXPECT_TRUE(is_device_name("rdma_en2"));
  EXPECT_FALSE(is_device_name("2x"));
  EXPECT_FALSE(is_device_name("a.b"));
  EXPECT_FALSE(is_device_name(""));
}

}  // namespace
}  // namespace ringbolt::cluster
