#include "nccl/tuner.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nccl/tuner_abi.h"

namespace ringbolt::nccl {
namespace {

using Costs = std::vector<float>;

/// All usable, and no two alike: a row or column in the wrong place shows.
Costs costs_of(int algorithms, int protocols) {
  Costs costs(static_cast<size_t>(algorithms) * static_cast<size_t>(protocols));
  for (size_t i = 0; i < costs.size(); ++i) costs[i] = 10.0F + static_cast<float>(i);
  return costs;
}

Costs forbidden(Costs costs, int algorithms, int protocols) {
  forbid_sparse_unfit(costs.data(), algorithms, protocols);
  return costs;
}

int usable(const Costs& costs) {
  int n = 0;
  for (const float cost : costs) n += cost >= 0 ? 1 : 0;
  return n;
}

TEST(Tuner, forbids_what_needs_more_than_neighbours) {
  EXPECT_EQ(forbidden(costs_of(7, 3), 7, 3), (Costs{-1, -1, -1, 13, 14, 15, -1, -1, -1, -1, -1, -1,  //
                                                    22, 23, 24, -1, -1, -1, -1, -1, -1}));
}

TEST(Tuner, counts_rows_by_the_width_that_it_is_told) {
  EXPECT_EQ(forbidden(costs_of(7, 1), 7, 1), (Costs{-1, 11, -1, -1, 14, -1, -1}));
  EXPECT_EQ(forbidden(costs_of(2, 2), 2, 2), (Costs{-1, -1, 12, 13}));
  EXPECT_EQ(forbidden(costs_of(2, 4), 2, 4), (Costs{-1, -1, -1, -1, 14, 15, 16, 17}));
}

TEST(Tuner, leaves_algorithms_that_it_does_not_know) {
  const Costs costs = forbidden(costs_of(9, 2), 9, 2);
  EXPECT_EQ(Costs(costs.begin() + 10, costs.end()), (Costs{-1, -1, -1, -1, 24, 25, 26, 27}));
}

TEST(Tuner, writes_nothing_behind_a_table_of_fewer_algorithms) {
  Costs costs = costs_of(7, 3);
  forbid_sparse_unfit(costs.data(), 2, 3);
  EXPECT_EQ(Costs(costs.begin(), costs.begin() + 6), (Costs{-1, -1, -1, 13, 14, 15}));
  for (size_t i = 6; i < costs.size(); ++i) EXPECT_EQ(costs[i], 10.0F + static_cast<float>(i));
}

TEST(Tuner, never_makes_an_entry_usable) {
  Costs costs = costs_of(7, 3);
  for (size_t i = 0; i < costs.size(); i += 2) costs[i] = -1;
  const Costs after = forbidden(costs, 7, 3);
  for (size_t i = 0; i < costs.size(); ++i) {
    EXPECT_TRUE(after[i] == costs[i] || after[i] == -1.0F) << i;
  }
  EXPECT_EQ(after[3], 13);
  EXPECT_EQ(after[4], -1);
}

TEST(Tuner, keeps_the_last_usable_entry_wherever_it_is) {
  for (const int protocols : {1, 2, 3, 4}) {
    for (const int algorithms : {1, 2, 6, 7, 8}) {
      for (size_t kept = 0; kept < costs_of(algorithms, protocols).size(); ++kept) {
        Costs costs(costs_of(algorithms, protocols).size(), -1.0F);
        costs[kept] = 7.5F;
        EXPECT_EQ(forbidden(costs, algorithms, protocols), costs) << algorithms << "x" << protocols << " at " << kept;
      }
    }
  }
}

TEST(Tuner, leaves_a_table_whose_fit_entries_are_all_unavailable) {
  Costs costs = costs_of(7, 3);
  for (const size_t i : {3U, 4U, 5U, 12U, 13U, 14U}) costs[i] = -1;
  EXPECT_EQ(forbidden(costs, 7, 3), costs);
  costs[4] = std::numeric_limits<float>::infinity();  // NCCL would not take that
  EXPECT_EQ(forbidden(costs, 7, 3), costs);
  costs[5] = 0;
  EXPECT_EQ(usable(forbidden(costs, 7, 3)), 2);
}

TEST(Tuner, leaves_an_empty_table) {
  const Costs nothing(21, -1.0F);
  EXPECT_EQ(forbidden(nothing, 7, 3), nothing);
}

TEST(Tuner, takes_no_table_and_no_rows) {
  forbid_sparse_unfit(nullptr, 7, 3);
  const Costs costs = costs_of(7, 3);
  for (const auto& [algorithms, protocols] : std::vector<std::pair<int, int>>{{0, 3}, {7, 0}, {-1, 3}, {7, -1}}) {
    EXPECT_EQ(forbidden(costs, algorithms, protocols), costs);
  }
}

TEST(Tuner, is_for_four_machines_on_unless_told) {
  for (const char* unset : {static_cast<const char*>(nullptr), "", "tree"}) {
    EXPECT_EQ(choose_tuning(unset, 1), Tuning::as_it_is);
    EXPECT_EQ(choose_tuning(unset, 3), Tuning::as_it_is);
    EXPECT_EQ(choose_tuning(unset, 4), Tuning::ring_only);
    EXPECT_EQ(choose_tuning(unset, 64), Tuning::ring_only);
  }
  EXPECT_EQ(choose_tuning("off", 64), Tuning::as_it_is);
  EXPECT_EQ(choose_tuning("ring", 2), Tuning::ring_only);
}

TEST(Tuner, knows_its_words) {
  for (const char* known : {static_cast<const char*>(nullptr), "", "off", "ring"}) EXPECT_TRUE(is_tuning_known(known));
  for (const char* unknown : {"on", "Ring", "ring ", "tree"}) EXPECT_FALSE(is_tuning_known(unknown));
}

// ---- Through the exported tables

std::string logged;
void note(int level, unsigned long flags, const char*, int, const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  logged = std::to_string(level) + " " + std::to_string(flags) + " " + text;
}

/// Sets the knob, and puts it back.
class Knob {
 public:
  explicit Knob(const char* value) {
    if (const char* before = std::getenv(kName)) before_ = before;
    if (value == nullptr) {
      unsetenv(kName);
    } else {
      setenv(kName, value, 1);
    }
  }
  Knob(const Knob&) = delete;
  ~Knob() {
    if (before_.empty()) {
      unsetenv(kName);
    } else {
      setenv(kName, before_.c_str(), 1);
    }
  }

 private:
  static constexpr const char* kName = "RINGBOLT_NCCL_TUNER";
  std::string before_;
};

template <class Table>
void* context_of(const Table& table, size_t nodes, Logger logger = nullptr) {
  void* context = nullptr;
  if constexpr (requires { table.init(nodes, nodes, logger, &context); }) {
    EXPECT_EQ(table.init(nodes, nodes, logger, &context), 0);
  } else {
    abi::NvlinkDomains domains{};
    abi::TunerConstants constants{};
    EXPECT_EQ(table.init(&context, 99, nodes, nodes, logger, &domains, &constants), 0);
  }
  EXPECT_NE(context, nullptr);
  return context;
}

/// What `table` makes of costs of that shape; channels must stay NCCL's.
template <class Table>
Costs decided(const Table& table, void* context, Costs costs, int algorithms, int protocols) {
  int channels = 77;
  auto** const rows = reinterpret_cast<float**>(costs.data());
  for (const int collective : {4, 2}) {
    if constexpr (requires { table.decide(context, 0, 0, 1, rows, 0, 0, &channels); }) {
      EXPECT_EQ(table.decide(context, collective, 4096, 1, rows, algorithms, protocols, &channels), 0);
    } else {
      EXPECT_EQ(table.decide(context, collective, 4096, 1, rows, algorithms, protocols, 0, &channels), 0);
    }
  }
  EXPECT_EQ(channels, 77);
  return costs;
}

template <class F>
void with_each_of_costs(F f) {
  f(abi::ncclTunerPlugin_v3);
  f(abi::ncclTunerPlugin_v4);
  f(abi::ncclTunerPlugin_v5);
  f(abi::ncclTunerPlugin_v6);
}

TEST(TunerTables, are_named_and_whole) {
  const auto expect_whole = [](const auto& table) {
    EXPECT_STREQ(table.name, "Ringbolt");
    EXPECT_NE(table.init, nullptr);
    EXPECT_NE(table.decide, nullptr);
    ASSERT_NE(table.finalize, nullptr);
    EXPECT_EQ(table.finalize(nullptr), 0);
  };
  expect_whole(abi::ncclTunerPlugin_v2);
  with_each_of_costs(expect_whole);
  EXPECT_EQ(abi::ncclTunerPlugin_v6.chunk_size, nullptr);
}

TEST(TunerTables, decide_alike_in_every_version_and_shape) {
  const Knob knob(nullptr);
  with_each_of_costs([](const auto& table) {
    void* const sparse = context_of(table, 4);
    void* const full = context_of(table, 3);
    for (const int algorithms : {1, 2, 6, 7, 8}) {
      for (const int protocols : {1, 3, 4}) {
        const Costs costs = costs_of(algorithms, protocols);
        EXPECT_EQ(decided(table, sparse, costs, algorithms, protocols), forbidden(costs, algorithms, protocols));
        EXPECT_EQ(decided(table, full, costs, algorithms, protocols), costs);
        EXPECT_EQ(decided(table, nullptr, costs, algorithms, protocols), costs);
        for (size_t kept = 0; kept < costs.size(); ++kept) {
          Costs single(costs.size(), -1.0F);
          single[kept] = 0;
          EXPECT_EQ(decided(table, sparse, single, algorithms, protocols), single);
        }
      }
    }
    EXPECT_EQ(table.finalize(sparse), 0);
    EXPECT_EQ(table.finalize(full), 0);
  });
}

TEST(TunerTables, obey_the_knob_at_init) {
  with_each_of_costs([](const auto& table) {
    void* ring = nullptr;
    void* off = nullptr;
    {
      const Knob knob("ring");
      ring = context_of(table, 2);
    }
    {
      const Knob knob("off");
      off = context_of(table, 8);
    }
    EXPECT_EQ(decided(table, ring, costs_of(7, 3), 7, 3), forbidden(costs_of(7, 3), 7, 3));
    EXPECT_EQ(decided(table, off, costs_of(7, 3), 7, 3), costs_of(7, 3));
  });
}

TEST(TunerTables, say_which_word_they_do_not_know) {
  const auto expect_said = [](const auto& table) {
    logged.clear();
    {
      const Knob knob("ring");
      context_of(table, 4, note);
      EXPECT_EQ(logged, "");
    }
    const Knob knob("star");
    context_of(table, 4, note);
    EXPECT_EQ(logged, "2 64 Ringbolt: RINGBOLT_NCCL_TUNER=star is not known (off, ring); taken as unset");
    context_of(table, 4, nullptr);
  };
  expect_said(abi::ncclTunerPlugin_v2);
  with_each_of_costs(expect_said);
}

TEST(TunerTables, leave_the_choice_to_a_version_without_costs) {
  const Knob knob("ring");
  void* const context = context_of(abi::ncclTunerPlugin_v2, 4);
  int algorithm = -1;
  int protocol = -1;
  int channels = 0;
  EXPECT_EQ(abi::ncclTunerPlugin_v2.decide(context, 4, 4096, 0, 0, 1, &algorithm, &protocol, &channels), 0);
  EXPECT_EQ(algorithm, -1);
  EXPECT_EQ(protocol, -1);
  EXPECT_EQ(channels, 0);
}

}  // namespace
}  // namespace ringbolt::nccl
