// The loader's view of the built libraries: each name at its version, refusals that refuse, and the ways in which
// programs open us.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Line {
  std::string library, symbol, node, kind, error, returns;
  bool is_further = false;  // a node that has the name besides its first one
};

std::vector<Line> read_table() {
  std::vector<Line> table;
  std::ifstream file(RINGBOLT_SYMBOLS);
  for (std::string text; std::getline(file, text);) {
    std::istringstream fields(text.substr(0, text.find('#')));
    Line line;
    if (fields >> line.library >> line.symbol >> line.node >> line.kind >> line.error >> line.returns) {
      std::istringstream nodes(line.node);
      std::getline(nodes, line.node, ',');
      table.push_back(line);
      const std::string stem = line.node.substr(0, line.node.find_last_not_of("0123456789") + 1);
      line.is_further = true;
      for (std::string number; std::getline(nodes, number, ',');) {
        line.node = stem + number;
        table.push_back(line);
      }
    }
  }
  return table;
}

int errno_named(const std::string& name) {
  static const std::map<std::string, int> known = {{"ENOSYS", ENOSYS}, {"EOPNOTSUPP", EOPNOTSUPP}};
  const auto found = known.find(name);
  return found == known.end() ? -1 : found->second;
}

void* open_library(const std::string& name) {
  void* handle = dlopen((std::string(RINGBOLT_DROPIN_DIR) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(handle, nullptr) << dlerror();
  return handle;
}

class Loader : public testing::Test {
 protected:
  void* handle_of(const std::string& library) {
    void*& handle = handles_[library];
    if (handle == nullptr) {
      handle = open_library(library);
    }
    return handle;
  }
  const std::vector<Line> table_ = read_table();

 private:
  std::map<std::string, void*> handles_;
};

TEST_F(Loader, finds_every_name_at_its_version) {
  ASSERT_GT(table_.size(), 300U);
  for (const Line& line : table_) {
    EXPECT_NE(dlvsym(handle_of(line.library), line.symbol.c_str(), line.node.c_str()), nullptr)
        << line.symbol << "@" << line.node;
  }
}

TEST_F(Loader, a_name_without_version_is_the_default_one) {
  for (const Line& line : table_) {
    if (line.is_further) {
      continue;
    }
    void* versioned = dlvsym(handle_of(line.library), line.symbol.c_str(), line.node.c_str());
    void* plain = dlsym(handle_of(line.library), line.symbol.c_str());
    if (line.kind == "legacy") {
      EXPECT_NE(versioned, plain) << line.symbol << "@" << line.node;
    } else {
      EXPECT_EQ(versioned, plain) << line.symbol << "@" << line.node;
    }
  }
}

TEST_F(Loader, refusals_return_failure_and_say_why) {
  int called = 0;
  for (const Line& line : table_) {
    void* address = dlvsym(handle_of(line.library), line.symbol.c_str(), line.node.c_str());
    if (line.kind == "real" || address == nullptr) {
      continue;
    }
    ++called;
    const std::string name = line.symbol + "@" + line.node;
    const int expected = errno_named(line.error);
    errno = 0;
    // Zeros for arguments: a refusal must not look at them.
    const auto result = reinterpret_cast<long (*)(long, long, long, long, long, long)>(address)(0, 0, 0, 0, 0, 0);
    const int reported = errno;
    if (line.returns == "errno") {
      EXPECT_EQ(static_cast<int>(result), expected) << name;
    } else if (line.returns == "minus1") {
      EXPECT_EQ(result, -1) << name;
    } else if (line.returns == "minuserr") {
      EXPECT_EQ(static_cast<int>(result), -expected) << name;
    } else if (line.returns == "false") {
      EXPECT_EQ(result & 0xff, 0) << name;
    } else if (line.returns != "void") {
      EXPECT_EQ(result, 0) << name;
    }
    EXPECT_EQ(reported, line.returns == "false" ? 0 : expected) << name;
  }
  EXPECT_GT(called, 200);
}

TEST_F(Loader, opens_under_the_name_that_macos_programs_use) {
  void* handle = open_library("librdma.dylib");
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(dlsym(handle, "ibv_get_device_list"), dlsym(handle_of("libibverbs.so.1"), "ibv_get_device_list"));
}

TEST_F(Loader, stays_when_closed) {
  void* first = open_library("libibverbs.so.1");
  void* address = dlsym(first, "ibv_wc_status_str");
  ASSERT_NE(address, nullptr);
  dlclose(first);
  EXPECT_STREQ(reinterpret_cast<const char* (*)(int)>(address)(0), "success");
}

}  // namespace
