#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/say.h"
#include "check/outcome.h"
#include "check/rank_order.h"
#include "check/run.h"
#include "collective/builder.h"
#include "commands.h"
#include "failure.h"
#include "ranks/start.h"

namespace ringbolt::tools {
namespace {

using check::Outcome;
using check::Report;
using ranks::Collective;

constexpr uint64_t kExchangeMs = 10'000;

/// Refuses before anything is started what would be refused by every rank.
void refuse_nonsense(const CheckOptions& options) {
  if (!check::counts_of_scale(options.scale)) {
    throw UsageError(fmt::format("--scale {}: give full, ci, or a part of full, above 0 and up to 100", options.scale));
  }
  if (options.is_matrix && options.is_in_place) {
    throw UsageError("--matrix has calls in place among others: leave out --in-place");
  }
  for (const std::string& name : options.collectives) {
    if (!ranks::collective_of(name)) {
      std::string known;
      for (uint32_t i = 0; i < ranks::kCollectives; ++i) {
        known += fmt::format("{}{}", i == 0 ? "" : ", ", ranks::text(static_cast<Collective>(i)));
      }
      throw UsageError(fmt::format("--only {}: there is no such collective; there are {}", name, known));
    }
  }
  const std::vector<std::string> names = collective::schedule_names();
  if (!options.algorithm.empty() && std::find(names.begin(), names.end(), options.algorithm) == names.end()) {
    throw UsageError(fmt::format("--algorithm {}: there are {}", options.algorithm, fmt::join(names, ", ")));
  }
}

check::Manner manner_of(const CheckOptions& options) {
  check::Manner manner;
  manner.call.algorithm = options.algorithm;
  manner.call.is_reproducible = !options.is_fast;
  if (options.deadline_s) {
    manner.deadline_ms = static_cast<uint64_t>(*options.deadline_s * 1000) + 1;
  }
  manner.is_in_place = options.is_in_place;
  return manner;
}

std::vector<check::MatrixCase> cases_of(const CheckOptions& options, uint32_t n_ranks) {
  check::MatrixPlan plan;
  for (const std::string& name : options.collectives) {
    plan.collectives.push_back(*ranks::collective_of(name));
  }
  plan.largest_bytes = options.largest_bytes;
  plan.is_thorough = options.is_thorough;
  return check::matrix_cases(plan, n_ranks);
}

std::vector<check::Step> steps_of(const CheckOptions& options) {
  const auto once = check::steps_of(*check::counts_of_scale(options.scale));
  std::vector<check::Step> steps;
  for (uint32_t i = 0; i < options.repeats; ++i) {
    steps.insert(steps.end(), once.begin(), once.end());
  }
  return steps;
}

void print(const CheckOptions& options, const Outcome& outcome) {
  fmt::print("{}", options.is_json ? check::outcome_json(outcome) + "\n" : check::outcome_text(outcome));
  std::fflush(stdout);
}

/// What all ranks found, as far as they can still tell each other. Every rank that has heard all answers alike.
void collect(Group& group, const Report& mine, Outcome& outcome) {
  const auto texts = ranks::exchange_texts(group, check::emit(mine), kExchangeMs);
  if (!texts) {
    outcome.reports = {mine};
    outcome.silence = texts.error().text;
    return;
  }
  for (uint32_t rank = 0; rank < texts->size(); ++rank) {
    if (auto report = check::parse((*texts)[rank])) {
      outcome.reports.push_back(std::move(*report));
    } else {
      outcome.silence = fmt::format("what rank {} found arrived damaged", rank);
    }
  }
}

Group join(const CheckOptions& options) {
  GroupOptions group_options;
  group_options.verbs = options.verbs;
  if (options.order_seed) {
    auto shuffled = check::with_rank_order(bootstrap::environment_of_process(), *options.order_seed);
    if (!shuffled) {
      throw UsageError(
          "--rank-order shuffles the nodes of a cluster: this process is none's, or RINGBOLT_RANK or "
          "RINGBOLT_COORDINATOR says already which rank is where");
    }
    group_options.environment = std::move(*shuffled);
  }
  return ranks::join(group_options, options.n_ranks);
}

int run_rank(const CheckOptions& options) {
  Report mine;
  Outcome outcome;
  outcome.is_matrix = options.is_matrix;
  outcome.scale = options.scale;
  outcome.algorithm = options.algorithm;
  outcome.repeats = options.repeats;
  const uint64_t begin = base::now_ns();
  LastWords last_words([&] {
    outcome.is_interrupted = true;
    outcome.reports = {mine};
    outcome.elapsed_ns = base::now_ns() - begin;
    if (outcome.n_ranks != 0 && mine.rank == 0) {
      print(options, outcome);
    } else if (mine.bad > 0) {
      base::say(mine.text() + "\n");
    }
  });
  Group group = join(options);
  const std::vector<check::MatrixCase> cases =
      options.is_matrix ? cases_of(options, group.size()) : std::vector<check::MatrixCase>();
  Progress progress(Progress::of_child(options.tells_progress && group.rank() == 0));
  {
    const base::LockGuard held(last_words.mutex());
    mine.rank = group.rank();
    outcome.steps = options.is_matrix ? std::vector<check::Step>() : steps_of(options);
    outcome.n_cases = options.is_matrix ? cases.size() : outcome.steps.size() / options.repeats;
    outcome.n_ranks = group.size();
  }
  const check::Finding finding{mine, last_words, progress};
  options.is_matrix ? check::run_matrix(group, cases, options.repeats, manner_of(options), finding)
                    : check::run_integrity(group, outcome.steps, manner_of(options), finding);
  Outcome whole = outcome;
  whole.elapsed_ns = base::now_ns() - begin;
  collect(group, mine, whole);
  const base::LockGuard held(last_words.mutex());
  if (group.rank() == 0) {
    print(options, whole);
  } else if (!whole.silence.empty()) {  // rank 0 may not know
    base::say(mine.text() + "\n");
  }
  last_words.retire();
  return check::is_right(whole) ? kOk : kFoundProblem;
}

}  // namespace

int check_run(const CheckOptions& options) {
  refuse_nonsense(options);
  const bool is_rank = options.is_rank || (options.cluster.empty() && ranks::is_rank());
  return is_rank ? run_rank(options) : ranks::run_on_all_nodes(options.cluster, options.words, options.timeout_s);
}

}  // namespace ringbolt::tools
