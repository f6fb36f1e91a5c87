#include "base/printable.h"

#include <gtest/gtest.h>

namespace ringbolt::base {
namespace {

TEST(Printable, nothing_that_a_terminal_obeys) {
  EXPECT_EQ(printable("a\x1b[2Jb\x7f\tc\n"), "a?[2Jb??c?");
  EXPECT_EQ(printable("\xc2\x9b\x31m"), "??1m") << "CSI as UTF-8 spells it";
}

TEST(Printable, all_else_stays) {
  EXPECT_EQ(printable("\xc3\xa9 \xc2\xb5s ~"), "\xc3\xa9 \xc2\xb5s ~");
  EXPECT_EQ(printable("\xc2"), "\xc2") << "cut off behind a character's first byte";
  EXPECT_EQ(printable("one\ntwo\r", ' ', true), "one\ntwo ");
}

}  // namespace
}  // namespace ringbolt::base
