#include "profile/ledger_book.h"

#include <gtest/gtest.h>

namespace ringbolt::profile {
namespace {

LedgerBook example() {
  LedgerBook book;
  book.add(10, 111, Counted::qp);
  book.add(10, 111, Counted::qp);
  book.add(10, 111, Counted::pd);
  book.add(20, 222, Counted::pd);
  book.add(20, 222, Counted::mr);
  return book;
}

TEST(LedgerBook, adds_up_over_processes) {
  const LedgerBook book = example();
  EXPECT_EQ(book.total(Counted::qp), 2U);
  EXPECT_EQ(book.total(Counted::pd), 2U);
  EXPECT_EQ(book.total(Counted::cq), 0U);
  EXPECT_EQ(book.total(Counted::mr), 1U);
}

TEST(LedgerBook, forgets_a_process_with_its_last_object) {
  LedgerBook book = example();
  book.remove(20, 222, Counted::pd);
  book.remove(20, 222, Counted::mr);
  EXPECT_EQ(book.owners.size(), 1U);
  book.remove(20, 222, Counted::mr);  // nothing there
  book.remove(10, 999, Counted::qp);  // the pid is that of an older process
  EXPECT_EQ(book.total(Counted::qp), 2U);
}

TEST(LedgerBook, buries_the_dead_with_or_without_what_they_leak) {
  const auto only_10 = [](const LedgerBook::Owner& owner) { return owner.pid == 10; };
  LedgerBook clean = example();
  clean.bury(only_10, false);
  EXPECT_EQ(clean.total(Counted::pd), 1U);
  EXPECT_EQ(clean.total(Counted::mr), 0U);
  LedgerBook leaky = example();
  leaky.bury(only_10, true);
  EXPECT_EQ(leaky.total(Counted::pd), 2U);
  EXPECT_EQ(leaky.leaked[static_cast<size_t>(Counted::pd)], 1U);
  EXPECT_EQ(leaky.total(Counted::mr), 0U);
  leaky.remove(10, 111, Counted::pd);
  EXPECT_FALSE(leaky.is_empty());
}

TEST(LedgerBook, is_read_as_it_was_written) {
  LedgerBook book = example();
  book.bury([](const LedgerBook::Owner& owner) { return owner.pid == 20; }, true);
  EXPECT_EQ(book.emit(),
            "ringbolt-ledger 1\n"
            "process 20 started 222 qp 0 pd 1 cq 0 mr 1\n"
            "leaked qp 0 pd 1 cq 0 mr 0\n"
            "end\n");
  EXPECT_EQ(LedgerBook::parse(book.emit()).value(), book);
  EXPECT_EQ(LedgerBook::parse(LedgerBook{}.emit()).value(), LedgerBook{});
}

TEST(LedgerBook, of_very_many_processes_can_still_be_read) {
  LedgerBook book;
  for (pid_t pid = 1; pid <= 5000; ++pid) {
    book.add(pid, 1, Counted::qp);
  }
  book.add(1, 1, Counted::pd);  // one that is there counts on
  const auto parsed = LedgerBook::parse(book.emit());
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(*parsed, book);
  EXPECT_EQ(parsed->total(Counted::pd), 1U);
}

TEST(LedgerBook, refuses_every_beginning_of_a_text) {
  const std::string text = example().emit();
  for (size_t length = 0; length + 1 < text.size(); ++length) {
    EXPECT_FALSE(LedgerBook::parse(text.substr(0, length))) << length;
  }
}

TEST(LedgerBook, refuses_other_texts) {
  for (const char* text :
       {"", "ringbolt-ledger 2\nend\n", "ringbolt-ledger 1\nprocess 0 started 1 qp 0 pd 0 cq 0 mr 0\nend\n",
        "ringbolt-ledger 1\nprocess 1 started 1 qp 0 pd 0 cq 0\nend\n",
        "ringbolt-ledger 1\nleaked qp -1 pd 0 cq 0 mr 0\nend\n"}) {
    EXPECT_FALSE(LedgerBook::parse(text)) << text;
  }
}

}  // namespace
}  // namespace ringbolt::profile
