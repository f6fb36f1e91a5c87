#include "check/matrix_plan.h"

#include <algorithm>
#include <array>

#include "collective/element.h"

namespace ringbolt::tools::check {
namespace {

using ranks::Collective;
using ranks::Work;

struct Kind {
  Type type;
  Reduction reduction;
};

/// What goes through every count: each size of element, sums and products that round, some that don't.
constexpr std::array kSome{Kind{Type::float32, Reduction::sum},  Kind{Type::uint8, Reduction::max},
                           Kind{Type::bfloat16, Reduction::avg}, Kind{Type::float64, Reduction::prod},
                           Kind{Type::int32, Reduction::avg},    Kind{Type::float16, Reduction::sum}};

bool depends_on_order(const Kind& kind) {
  return collective::depends_on_order(static_cast<collective::Type>(kind.type),
                                      static_cast<collective::Reduction>(kind.reduction));
}

std::vector<Kind> all_kinds(bool is_reduction) {
  std::vector<Kind> kinds;
  for (uint32_t type = 0; type < collective::kTypes; ++type) {
    for (uint32_t reduction = 0; reduction < (is_reduction ? collective::kReductions : 1); ++reduction) {
      if (!is_reduction ||
          collective::can_reduce(static_cast<collective::Type>(type), static_cast<collective::Reduction>(reduction))) {
        kinds.push_back({static_cast<Type>(type), static_cast<Reduction>(reduction)});
      }
    }
  }
  return kinds;
}

class Cases {
 public:
  Cases(const MatrixPlan& plan, uint32_t n_ranks) : plan_(plan), n_ranks_(n_ranks) {}

  void add(Collective collective) {
    if (collective == Collective::barrier) {
      Work work;
      work.collective = collective;
      work.n_ranks = n_ranks_;
      found_.push_back({work, true});
      return;
    }
    if (collective == Collective::send_recv && n_ranks_ < 2) {
      return;
    }
    const std::vector<Kind> kinds = all_kinds(ranks::reduces(collective));
    for (size_t i = 0; i < kinds.size(); ++i) {
      const std::vector<size_t> counts = matrix_counts(plan_.largest_bytes, ranks::bytes_of(kinds[i].type));
      for (size_t k = 0; k < counts.size(); ++k) {
        const bool is_one_of_some = std::any_of(kSome.begin(), kSome.end(), [&](const Kind& one) {
          return one.type == kinds[i].type && (!ranks::reduces(collective) || one.reduction == kinds[i].reduction);
        });
        if (plan_.is_thorough || is_one_of_some) {
          add_places(collective, kinds[i], counts[k], true);
        } else if (k == std::min<size_t>(3, counts.size() - 1)) {
          add_places(collective, kinds[i], counts[k], false);
        }
      }
    }
  }

  std::vector<MatrixCase> take() { return std::move(found_); }

 private:
  /// In place and not, or the one and the other in turns.
  void add_places(Collective collective, const Kind& kind, size_t count, bool has_both) {
    const bool can = ranks::can_be_in_place(collective);
    const bool must = collective == Collective::broadcast;
    const bool is_first = must || (can && !has_both && turn_++ % 2 == 1);
    add_roots(collective, kind, count, is_first);
    if (can && !must && has_both) {
      add_roots(collective, kind, count, true);
    }
  }

  void add_roots(Collective collective, const Kind& kind, size_t count, bool is_in_place) {
    const bool has_all = ranks::has_root(collective) && plan_.is_thorough;
    for (uint32_t root = 0; root < (has_all ? n_ranks_ : 1); ++root) {
      Work work;
      work.collective = collective;
      work.data = {kind.type, kind.reduction, false, 1 + found_.size()};
      work.count = count;
      work.root = has_all ? root : ranks::has_root(collective) ? next_root_++ % n_ranks_ : 0;
      work.n_ranks = n_ranks_;
      work.is_in_place = is_in_place;
      found_.push_back({work, true});
      if (ranks::reduces(collective) && depends_on_order(kind)) {
        work.data.is_exact = true;
        found_.push_back({work, false});
      }
    }
  }

  const MatrixPlan& plan_;
  uint32_t n_ranks_;
  uint32_t turn_ = 0;
  uint32_t next_root_ = 0;
  std::vector<MatrixCase> found_;
};

}  // namespace

std::vector<size_t> matrix_counts(uint64_t largest_bytes, size_t element_bytes) {
  std::vector<size_t> counts{0, 1, 7, 1009, 4095 / element_bytes, static_cast<size_t>(largest_bytes / element_bytes)};
  std::erase_if(counts, [&](size_t count) { return count * element_bytes > largest_bytes; });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

std::vector<MatrixCase> matrix_cases(const MatrixPlan& plan, uint32_t n_ranks) {
  Cases cases(plan, n_ranks);
  for (uint32_t i = 0; i < ranks::kCollectives; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (plan.collectives.empty() ||
        std::find(plan.collectives.begin(), plan.collectives.end(), collective) != plan.collectives.end()) {
      cases.add(collective);
    }
  }
  return cases.take();
}

}  // namespace ringbolt::tools::check
