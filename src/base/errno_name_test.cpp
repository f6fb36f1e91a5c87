#include "base/errno_name.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace ringbolt::base {
namespace {

TEST(ErrnoName, is_what_the_c_library_says) {
  for (int error = -1; error < 200; ++error) {
    const char* const theirs = ::strerrorname_np(error);
    const char* const ours = errno_name(error);
    EXPECT_EQ(std::string(ours == nullptr ? "" : ours), theirs == nullptr || error == 0 ? "" : theirs) << error;
  }
}

}  // namespace
}  // namespace ringbolt::base
