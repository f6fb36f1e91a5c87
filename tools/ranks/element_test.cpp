#include "ranks/element.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "collective/arithmetic.h"
#include "collective/element.h"

namespace ringbolt::tools::ranks {
namespace {

constexpr size_t kElements = 1000;

std::vector<std::vector<std::byte>> inputs_of(const Data& data, uint32_t n_ranks) {
  std::vector<std::vector<std::byte>> inputs(n_ranks, std::vector<std::byte>(kElements * bytes_of(data.type)));
  for (uint32_t rank = 0; rank < n_ranks; ++rank) {
    generate(data, rank, 0, inputs[rank]);
  }
  return inputs;
}

std::vector<std::byte> serial(const Data& data, const std::vector<std::vector<std::byte>>& inputs) {
  std::vector<std::byte> out(inputs[0].size());
  reduce_serially(data.type, data.reduction, {inputs.begin(), inputs.end()}, out);
  return out;
}

template <class Use>
void for_each_kind(const Use& use) {
  for (uint32_t type = 0; type < collective::kTypes; ++type) {
    for (uint32_t reduction = 0; reduction < collective::kReductions; ++reduction) {
      const auto t = static_cast<collective::Type>(type);
      const auto r = static_cast<collective::Reduction>(reduction);
      if (collective::can_reduce(t, r)) {
        use(t, r, std::string(collective::text(t)) + " " + std::string(collective::text(r)));
      }
    }
  }
}

TEST(Element, serial_reference_is_what_the_baseline_computes) {
  for_each_kind([](collective::Type type, collective::Reduction reduction, const std::string& name) {
    for (const uint32_t n : {1U, 2U, 5U, 10U, 256U}) {
      const Data data{static_cast<Type>(type), static_cast<Reduction>(reduction), false, 99 + n};
      const auto inputs = inputs_of(data, n);
      std::vector<const std::byte*> sources;
      for (const auto& input : inputs) {
        sources.push_back(input.data());
      }
      std::vector<std::byte> baseline(inputs[0].size());
      collective::reduce_by(collective::Arithmetic::baseline, type, reduction, baseline.data(), sources, baseline.size(),
                                  reduction == collective::Reduction::avg ? n : 0);
      EXPECT_EQ(serial(data, inputs), baseline) << name << ", " << n << " ranks";
    }
  });
}

TEST(Element, order_tells_where_it_must_and_nowhere_else) {
  for_each_kind([](collective::Type type, collective::Reduction reduction, const std::string& name) {
    for (const bool is_exact : {false, true}) {
      const Data data{static_cast<Type>(type), static_cast<Reduction>(reduction), is_exact, 7};
      if (is_exact && !has_exact_data(data.type, data.reduction)) {
        continue;
      }
      auto inputs = inputs_of(data, 9);
      const auto forwards = serial(data, inputs);
      std::reverse(inputs.begin(), inputs.end());
      const bool may_differ = !is_exact && collective::depends_on_order(type, reduction);
      // 16-bit numbers are rounded once, so that few of them tell; but some do.
      if (bytes_of(data.type) > 2 || !may_differ) {
        EXPECT_EQ(serial(data, inputs) != forwards, may_differ) << name << (is_exact ? " exact" : "");
      }
    }
  });
}

TEST(Element, partial_sums_of_exact_data_are_exact_in_their_own_type) {
  for (const Type type : {Type::float16, Type::bfloat16, Type::float32}) {
    const Data data{type, Reduction::sum, true, 3};
    auto inputs = inputs_of(data, 200);
    const auto whole = serial(data, inputs);
    while (inputs.size() > 1) {  // pairs, each stored: 16 bits in between
      std::vector<std::vector<std::byte>> halved;
      for (size_t i = 0; i + 1 < inputs.size(); i += 2) {
        halved.push_back(serial(data, {inputs[i], inputs[i + 1]}));
      }
      if (inputs.size() % 2 == 1) {
        halved.push_back(inputs.back());
      }
      inputs = std::move(halved);
    }
    EXPECT_EQ(inputs[0], whole);
  }
}

TEST(Element, depends_on_rank_place_and_seed) {
  const Data data{Type::uint32, Reduction::sum, false, 5};
  std::vector<std::byte> whole(4000);
  std::vector<std::byte> part(400);
  generate(data, 1, 0, whole);
  generate(data, 1, 100, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 400));
  for (const auto& [other, rank, first] : {std::tuple{data, 2U, 100U}, std::tuple{data, 1U, 101U},
                                           std::tuple{Data{Type::uint32, Reduction::sum, false, 6}, 1U, 100U}}) {
    std::vector<std::byte> different(400);
    generate(other, rank, first, different);
    EXPECT_NE(different, part);
  }
}

}  // namespace
}  // namespace ringbolt::tools::ranks
