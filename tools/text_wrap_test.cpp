#include "text_wrap.h"

#include <gtest/gtest.h>

namespace ringbolt::tools {
namespace {

TEST(TextWrap, fills_paragraphs_to_the_width) {
  EXPECT_EQ(wrapped("", 10), "");
  EXPECT_EQ(wrapped("one two three", 13), "one two three");
  EXPECT_EQ(wrapped("one two three", 12), "one two\nthree");
  EXPECT_EQ(wrapped("one\ntwo\nthree", 20), "one two three");
  EXPECT_EQ(wrapped("one\n\ntwo", 20), "one\n\ntwo");
}

TEST(TextWrap, leaves_long_words_and_indented_lines) {
  EXPECT_EQ(wrapped("a verylongword b", 6), "a\nverylongword\nb");
  EXPECT_EQ(wrapped("see:\n  ringbolt up --emulate ring:4\n  x\nthen more", 10),
            "see:\n  ringbolt up --emulate ring:4\n  x\nthen more");
}

TEST(TextWrap, indents_all_lines_but_the_first) {
  EXPECT_EQ(wrapped("one two three", 12, 4), "one two\n    three");
  EXPECT_EQ(wrapped("one\n\ntwo three four", 14, 4), "one\n\n    two three\n    four");
}

TEST(TextWrap, counts_letters_not_bytes) { EXPECT_EQ(wrapped("\u00fc\u00fc \u00fc", 4), "\u00fc\u00fc \u00fc"); }

TEST(TextWrap, cuts_between_letters) {
  EXPECT_EQ(first_columns("\u00fc\u20acx", 0), "");
  EXPECT_EQ(first_columns("\u00fc\u20acx", 1), "\u00fc");
  EXPECT_EQ(first_columns("\u00fc\u20acx", 2), "\u00fc\u20ac");
  EXPECT_EQ(first_columns("\u00fc\u20acx", 3), "\u00fc\u20acx");
  EXPECT_EQ(first_columns("\u00fc\u20acx", 9), "\u00fc\u20acx");
  EXPECT_EQ(first_columns("", 1), "");
}

}  // namespace
}  // namespace ringbolt::tools
