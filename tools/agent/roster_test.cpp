#include "agent/roster.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/unique_fd.h"
#include "cluster/runtime_dir.h"
#include "failure.h"

namespace ringbolt::tools::agent {
namespace {

class RosterFolder {
 public:
  RosterFolder() : dir_(cluster::RuntimeDir::at(::mkdtemp(name_.data()))) {
    std::filesystem::create_directories(dir_.cluster("c"));
  }
  ~RosterFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(dir_.root(), ignored);
  }
  void take_cluster_away() const { std::filesystem::remove_all(dir_.cluster("c")); }
  Roster roster() const { return {dir_, "c"}; }

 private:
  std::string name_ = "/tmp/rbroster-XXXXXX";
  cluster::RuntimeDir dir_;
};

TEST(Roster, has_one_agent_of_a_node_until_its_end) {
  const RosterFolder folder;
  const Roster roster = folder.roster();
  EXPECT_FALSE(roster.look(1));
  {
    const Roster::Entry entry = roster.enter(1);
    ASSERT_TRUE(roster.look(1));
    EXPECT_EQ(roster.look(1)->pid, ::getpid());
    EXPECT_FALSE(roster.look(1)->meeting);
    roster.set_meeting(entry, 7);
    EXPECT_EQ(roster.look(1)->meeting, 7U);
    EXPECT_THROW(roster.enter(1), UsageError);
    EXPECT_FALSE(roster.look(0));
    EXPECT_FALSE(is_forgotten(entry));
    folder.take_cluster_away();
    EXPECT_TRUE(is_forgotten(entry));
  }
  EXPECT_FALSE(roster.look(1));
}

TEST(Roster, whoever_looks_for_an_agent_is_not_in_its_way) {
  const RosterFolder folder;
  const Roster roster = folder.roster();
  std::atomic<bool> is_over = false;
  std::thread looks([&] {
    while (!is_over) {
      (void)roster.look(1);
    }
  });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_NO_THROW(roster.enter(1));
  }
  is_over = true;
  looks.join();
}

TEST(Roster, says_while_somebody_starts_agents) {
  const RosterFolder folder;
  const Roster roster = folder.roster();
  EXPECT_FALSE(roster.is_starting());
  {
    const base::UniqueFd one = roster.begin_starting();
    {
      const base::UniqueFd other = roster.begin_starting();
      EXPECT_TRUE(roster.is_starting());
    }
    EXPECT_TRUE(roster.is_starting());
  }
  EXPECT_FALSE(roster.is_starting());
}

}  // namespace
}  // namespace ringbolt::tools::agent
