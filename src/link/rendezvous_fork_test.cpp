// fork(): the child shares every descriptor with its parent and must neither speak for it nor keep it alive.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "link/rendezvous_test_support.h"

namespace ringbolt::link {
namespace {

using namespace testing;

TEST(RendezvousFork, an_abandoning_child_closes_everything_and_disturbs_nobody) {
  const TempFolder folder;
  const size_t before = open_descriptors();
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready() && b.seen.ready.size() == 1; }));
  const std::vector<std::string> files = files_in(folder.slots());
  Child child([&] {
    for (End* end : {&a, &b}) {
      end->rendezvous->abandon_after_fork();
      end->table.reset();
    }
    const bool is_dead = !peer->send(Withdraw{}) && peer->is_gone() && a.rendezvous->peer_at(b.rendezvous->slot()) == nullptr;
    peer->ring();
    a.rendezvous->wake();
    a.rendezvous->dispatch(-1);
    a.rendezvous->leave();
    if (!is_dead || open_descriptors() != before) {
      return 1;
    }
    // Numbers that were ours may belong to others by now: the destructors must not close them.
    const base::UniqueFd canary(open("/dev/null", O_RDONLY | O_CLOEXEC));
    a.rendezvous.reset();
    b.rendezvous.reset();
    return fcntl(canary.get(), F_GETFD) >= 0 ? 0 : 2;
  });
  const int status = child.wait();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(files_in(folder.slots()), files);
  ASSERT_TRUE(b.seen.ready[0]->send(Withdraw{1, 2, 3}));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.seen.withdraws.size() == 1; }));
  EXPECT_TRUE(a.seen.gone.empty() && b.seen.gone.empty());
}

TEST(RendezvousFork, the_parent_keeps_its_slot_and_gives_it_back_in_spite_of_a_child) {
  const TempFolder folder;
  auto a = std::make_unique<End>(folder.slots(), 1, 1);
  Child abandoning([&] {
    a->rendezvous->abandon_after_fork();
    return 0;
  });
  EXPECT_EQ(abandoning.wait(), 0);
  EXPECT_ANY_THROW(End(folder.slots(), 1, 1)) << "the slot was let go by the child";
  // This child keeps copies of lock and sockets, as after a fork that nobody told us of.
  Child keeping([] {
    for (;;) {
      pause();
    }
    return 0;
  });
  a.reset();
  End next(folder.slots(), 1, 1);
  EXPECT_EQ(next.rendezvous->slot(), 0U);
}

TEST(RendezvousFork, a_child_that_merely_exits_disturbs_nobody) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready() && b.seen.ready.size() == 1; }));
  const std::vector<std::string> files = files_in(folder.slots());
  Child child([&] {
    a.rendezvous.reset();  // the destructor, as at exit()
    b.rendezvous.reset();
    return 0;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(files_in(folder.slots()), files);
  ASSERT_TRUE(b.seen.ready[0]->send(Withdraw{1, 2, 3}));
  ASSERT_TRUE(run_until({&a, &b}, [&] { return a.seen.withdraws.size() == 1; }));
  EXPECT_TRUE(a.seen.gone.empty() && b.seen.gone.empty());
}

TEST(RendezvousFork, leaving_is_seen_though_a_child_holds_the_sockets) {
  const TempFolder folder;
  End a(folder.slots());
  End b(folder.slots());
  const auto peer = a.rendezvous->peer_at(b.rendezvous->slot());
  ASSERT_TRUE(run_until({&a, &b}, [&] { return peer->is_ready() && b.seen.ready.size() == 1; }));
  Child keeping([] {
    for (;;) {
      pause();
    }
    return 0;
  });
  b.rendezvous->leave();
  ASSERT_TRUE(run_until({&a}, [&] { return a.seen.gone.size() == 1; }));
  EXPECT_TRUE(peer->left_orderly());
  EXPECT_EQ(a.rendezvous->peer_at(b.rendezvous->slot()), nullptr);
}

}  // namespace
}  // namespace ringbolt::link
