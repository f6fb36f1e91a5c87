#include "collective/element.h"

#include <array>
#include <iterator>
#include <utility>

namespace ringbolt::collective {
namespace {

struct TypeRow {
  Type type;
  uint32_t bytes;
  std::string_view text;
};

constexpr TypeRow kTypeRows[] = {
    {Type::boolean, 1, "bool"},    {Type::int8, 1, "int8"},           {Type::int16, 2, "int16"},
    {Type::int32, 4, "int32"},     {Type::int64, 8, "int64"},         {Type::uint8, 1, "uint8"},
    {Type::uint16, 2, "uint16"},   {Type::uint32, 4, "uint32"},       {Type::uint64, 8, "uint64"},
    {Type::float16, 2, "float16"}, {Type::bfloat16, 2, "bfloat16"},   {Type::float32, 4, "float32"},
    {Type::float64, 8, "float64"}, {Type::complex64, 8, "complex64"},
};
static_assert(std::size(kTypeRows) == kTypes);

constexpr std::pair<std::string_view, Type> kOtherNames[] = {
    {"boolean", Type::boolean}, {"char", Type::int8},     {"i8", Type::int8},        {"i16", Type::int16},
    {"int", Type::int32},       {"i32", Type::int32},     {"i64", Type::int64},      {"u8", Type::uint8},
    {"u16", Type::uint16},      {"u32", Type::uint32},    {"u64", Type::uint64},     {"half", Type::float16},
    {"fp16", Type::float16},    {"f16", Type::float16},   {"bf16", Type::bfloat16},  {"float", Type::float32},
    {"fp32", Type::float32},    {"f32", Type::float32},   {"double", Type::float64}, {"fp64", Type::float64},
    {"f64", Type::float64},     {"c64", Type::complex64},
};

constexpr std::array<std::string_view, kReductions> kReductionTexts = {"sum", "prod", "max", "min", "avg"};

bool is_floating(Type type) {
  return type == Type::float16 || type == Type::bfloat16 || type == Type::float32 || type == Type::float64 ||
         type == Type::complex64;
}

}  // namespace

uint32_t bytes_of(Type type) { return kTypeRows[static_cast<size_t>(type)].bytes; }

std::string_view text(Type type) { return kTypeRows[static_cast<size_t>(type)].text; }

std::string_view text(Reduction reduction) { return kReductionTexts[static_cast<size_t>(reduction)]; }

std::optional<Type> type_of(std::string_view text) {
  for (const TypeRow& row : kTypeRows) {
    if (row.text == text) {
      return row.type;
    }
  }
  for (const auto& [name, type] : kOtherNames) {
    if (name == text) {
      return type;
    }
  }
  return std::nullopt;
}

std::optional<Reduction> reduction_of(std::string_view text) {
  for (size_t i = 0; i < kReductionTexts.size(); ++i) {
    if (kReductionTexts[i] == text) {
      return static_cast<Reduction>(i);
    }
  }
  return std::nullopt;
}

bool can_reduce(Type type, Reduction reduction) {
  const bool needs_order = reduction == Reduction::max || reduction == Reduction::min;
  return !(type == Type::complex64 && needs_order) && !(type == Type::boolean && reduction == Reduction::avg);
}

bool depends_on_order(Type type, Reduction reduction) {
  return is_floating(type) && reduction != Reduction::max && reduction != Reduction::min;
}

}  // namespace ringbolt::collective
