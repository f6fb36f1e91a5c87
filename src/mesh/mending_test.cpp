#include "mesh/mending.h"

#include <gtest/gtest.h>

namespace ringbolt::mesh {
namespace {

using Step = Mending::Step;
using Stage = Mending::Stage;

MendingWord said_by(const Mending& end) { return {3, end.incarnation(), end.stage(), {}}; }

void do_next(Mending& end, Step step) {
  ASSERT_EQ(end.next(), step);
  end.done(step);
}

TEST(Mending, both_ends_reset_then_connect_then_start) {
  Mending a;
  Mending b;
  a.fail(1);
  do_next(a, Step::reset);
  EXPECT_EQ(a.next(), Step::nothing);  // before the other one has no past it must not connect
  EXPECT_TRUE(b.hear(said_by(a)));
  b.fail(1);
  do_next(b, Step::reset);
  EXPECT_EQ(b.incarnation(), a.incarnation());
  do_next(b, Step::connect);
  EXPECT_EQ(b.next(), Step::nothing);
  EXPECT_FALSE(a.hear(said_by(b)));
  do_next(a, Step::connect);
  do_next(a, Step::start);
  EXPECT_FALSE(b.hear(said_by(a)));
  do_next(b, Step::start);
  EXPECT_EQ(b.stage(), Stage::working);
  EXPECT_EQ(b.next(), Step::nothing);
}

TEST(Mending, end_that_works_answers_one_that_waits) {
  Mending a;
  a.fail(1);
  a.done(Step::reset);
  a.hear({3, 2, Stage::connected, {}});
  a.done(Step::connect);
  a.done(Step::start);
  EXPECT_TRUE(a.owes_answer({3, 2, Stage::connected, {}}));
  EXPECT_FALSE(a.owes_answer({3, 2, Stage::working, {}}));
  EXPECT_FALSE(a.owes_answer({3, 1, Stage::connected, {}}));
}

TEST(Mending, an_end_that_is_behind_goes_to_where_the_other_one_is) {
  Mending a;
  a.fail(1);
  a.hear({3, 9, Stage::reset, {}});
  do_next(a, Step::reset);
  EXPECT_EQ(a.incarnation(), 9);
  EXPECT_EQ(a.next(), Step::connect);
}

TEST(Mending, old_words_change_nothing) {
  Mending a;
  a.fail(5);
  a.done(Step::reset);
  EXPECT_FALSE(a.hear({3, 5, Stage::working, {}}));
  EXPECT_EQ(a.next(), Step::nothing);
}

TEST(MendingWord, comes_back_as_it_was) {
  MendingWord word{7, 513, Stage::connected, {}};
  for (size_t i = 0; i < 16; ++i) {
    word.address.gid.raw[i] = static_cast<uint8_t>(i * 7 + 1);
  }
  word.address.lid = 0x1234;
  word.address.qp_number = {0x900, 0x901};
  word.address.psn = {7, 8};
  const auto bytes = emit(word);
  const auto parsed = parse_mending(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(emit(*parsed), bytes);
  EXPECT_EQ(parsed->address.qp_number, word.address.qp_number);
  EXPECT_FALSE(parse_mending(std::span(bytes).first(bytes.size() - 1)));
  auto foolish = bytes;
  foolish[6] = std::byte{4};
  EXPECT_FALSE(parse_mending(foolish));
}

}  // namespace
}  // namespace ringbolt::mesh
